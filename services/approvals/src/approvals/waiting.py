"""What is owed of a hold that nobody decides: a reminder, the next role, its end; and when to look."""

from datetime import datetime

from contracts.events import Draft
from contracts.facts import HoldEscalated, HoldExpired, ReminderSent, TurnHeld
from contracts.history import History

from approvals.holds import HeldCall, held_turn, roles_awaited

# Whom a hold goes to that its own role leaves alone.
NEXT_ROLE = "lead"


def owed(history: History, now: datetime) -> Draft | None:
    """What an open hold is due by now, about the calls that nobody settled."""
    held = held_turn(history)
    if held is None or not held.waiting:
        return None
    turn, call_ids = held.fact.turn, [call.hold.call_id for call in held.waiting]
    if now >= held.fact.expires_at:
        return Draft(HoldExpired(turn=turn, call_ids=call_ids, hands_over=True), cause=held.event)
    rising = [call.hold.call_id for call in held.waiting if _rises(call)]
    if rising and held.fact.escalate_at is not None and now >= held.fact.escalate_at:
        return Draft(HoldEscalated(turn=turn, call_ids=rising, role=NEXT_ROLE), cause=held.event)
    quiet = [call for call in held.waiting if not call.escalated]
    if quiet and now >= held.fact.remind_at and not held.reminded:
        # The lowest of the roles that it waits for: of two seats, one a lead's, an approver can fill the other.
        call_ids, role = [call.hold.call_id for call in quiet], roles_awaited(quiet)[0]
        return Draft(ReminderSent(turn=turn, call_ids=call_ids, role=role), cause=held.event)
    return None


def due_at(held: TurnHeld) -> list[datetime]:
    """When a hold may owe something."""
    return [at for at in (held.remind_at, held.escalate_at, held.expires_at) if at is not None]


def next_look(history: History, now: datetime) -> datetime | None:
    """When something will be owed next, for timers that fire early; None if nothing waits."""
    held = held_turn(history)
    if held is None or not held.waiting:
        return None
    return min((at for at in due_at(held.fact) if at > now), default=held.fact.expires_at)


def _rises(call: HeldCall) -> bool:
    """Whether there is a next role to hand the call to, which has not been told so."""
    return call.hold.needs.role != NEXT_ROLE and not call.escalated
