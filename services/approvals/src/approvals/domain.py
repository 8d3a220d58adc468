"""May this person decide this call of this run now? And what is owed when nobody does?"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.events import Draft, Event
from contracts.facts import CallDecided, DecisionRefused, HoldExpired, ReminderSent
from contracts.history import History
from contracts.identity import Principal
from contracts.people import is_the_customer, reaches, same

from approvals.holds import HeldCall, HeldTurn, counted, held_turn
from approvals.requests import Decide

READS = (
    "desk.run-started",
    "tools.turn-quoted",
    "policy.turn-forwarded",
    "policy.turn-held",
    "policy.turn-refused",
    "approvals.call-decided",
    "approvals.decision-refused",
    "approvals.reminder-sent",
    "approvals.hold-expired",
)
# So many refused attempts of one person are recorded a minute and run; the rest are only answered.
RECORDED_REFUSALS = 5


@dataclass(frozen=True, slots=True)
class No:
    """A decision that changes nothing: an HTTP status, and why, for the person."""

    status: int
    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Known:
    """The same decision by the same person is in the log already."""

    event: Event


@dataclass(frozen=True, slots=True)
class Refused:
    """A `No` that goes on record."""

    no: No
    draft: Draft


Outcome = Draft | Known | Refused | No


def decide(history: History, asked: Decide, by: Principal, now: datetime) -> Outcome:
    """What becomes of a decision that someone who may decide at all asks for."""
    if history.started is None:
        return No(404, "No such run", f"There is no run {history.key.run}.")
    if (before := _the_same(history, asked, by)) is not None:
        return Known(before)
    held = held_turn(history, asked.turn)
    no = _objection(history, held, asked, by, now)
    if no is not None:
        return _on_record(history, asked, by, no, now)
    return Draft(
        CallDecided(
            turn=asked.turn,
            call_id=asked.call_id,
            digest=asked.digest,
            decision=asked.decision,
            by=by.person(),
            note=asked.note,
        ),
        cause=held.event if held else None,
        key=f"{asked.call_id} {by.issuer} {by.subject} {asked.decision}",
    )


def recorded(history: History, decided: Event) -> Known | No:
    """What a decision came to that is in the log now, behind `history`: the way there may have been a long one."""
    turn: int = getattr(decided.fact, "turn", 0)
    if any(event.id == decided.id for event, _ in counted(history.with_event(decided), turn)):
        return Known(decided)
    return No(410, "Recorded too late", "The hold had expired when your decision reached the log. It changed nothing.")


def owed(history: History, now: datetime) -> Draft | None:
    """What an open hold is due by now: a reminder, or its end. Both are about the calls that nobody has settled."""
    held = held_turn(history)
    if held is None or not held.waiting:
        return None
    call_ids = [call.hold.call_id for call in held.waiting]
    if now >= held.fact.expires_at:
        return Draft(HoldExpired(turn=held.fact.turn, call_ids=call_ids), cause=held.event)
    if now >= held.fact.remind_at and not held.reminded:
        role = "lead" if any("lead" in _roles(call) for call in held.waiting) else "approver"
        return Draft(ReminderSent(turn=held.fact.turn, call_ids=call_ids, role=role), cause=held.event)
    return None


def next_look(history: History, now: datetime) -> datetime | None:
    """When something will be owed next, for timers that fire early; None if nothing waits."""
    held = held_turn(history)
    if held is None or not held.waiting:
        return None
    return held.fact.remind_at if now < held.fact.remind_at else held.fact.expires_at


def _the_same(history: History, asked: Decide, by: Principal) -> Event | None:
    for event, fact in counted(history, asked.turn):
        said = (fact.call_id, fact.digest, fact.decision)
        if said == (asked.call_id, asked.digest, asked.decision) and same(fact.by, by):
            return event
    return None


def _objection(history: History, held: HeldTurn | None, asked: Decide, by: Principal, now: datetime) -> No | None:
    """The first reason why this decision may not be recorded; None if it may."""
    started = history.started
    call = held.calls.get(asked.call_id) if held else None
    if started is not None and same(by, started.requested_by):
        return No(403, "Not yours to decide", "You started this run, so another person has to decide.")
    if started is not None and is_the_customer(by, started.ticket.customer):
        return No(403, "Not yours to decide", "This is your own ticket, so another person has to decide.")
    if history.end is not None:
        return No(409, "The run has ended", f"The run ended ({history.end.name}). Your click changed nothing.")
    if held is None or call is None:
        return No(404, "No such held call", f"Turn {asked.turn} of {history.key.run} holds no call {asked.call_id}.")
    return _too_late(held, call, by, now) or _another_effect(held, call, asked) or _not_entitled(call, asked, by)


def _too_late(held: HeldTurn, call: HeldCall, by: Principal, now: datetime) -> No | None:
    if (over := call.over) is not None:
        did = "approved" if over.fact.decision == "approve" else "declined"
        ago = _span(now - over.event.time)
        said = (
            f"You {did} this {ago} ago"
            if same(over.fact.by, by)
            else f"{over.fact.by.subject} {did} this {ago} before you"
        )
        return No(409, "Decided already", f"{said}. Your click changed nothing.")
    if call.expired or now >= held.fact.expires_at:
        expired = held.fact.expires_at.strftime("%Y-%m-%d %H:%M:%S UTC")
        return No(410, "Expired", f"This could be decided until {expired}. It counts as declined: nothing was done.")
    mine = next((decision for decision in call.decisions if same(decision.fact.by, by)), None)
    if mine is not None:
        return No(
            409,
            "Decided already",
            f"You approved this {_span(now - mine.event.time)} ago. Another person has to decide the rest.",
        )
    return None


def _another_effect(held: HeldTurn, call: HeldCall, asked: Decide) -> No | None:
    if not held.open:
        return No(409, "Moved on", "This turn no longer waits. Reload to see what became of it; nothing was changed.")
    if asked.digest != call.hold.digest:
        return No(
            409, "Another effect", "What this call would do has changed since you were shown it. Reload and look again."
        )
    return None


def _not_entitled(call: HeldCall, asked: Decide, by: Principal) -> No | None:
    needs = call.hold.needs
    if not reaches(by.role, needs.role):
        return No(403, "Above your role", f"This needs the role {needs.role}; yours is {by.role}.")
    higher = needs.one_of_role
    if asked.decision == "decline" or higher is None or reaches(by.role, higher):
        return None
    seats_left = needs.people - len(call.approvers)
    if seats_left <= 1 and not any(reaches(person.role, higher) for person in call.approvers):
        return No(403, "A lead has to", f"One of the {needs.people} has to be a {higher}, and only one seat is left.")
    return None


def _on_record(history: History, asked: Decide, by: Principal, no: No, now: datetime) -> Refused | No:
    times = [event.time for event, fact in history.of(DecisionRefused) if same(fact.by, by)]
    if sum(time > now - timedelta(minutes=1) for time in times) >= RECORDED_REFUSALS:
        return no
    refused = DecisionRefused(
        turn=asked.turn,
        call_id=asked.call_id,
        by=by.person(),
        decision=asked.decision,
        reason=f"{no.title}: {no.detail}",
    )
    return Refused(no, Draft(refused, cause=None, key=f"{by.issuer} {by.subject} {len(times)}"))


def _roles(call: HeldCall) -> tuple[str, str | None]:
    return call.hold.needs.role, call.hold.needs.one_of_role


def _span(length: timedelta) -> str:
    """`3 s`, `4 min`, `2 h`: how long ago, for a person."""
    seconds = max(int(length.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"
