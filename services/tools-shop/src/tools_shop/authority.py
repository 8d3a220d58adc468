"""Does the log authorise what was forwarded? Asked by the service that holds the money."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from contracts.events import Event
from contracts.facts import CallDecided, Fact, Hold, Needs, Person, RunStarted, TurnHeld
from contracts.money import Money
from contracts.people import enough, may_release, who

from tools_shop.outcomes import Refusal


@dataclass(frozen=True, slots=True)
class Record:
    """What was said of one turn: its holds and the decisions on them with their times, in the log's order."""

    started: RunStarted
    said: Sequence[tuple[Fact, datetime]] = ()

    @classmethod
    def of(cls, started: RunStarted, turn: int, events: Iterable[Event]) -> "Record":
        """Of events that were read from the log by their exact subjects."""
        ordered = sorted(events, key=lambda event: event.sequence)
        kept = [(e.fact, e.time) for e in ordered if isinstance(e.fact, TurnHeld | CallDecided) and e.fact.turn == turn]
        return cls(started, kept)


def released_by(record: Record, digests: Mapping[str, str]) -> dict[str, list[Person]]:
    """The people who released each call (of `digests`, by call id), where people did."""
    released = {}
    for call_id, digest in digests.items():
        hold = _hold(record, call_id, digest)
        if people := _approvers(record, call_id, digest, hold.needs if hold else Needs()):
            released[call_id] = people
    return released


def lacking(
    record: Record,
    digests: Mapping[str, str],
    released: Mapping[str, Sequence[Person]],
    amounts: Mapping[str, Money],
    floor_minor: int,
) -> dict[str, Refusal]:
    """Why a call may not run after all, by call id; empty where the log authorises the turn.

    A call that was held for its digest needs the decisions that its hold asked for. One that moves more than the floor
    needs a decision in any case, whatever policy said.
    """
    missing = {}
    for call_id, digest in digests.items():
        hold = _hold(record, call_id, digest)
        people, moved = released.get(call_id, ()), amounts.get(call_id)
        if hold and not enough(hold.needs, people):
            missing[call_id] = Refusal(
                "not-released", "This was not done: it was held, and the decisions that it needs are not in the log."
            )
        elif moved and moved.amount_minor > floor_minor and not people:
            floor = Money(floor_minor, moved.currency).text()
            missing[call_id] = Refusal(
                "above-floor",
                f"This was not done: {moved.text()} is above {floor}, and above that the shop pays only what a person "
                "has approved. Pass it to a person with escalate_to_human.",
            )
    return missing


def _hold(record: Record, call_id: str, digest: str) -> Hold | None:
    """The last hold of this call for this digest."""
    for fact, _ in reversed(record.said):
        for hold in fact.holds if isinstance(fact, TurnHeld) else ():
            if hold.call_id == call_id and hold.digest == digest:
                return hold
    return None


def _approvers(record: Record, call_id: str, digest: str, needs: Needs) -> list[Person]:
    """Different people who may decide and approved exactly this, each before the hold that stood then expired.

    None if one of them declined before there were enough.
    """
    people: dict[tuple[str, str], Person] = {}
    expires_at: datetime | None = None
    for fact, time in record.said:
        if isinstance(fact, TurnHeld) and any(hold.call_id == call_id for hold in fact.holds):
            expires_at = fact.expires_at
        if (
            not isinstance(fact, CallDecided)
            or fact.call_id != call_id
            or not may_release(fact.by, needs, record.started)
        ):
            continue
        if (expires_at is not None and time >= expires_at) or enough(needs, people.values()):
            continue
        if fact.decision == "decline":
            return []
        if fact.digest == digest and fact.edited is None:
            people.setdefault(who(fact.by), fact.by)
    return list(people.values())
