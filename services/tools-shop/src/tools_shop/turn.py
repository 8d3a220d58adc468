"""A proposed turn, what policy forwarded of it, and what can come of that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contracts.facts import RunStarted, TurnProposed
from contracts.parts import CallQuote, CallResult, Guard, Verdict
from contracts.subjects import RunKey

from tools_shop import calls
from tools_shop.caller import Caller
from tools_shop.calls import Call
from tools_shop.edits import Edit
from tools_shop.toolset import Toolset
from tools_shop.unit import Unit


@dataclass(frozen=True, slots=True)
class Turn:
    """A proposed turn: whose it is, its toolset (None if unknown here), its calls as read, its proposal's event id."""

    caller: Caller
    toolset: Toolset | None
    calls: Sequence[Call]
    proposal_id: str

    @classmethod
    def of(
        cls, key: RunKey, started: RunStarted, toolset: Toolset | None, proposal_id: str, proposed: TurnProposed,
        edits: Mapping[str, Edit],
    ) -> "Turn":  # fmt: skip
        caller = Caller.of(key, started, proposed.turn)
        toolset = toolset.of(Unit.of(started)) if toolset else None
        return cls(caller, toolset, calls.read(toolset, proposed.calls, edits), proposal_id)

    @property
    def writes(self) -> bool:
        return calls.writes(self.calls)


@dataclass(frozen=True, slots=True)
class Order:
    """What policy forwarded: its verdicts by call id, the quotes that they are about, and the guards that must hold.

    `notes` are of the people who declined a call: policy does not repeat them, for it cannot read them.
    """

    attempt: int
    verdicts: Mapping[str, Verdict]
    quotes: Mapping[str, CallQuote]
    guards: Sequence[Guard] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def declined(self) -> frozenset[str]:
        return frozenset(call_id for call_id, verdict in self.verdicts.items() if verdict.verdict == "declined")

    @property
    def digests(self) -> dict[str, str]:
        return {call_id: verdict.digest for call_id, verdict in self.verdicts.items()}

    def to_run(self, turn: Turn) -> list[Call]:
        return [call for call in turn.calls if call.call_id not in self.declined]


@dataclass(frozen=True, slots=True)
class Executed:
    """It ran; `receipt_id` is None where nothing was written."""

    attempt: int
    results: Sequence[CallResult]
    receipt_id: str | None = None
    approved_by: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changed:
    """The world is no longer as it was quoted, or it is stopped: nothing was done."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run ended before the commit: nothing was done."""
