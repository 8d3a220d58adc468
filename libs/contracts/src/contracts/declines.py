"""Declines that stand: the calls of a run that people declined, or that nobody decided in time, and that no later
approval made good. One rule, for the agent that ends the run and for `verify`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from contracts.events import Event
from contracts.facts import (
    CallDecided,
    HoldExpired,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import CallQuote, Person

# What the model is told behind each decline.
WHAT_FOLLOWS = "A person will get in touch with the customer about it. Tell the customer so in your reply."


@dataclass(frozen=True, slots=True)
class Decline:
    """One call that was not done because of people. `by` is None where nobody decided in time.

    quote: what it would have done, where that was read. hands_over: as the fact says.
    """

    turn: int
    call_id: str
    tool: str
    by: Person | None
    note: str
    hands_over: bool
    quote: CallQuote | None = None

    @property
    def about(self) -> "About":
        effect = self.quote.effect if self.quote else None
        return self.tool, self.quote.subject if self.quote else None, effect.object if effect else None


# A tool, whose data and which object: a call that is changed or asked for again is about the same.
About = tuple[str, str | None, str | None]


def standing(events: Iterable[Event]) -> tuple[Decline, ...]:
    """The declines that stand after a run's events (or those of them that `READS` names), in their order.

    A decline is made good once a call of a later turn about the same thing was approved by a person and carried out. A
    call that is declined again stands once.
    """
    run = _Run()
    for event in events:
        run.take(event)
        if event.terminal:
            break
    return tuple(run.standing)


@dataclass
class _Run:
    standing: list[Decline] = field(default_factory=list)
    tools: dict[str, str] = field(default_factory=dict)
    quotes: dict[str, CallQuote] = field(default_factory=dict)
    declined: dict[str, Decline] = field(default_factory=dict)
    approved: set[str] = field(default_factory=set)
    expires_at: datetime | None = None

    def take(self, event: Event) -> None:
        match event.fact:
            case TurnProposed(calls=calls):
                self.tools, self.quotes = {call.call_id: call.tool for call in calls}, {}
                self.declined, self.approved, self.expires_at = {}, set(), None
            case TurnQuoted(quotes=quotes):
                self.quotes = {quote.call_id: quote for quote in quotes}
            case TurnHeld(expires_at=expires_at):
                self.expires_at = expires_at
            case CallDecided() as fact if self.expires_at is None or event.time < self.expires_at:
                if fact.decision == "decline":
                    self._decline(fact.turn, fact.call_id, fact.by, fact.note, bool(fact.hands_over))
                else:
                    self.approved.add(fact.call_id)
            case HoldExpired() as fact:
                for call_id in fact.call_ids:
                    self._decline(fact.turn, call_id, None, "", bool(fact.hands_over))
            case TurnForwarded(verdicts=verdicts):
                # Policy has the last word on which decisions counted.
                runs = {verdict.call_id for verdict in verdicts if verdict.verdict == "run"}
                self.declined = {call_id: one for call_id, one in self.declined.items() if call_id not in runs}
            case TurnRefused():
                self._settle(set())
            case TurnExecuted(results=results):
                self._settle({result.call_id for result in results if not result.is_error} & self.approved)

    def _decline(self, turn: int, call_id: str, by: Person | None, note: str, hands_over: bool) -> None:
        decline = Decline(turn, call_id, self.tools.get(call_id, ""), by, note, hands_over, self.quotes.get(call_id))
        self.declined.setdefault(call_id, decline)

    def _settle(self, done: set[str]) -> None:
        """The turn is over: each approved call that was carried out makes good one earlier decline about the same, each
        decline takes the place of one."""
        made_good = [self._about(call_id) for call_id in done - self.declined.keys()]
        for about in [*made_good, *(one.about for one in self.declined.values())]:
            earlier = next((one for one in self.standing if one.about == about), None)
            if earlier is not None:
                self.standing.remove(earlier)
        self.standing += self.declined.values()
        self.declined, self.approved = {}, set()

    def _about(self, call_id: str) -> About:
        return Decline(0, call_id, self.tools.get(call_id, ""), None, "", False, self.quotes.get(call_id)).about


READS = frozenset(
    fact.kind
    for fact in (
        TurnProposed,
        TurnQuoted,
        TurnHeld,
        CallDecided,
        HoldExpired,
        TurnForwarded,
        TurnRefused,
        TurnExecuted,
    )
)
