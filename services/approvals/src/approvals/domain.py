"""May this person decide this call of this run now? And what is owed when nobody does?"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.canonical import sha256
from contracts.edits import day_total, objection
from contracts.events import Draft, Event, event_id
from contracts.facts import CallDecided, DecisionRefused, HoldEscalated, HoldExpired, ReminderSent, TurnHeld
from contracts.history import History
from contracts.identity import Principal
from contracts.money import Money
from contracts.parts import MOST_ATTEMPTS, CallQuote, Json, Needs
from contracts.people import is_the_customer, reaches, same, within_own_limit

from approvals.answers import Known, No
from approvals.holds import HeldCall, HeldTurn, changes, counted, held_turn
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
    "approvals.hold-escalated",
    "approvals.hold-expired",
)
# So many refused attempts of one person are recorded a minute and run; the rest are only answered.
RECORDED_REFUSALS = 5
# Whom a hold goes to that its own role leaves alone.
NEXT_ROLE = "lead"


@dataclass(frozen=True, slots=True)
class Refused:
    """A `No` that goes on record."""

    no: No
    draft: Draft


@dataclass(frozen=True, slots=True)
class Changes:
    """A held call that this person may change. What it would do so changed has to be quoted first."""

    was: CallQuote
    needs: Needs
    held: Event


Outcome = Draft | Changes | Known | Refused | No


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
    if held is None or asked.edited is None:
        return _decided(asked, by, held.event if held else None)
    call = held.calls[asked.call_id]
    if call.quote is None:
        return No(409, "Not to be changed", "The log does not hold its quote. Approve or decline it as it is.")
    return Changes(call.quote, call.hold.needs, held.event)


def changed(
    history: History, asked: Decide, by: Principal, now: datetime, may: Changes, quoted: CallQuote
) -> Draft | Refused | No:
    """What becomes of an approval with changes, now that is known what the call would do with them."""
    if (why := objection(may.was, quoted)) is not None:
        return No(422, "Not to be changed like this", f"{why} Nothing was decided.")
    today = day_total(may.needs.amount_minor, may.was, quoted)
    if not within_own_limit(by, may.needs.model_copy(update={"amount_minor": today})):
        no = No(403, "Above your limit", _above_own_limit(quoted, today, by))
        return _on_record(history, asked, by, no, now)
    return _decided(asked, by, may.held, quoted.arguments)


def _decided(asked: Decide, by: Principal, held: Event | None, arguments: Json | None = None) -> Draft:
    """The fact; `arguments` as the tool read them, where they were changed."""
    fact = CallDecided(
        turn=asked.turn,
        call_id=asked.call_id,
        digest=asked.digest,
        decision=asked.decision,
        by=by.person(),
        note=asked.note,
        edited=arguments,
    )
    return Draft(fact, cause=held, key=_key(asked, by))


def recorded(history: History, decided: Event) -> Known | No:
    """What a decision came to that is in the log now, behind `history`: the way there may have been a long one."""
    turn: int = getattr(decided.fact, "turn", 0)
    if any(event.id == decided.id for event, _ in counted(history.with_event(decided), turn)):
        return Known(decided)
    return No(410, "Recorded too late", "The hold had expired when your decision reached the log. It changed nothing.")


def owed(history: History, now: datetime) -> Draft | None:
    """What an open hold is due by now: a reminder, the next role, or its end; about the calls that nobody settled."""
    held = held_turn(history)
    if held is None or not held.waiting:
        return None
    turn, call_ids = held.fact.turn, [call.hold.call_id for call in held.waiting]
    if now >= held.fact.expires_at:
        return Draft(HoldExpired(turn=turn, call_ids=call_ids), cause=held.event)
    rising = [call.hold.call_id for call in held.waiting if _rises(call)]
    if rising and held.fact.escalate_at is not None and now >= held.fact.escalate_at:
        return Draft(HoldEscalated(turn=turn, call_ids=rising, role=NEXT_ROLE), cause=held.event)
    quiet = [call for call in held.waiting if not call.escalated]
    if quiet and now >= held.fact.remind_at and not held.reminded:
        role = "lead" if any("lead" in _roles(call) for call in quiet) else "approver"
        reminder = ReminderSent(turn=turn, call_ids=[call.hold.call_id for call in quiet], role=role)
        return Draft(reminder, cause=held.event)
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


def _the_same(history: History, asked: Decide, by: Principal) -> Event | None:
    for event, fact in counted(history, asked.turn):
        said = (fact.call_id, fact.digest, fact.decision)
        if said != (asked.call_id, asked.digest, asked.decision) or not same(fact.by, by):
            continue
        # What was recorded is how the tool read the changes; the id is made from how they were sent.
        spelt_alike = event.id == event_id(history.key, event.cause, event.kind, _key(asked, by))
        if fact.edited == asked.edited or (fact.edited is not None and spelt_alike):
            return event
    return None


def _key(asked: Decide, by: Principal) -> str:
    """What tells one decision about a hold from another."""
    said = f"{asked.call_id} {by.issuer} {by.subject} {asked.decision}"
    return said if asked.edited is None else f"{said} {sha256(asked.edited)}"


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
    return (
        _too_late(held, call, by, now)
        or _another_effect(held, call, asked)
        or _not_entitled(call, asked, by)
        or _not_to_be_changed(held, asked)
    )


def _too_late(held: HeldTurn, call: HeldCall, by: Principal, now: datetime) -> No | None:
    if (over := call.over) is not None:
        who = "You" if same(over.fact.by, by) else over.fact.by.subject
        when = f"{_span(now - over.event.time)} ago" if who == "You" else f"{_span(now - over.event.time)} before you"
        if changes(over.fact, call.hold):
            said = f"{who} changed this and approved it {when}. What it would do now is being looked at anew"
        else:
            said = f"{who} {'approved' if over.fact.decision == 'approve' else 'declined'} this {when}"
        return No(409, "Decided already", f"{said}. Your click changed nothing.")
    if (changed := held.changed) is not None:
        detail = f"{changed.fact.by.subject} changed a call of this turn, so all of it is quoted anew. Look at it then."
        return No(409, "Moved on", detail)
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
    needs, edited_by = call.hold.needs, call.hold.edited_by
    if (edited_by is not None and same(edited_by, by)) or call.was_changed_by(by.person()):
        return No(403, "Not yours to decide", "You changed this call, so another person has to decide.")
    if not reaches(by.role, needs.role):
        return No(403, "Above your role", f"This needs the role {needs.role}; yours is {by.role}.")
    # A changed call is held against it by what it was changed into.
    if asked.edited is None and not within_own_limit(by, needs):
        return No(403, "Above your limit", _above_own_limit(call.quote, needs.amount_minor, by))
    higher = needs.one_of_role
    # A changed call is judged anew, and its seats are counted then.
    if asked.decision == "decline" or asked.edited is not None or higher is None or reaches(by.role, higher):
        return None
    seats_left = needs.people - len(call.approvers)
    if seats_left <= 1 and not any(reaches(person.role, higher) for person in call.approvers):
        return No(403, "A lead has to", f"One of the {needs.people} has to be a {higher}, and only one seat is left.")
    return None


def _above_own_limit(quoted: CallQuote | None, today: int | None, by: Principal) -> str:
    currency = quoted.effect.currency if quoted and quoted.effect else None

    def text(minor: int | None) -> str:
        return Money(minor, currency).text() if minor is not None and currency else f"{minor} minor units"

    what = f"With this it is {text(today)} to this customer today"
    if today is None:
        what = "What this moves is not known"
    return f"{what}; your own limit is {text(by.limit_minor)}. Somebody with a higher limit has to decide."


def _not_to_be_changed(held: HeldTurn, asked: Decide) -> No | None:
    # A quote behind the last is refused, so what a person makes of that one would come to nothing.
    if asked.edited is not None and held.fact.attempt >= MOST_ATTEMPTS:
        return No(
            409,
            "Not to be changed again",
            f"This turn was quoted {MOST_ATTEMPTS} times. Approve or decline it as it is.",
        )
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
