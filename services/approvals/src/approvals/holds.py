"""What waits for people in a run: its last hold, who has decided what of it, and whether it is still open."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from contracts.edits import carries_over
from contracts.entitlement import roles_asked
from contracts.events import Event
from contracts.facts import (
    CallDecided,
    HoldEscalated,
    HoldExpired,
    ReminderSent,
    TurnForwarded,
    TurnHeld,
    TurnQuoted,
    TurnRefused,
)
from contracts.history import History
from contracts.parts import CallQuote, Hold, Person
from contracts.people import RANKS, enough, may_decline, may_release, same, who
from contracts.turn import Held
from contracts.turn import HeldTurn as WholeTurn


class Decision(NamedTuple):
    """One that was in time."""

    event: Event
    fact: CallDecided


@dataclass(frozen=True, slots=True)
class HeldCall:
    """One call that waits, as it was quoted, with the decisions that count for it.

    editors: who changed the call into this, and whose approval does not carry over: they asked for what is held.
    """

    hold: Hold
    quote: CallQuote | None
    decisions: tuple[Decision, ...]
    editors: tuple[Person, ...]
    expired: bool
    escalated: bool

    @property
    def approvers(self) -> list[Person]:
        """Whose approval of it stands, each once: whoever says it again in another role has said it."""
        approved: dict[tuple[str, str], Person] = {}
        for decision in self.decisions:
            if decision.fact.decision == "approve":
                approved.setdefault(who(decision.fact.by), decision.fact.by)
        return list(approved.values())

    @property
    def over(self) -> Decision | None:
        """The decision that settled the call: a decline, the approval that filled the last seat, or a change to it,
        since what it was changed into is quoted and judged anew."""
        seated: list[Person] = []
        for decision in self.decisions:
            if decision.fact.decision == "decline" or is_changed_by(self.hold, decision.fact):
                return decision
            seated.append(decision.fact.by)
            if enough(self.hold.needs, seated):
                return decision
        return None

    @property
    def stands(self) -> Held:
        """How it stands in its turn."""
        if (over := self.over) is not None:
            return Held("declined" if over.fact.decision == "decline" else "approved")
        left = max(self.hold.needs.people - len(self.approvers), 1)
        return Held("expired") if self.expired else Held("waits", left)


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn's last hold. `open` until policy or a new quote has moved on.

    quotes: all its calls, as they were quoted when it was held. dropped: those that were declined, or that expired, at
    an earlier attempt.
    """

    event: Event
    fact: TurnHeld
    calls: dict[str, HeldCall]
    open: bool
    reminded: bool
    quotes: tuple[CallQuote, ...] = ()
    dropped: frozenset[str] = frozenset()
    locale: str = ""

    @property
    def whole(self) -> WholeTurn:
        """All of the turn, and how each of its calls stands."""
        held = {call_id: Held("declined") for call_id in self.dropped}
        return WholeTurn.of(
            self.quotes, held | {call_id: call.stands for call_id, call in self.calls.items()}, self.locale
        )

    @property
    def changed_by(self) -> Decision | None:
        """The approval with changes that ends this hold."""
        ends = (call.over for call in self.calls.values() if call.over and is_changed_by(call.hold, call.over.fact))
        return next(ends, None)

    @property
    def waiting(self) -> list[HeldCall]:
        if not self.open or self.changed_by is not None:
            return []
        return [call for call in self.calls.values() if not call.expired and call.over is None]


def roles_awaited(calls: Iterable[HeldCall]) -> tuple[str, ...]:
    """The roles that held calls wait for, the lower first."""
    roles = {role for call in calls for role in roles_asked(call.hold.needs, call.approvers)}
    return tuple(sorted(roles, key=lambda role: RANKS.get(role, 0)))


def is_changed_by(hold: Hold, decided: CallDecided) -> bool:
    """Whether it is this very call that was approved with changes, and not an earlier one that was changed into it."""
    return decided.edited is not None and decided.digest == hold.digest


def held_turn(history: History, turn: int | None = None) -> HeldTurn | None:
    """The run's last hold, or the last one of that turn."""
    held = [(event, fact) for event, fact in history.of(TurnHeld) if turn is None or fact.turn == turn]
    if not held:
        return None
    event, fact = held[-1]
    behind = [e.fact for e in history.events if e.ordinal > event.ordinal]
    moved_on = any(isinstance(f, TurnForwarded | TurnRefused | TurnQuoted) for f in behind)
    expired = {call_id for f in behind if isinstance(f, HoldExpired) and f.turn == fact.turn for call_id in f.call_ids}
    escalated = {c for f in behind if isinstance(f, HoldEscalated) and f.turn == fact.turn for c in f.call_ids}
    decisions = counted(history, fact.turn)
    declined = {decision.fact.call_id for decision in decisions if decision.fact.decision == "decline"}
    before = {c for _, f in history.of(HoldExpired) if f.turn == fact.turn for c in f.call_ids}
    quoted = [f.quotes for _, f in history.of(TurnQuoted) if (f.turn, f.attempt) == (fact.turn, fact.attempt)]
    return HeldTurn(
        event=event,
        fact=fact,
        calls={
            hold.call_id: _held_call(history, fact, hold, decisions, hold.call_id in expired, hold.call_id in escalated)
            for hold in fact.holds
        },
        open=not moved_on and history.end is None,
        reminded=any(isinstance(f, ReminderSent) and f.turn == fact.turn for f in behind),
        quotes=tuple(quoted[-1]) if quoted else (),
        dropped=frozenset(declined | before) - {hold.call_id for hold in fact.holds},
        locale=(history.started.locale if history.started else None) or "",
    )


def counted(history: History, turn: int) -> list[Decision]:
    """A turn's decisions that were recorded before the hold of their time expired, in order.

    An approval goes with the digest, not with the attempt: one of an earlier attempt still fills a seat of this one.
    """
    found: list[Decision] = []
    expires_at: datetime | None = None
    for event in history.events:
        match event.fact:
            case TurnHeld(turn=number, expires_at=at) if number == turn:
                expires_at = at
            case CallDecided(turn=number) as fact if number == turn:
                if expires_at is not None and event.time < expires_at:
                    found.append(Decision(event, fact))
    return found


def _held_call(
    history: History, held: TurnHeld, hold: Hold, decisions: list[Decision], expired: bool, escalated: bool
) -> HeldCall:
    of_call = [decision for decision in decisions if decision.fact.call_id == hold.call_id]
    edits = [d for d in of_call if d.fact.edited is not None and not is_changed_by(hold, d.fact)]
    quotes = _quotes(history, held.turn, hold.call_id)
    now = next((quote for _, attempt, quote in quotes if (attempt, quote.digest) == (held.attempt, hold.digest)), None)
    carried = [edit for edit in edits if now and _carries_over(edit, quotes, now)]
    editors = tuple(edit.fact.by for edit in edits if edit not in carried)
    count = [
        decision
        for decision in of_call
        if (decision in carried or decision.fact.digest == hold.digest)
        and _counts(history, decision.fact, hold, now.subject if now else None)
        and not any(same(decision.fact.by, editor) for editor in editors)
    ]
    return HeldCall(hold, now, tuple(count), editors, expired, escalated)


def _carries_over(edit: Decision, quotes: list[tuple[Event, int, CallQuote]], now: CallQuote) -> bool:
    """Whether who changed the call has thereby approved what is held now: the first quote that their change brought, as
    they changed it, and less of the same."""
    brought = next((quote for event, _, quote in quotes if event.ordinal > edit.event.ordinal), None)
    was = [quote for event, _, quote in quotes if event.ordinal < edit.event.ordinal]
    return (
        brought is not None
        and brought.digest == now.digest
        and edit.fact.edited == now.arguments
        and any(quote.digest == edit.fact.digest and carries_over(quote, now) for quote in was)
    )


def _quotes(history: History, turn: int, call_id: str) -> list[tuple[Event, int, CallQuote]]:
    """A call's quotes, each with the event that says it and its attempt."""
    return [
        (event, fact.attempt, quote)
        for event, fact in history.of(TurnQuoted)
        if fact.turn == turn
        for quote in fact.quotes
        if quote.call_id == call_id
    ]


def _counts(history: History, decided: CallDecided, hold: Hold, subject: str | None) -> bool:
    """Whether this person may have said this of the hold. subject: whom the call is about, by the shop's id."""
    if history.started is None:
        return False
    # An own limit is held against what a call was changed into: that is judged with its own quote.
    limited = decided.decision == "approve" and not is_changed_by(hold, decided)
    may = may_release if limited else may_decline
    return may(decided.by, hold.needs, history.started, hold.edited_by, subject)
