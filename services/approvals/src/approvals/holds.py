"""What waits for people in a run: its last hold, who has decided what of it, and whether it is still open."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from contracts.events import Event
from contracts.facts import (
    CallDecided,
    Hold,
    HoldExpired,
    Person,
    ReminderSent,
    TurnForwarded,
    TurnHeld,
    TurnQuoted,
    TurnRefused,
)
from contracts.history import History
from contracts.people import enough


class Decision(NamedTuple):
    """One that counted."""

    event: Event
    fact: CallDecided


@dataclass(frozen=True, slots=True)
class HeldCall:
    """One call that waits, with the decisions that counted. `over` is the one that settled it."""

    hold: Hold
    decisions: tuple[Decision, ...]
    expired: bool

    @property
    def approvers(self) -> list[Person]:
        return [decision.fact.by for decision in self.decisions if decision.fact.decision == "approve"]

    @property
    def over(self) -> Decision | None:
        seated: list[Person] = []
        for decision in self.decisions:
            seated.append(decision.fact.by)
            if decision.fact.decision == "decline" or enough(self.hold.needs, seated):
                return decision
        return None


@dataclass(frozen=True, slots=True)
class HeldTurn:
    """A turn's last hold. `open` until policy or a new quote has moved on."""

    event: Event
    fact: TurnHeld
    calls: dict[str, HeldCall]
    open: bool
    reminded: bool

    @property
    def waiting(self) -> list[HeldCall]:
        return [call for call in self.calls.values() if self.open and not call.expired and call.over is None]


def held_turn(history: History, turn: int | None = None) -> HeldTurn | None:
    """The run's last hold, or the last one of that turn."""
    held = [(event, fact) for event, fact in history.of(TurnHeld) if turn is None or fact.turn == turn]
    if not held:
        return None
    event, fact = held[-1]
    behind = [e.fact for e in history.events if e.ordinal > event.ordinal]
    moved_on = any(isinstance(f, TurnForwarded | TurnRefused | TurnQuoted) for f in behind)
    expired = {call_id for f in behind if isinstance(f, HoldExpired) and f.turn == fact.turn for call_id in f.call_ids}
    decisions = counted(history, fact.turn)
    return HeldTurn(
        event=event,
        fact=fact,
        calls={
            hold.call_id: HeldCall(
                hold=hold,
                decisions=tuple(d for d in decisions if (d.fact.call_id, d.fact.digest) == (hold.call_id, hold.digest)),
                expired=hold.call_id in expired,
            )
            for hold in fact.holds
        },
        open=not moved_on and history.end is None,
        reminded=any(isinstance(f, ReminderSent) and f.turn == fact.turn for f in behind),
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
            case CallDecided(turn=number) as fact if number == turn and fact.edited is None:
                if expires_at is not None and event.time < expires_at:
                    found.append(Decision(event, fact))
    return found
