"""What tools knows of a run, and what it owes: the quote of a new or changed turn, the execution of a forwarded one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from contracts.events import Event
from contracts.facts import (
    CallDecided,
    RunStarted,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.history import History
from contracts.people import may_decline

from tools_shop.edits import Edit

READS = (
    "desk.run-started",
    "agent.turn-proposed",
    "tools.turn-quoted",
    "tools.turn-executed",
    "policy.turn-forwarded",
    "policy.turn-held",
    "policy.turn-refused",
    "approvals.call-decided",
)
T = TypeVar("T", TurnProposed, TurnQuoted, TurnExecuted, TurnHeld, TurnForwarded, TurnRefused)


@dataclass(frozen=True, slots=True)
class OwesQuote:
    """The turn was proposed and has no quote, or a person changed a held call of it: `edits` and `declined` (with their
    notes) are what people have said of its calls by now."""

    started: RunStarted
    proposal_id: str
    proposed: TurnProposed
    attempt: int = 1
    edits: Mapping[str, Edit] = field(default_factory=dict)
    declined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OwesExecution:
    """The turn's last quote was forwarded; `declined` are the notes of who declined a call of it.

    Where the run has ended, only what had been done already is still said.
    """

    started: RunStarted
    proposal_id: str
    proposed: TurnProposed
    quoted: TurnQuoted
    forwarded: TurnForwarded
    declined: Mapping[str, str]
    ended: bool


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that was quoted and has no end yet, with what people have said of its calls by now."""

    started: RunStarted
    proposal_id: str
    proposed: TurnProposed
    quoted: TurnQuoted
    edits: Mapping[str, Edit]
    declined: Mapping[str, str]


def owed(history: History, event: Event) -> OwesQuote | OwesExecution | None:
    """What `event` asks of this service, None if that was dealt with or the run has moved past it."""
    started = history.started
    if started is None:
        return None
    match event.fact:
        case TurnProposed() as proposed:
            known = history.end or _last(history, TurnQuoted, proposed.turn)
            return None if known else OwesQuote(started, event.id, proposed)
        case TurnForwarded() as forwarded:
            return _execution(history, started, forwarded)
        case CallDecided(edited=dict()) as decided:
            return _changed(history, decided)
    return None


def open_turn(history: History, turn: int) -> OpenTurn | None:
    """The turn, if it has been quoted and waits for nobody but policy and people."""
    started, proposal = history.started, _last(history, TurnProposed, turn)
    quote = _last(history, TurnQuoted, turn)
    if started is None or proposal is None or quote is None or history.end is not None:
        return None
    forward = _last(history, TurnForwarded, turn)
    if _last(history, TurnRefused, turn) or (forward and forward[1].attempt == quote[1].attempt):
        return None
    (event, proposed), (_, quoted) = proposal, quote
    return OpenTurn(started, event.id, proposed, quoted, *_said(history, turn))


def declines_a_write(history: History, decided: CallDecided) -> bool:
    """Whether a person has declined a held write by it: whatever has become of the turn, or the run, since."""
    _, declined = _said(history, decided.turn)
    quoted = [event.fact for event in history.events if isinstance(event.fact, TurnQuoted)]
    writes = any(q.digest == decided.digest and q.kind == "write" for fact in quoted for q in fact.quotes)
    return decided.decision == "decline" and decided.call_id in declined and writes


def edits_of(quoted: TurnQuoted) -> dict[str, Edit]:
    """The calls that people had changed when the turn was quoted."""
    return {quote.call_id: Edit(quote.edited, quote.arguments) for quote in quoted.quotes if quote.edited}


def _changed(history: History, decided: CallDecided) -> OwesQuote | None:
    """A new quote, if the change is one of those that count and no quote has followed it."""
    turn = open_turn(history, decided.turn)
    if turn is None or turn.edits == edits_of(turn.quoted):
        return None
    attempt = turn.quoted.attempt + 1
    return OwesQuote(turn.started, turn.proposal_id, turn.proposed, attempt, turn.edits, turn.declined)


def _said(history: History, turn: int) -> tuple[dict[str, Edit], dict[str, str]]:
    """What people have made of the turn's calls: the first change of a held call since its last quote, and what those
    declined whose no counts, with their notes."""
    edits: dict[str, Edit] = {}
    changed: set[str] = set()
    declined: dict[str, str] = {}
    subjects: dict[str, str | None] = {}
    held: TurnHeld | None = None
    for event in history.events:
        match event.fact:
            case TurnQuoted(turn=number) as quoted if number == turn:
                edits, changed, held = edits_of(quoted), set(), None
                subjects = {quote.call_id: quote.subject for quote in quoted.quotes}
            case TurnHeld(turn=number) as held_now if number == turn:
                held = held_now
            case CallDecided(turn=number) as decided if number == turn and held and event.time < held.expires_at:
                hold = next((h for h in held.holds if (h.call_id, h.digest) == (decided.call_id, decided.digest)), None)
                if hold is None or history.started is None:
                    continue
                if decided.decision == "decline":
                    if may_decline(decided.by, hold.needs, history.started, hold.edited_by, subjects[hold.call_id]):
                        declined.setdefault(decided.call_id, decided.note.strip())
                elif decided.edited is not None and decided.call_id not in changed:
                    edits[decided.call_id] = Edit(decided.digest, decided.edited)
                    changed.add(decided.call_id)
    return edits, declined


def _execution(history: History, started: RunStarted, forwarded: TurnForwarded) -> OwesExecution | None:
    turn = forwarded.turn
    quote, proposal = _last(history, TurnQuoted, turn), _last(history, TurnProposed, turn)
    if quote is None or proposal is None or _last(history, TurnExecuted, turn):
        return None
    (event, proposed), (_, quoted) = proposal, quote
    if quoted.attempt != forwarded.attempt:
        return None
    _, declined = _said(history, turn)
    return OwesExecution(started, event.id, proposed, quoted, forwarded, declined, history.end is not None)


def _last(history: History, kind: type[T], turn: int) -> tuple[Event, T] | None:
    """The newest fact of a kind about a turn."""
    for event in reversed(history.events):
        if isinstance(event.fact, kind) and event.fact.turn == turn:
            return event, event.fact
    return None
