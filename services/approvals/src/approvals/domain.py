"""May this person decide this call of this run now?"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts import entitlement
from contracts.answers import No, no_such
from contracts.asks import AskDecide
from contracts.canonical import sha256
from contracts.edits import day_total, objection
from contracts.entitlement import Bar, Held
from contracts.events import Draft, Event, event_id
from contracts.facts import CallDecided, DecisionRefused, RunStarted
from contracts.history import History
from contracts.identity import Principal
from contracts.kill_switch import Stop
from contracts.parts import MOST_ATTEMPTS, CallQuote, Json, Needs
from contracts.people import same

from approvals.answers import Recorded
from approvals.holds import HeldCall, HeldTurn, counted, held_turn, is_changed_by, roles_awaited

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


@dataclass(frozen=True, slots=True)
class NoOnRecord:
    """A `No` that is a fact of the run."""

    no: No
    draft: Draft


@dataclass(frozen=True, slots=True)
class MayChange:
    """A held call that this person may change. What it would do so changed has to be quoted first."""

    was: CallQuote
    needs: Needs
    held: Event


Outcome = Draft | MayChange | Recorded | NoOnRecord | No


def decide(history: History, asked: AskDecide, by: Principal, now: datetime, stops: Sequence[Stop] = ()) -> Outcome:
    """What becomes of a decision that someone who may decide at all asks for. `stops` are those that stand."""
    if history.started is None:
        return no_such("run")
    held = held_turn(history, asked.turn)
    call = held.calls.get(asked.call_id) if held else None
    if (before := _said_before(history, held, asked, by, now)) is not None:
        return before
    no = _why_not(history, held, call, asked, by, now) or _stopped(held, asked, stops)
    if no is not None:
        return _on_record(history, asked, by, no, now)
    if held is None or call is None or asked.edited is None:
        return _decided(asked, by, held.event if held else None)
    if call.quote is None:
        return No(409, "Not to be changed", "The log does not hold its quote. Approve or decline it as it is.")
    return MayChange(call.quote, call.hold.needs, held.event)


def decide_changed(
    history: History,
    asked: AskDecide,
    by: Principal,
    now: datetime,
    may: MayChange,
    quoted: CallQuote,
    stops: Sequence[Stop] = (),
) -> Draft | NoOnRecord | No:
    """What becomes of an approval with changes, now that is known what the call would do with them."""
    locale = (history.started.locale if history.started else None) or ""
    held = held_turn(history, asked.turn)
    if held and (stopped := held.whole.with_quote(quoted).stopped(asked.call_id, stops)) is not None:
        return _on_record(history, asked, by, _because(stopped.detail), now)
    if quoted.facts.stopped is not None:
        return _on_record(history, asked, by, _because(quoted.facts.stopped), now)
    if (why := objection(may.was, quoted, locale)) is not None:
        return No(422, "Not to be changed like this", f"{why} Nothing was decided.")
    today = day_total(may.needs.amount_minor, may.was, quoted)
    if (bar := entitlement.above_own_limit(today, quoted, by, locale)) is not None:
        return _on_record(history, asked, by, _barred(bar), now)
    return _decided(asked, by, may.held, quoted.arguments)


def _decided(asked: AskDecide, by: Principal, held: Event | None, arguments: Json | None = None) -> Draft:
    """The fact; `arguments` as the tool read them, where they were changed."""
    fact = CallDecided(
        turn=asked.turn,
        call_id=asked.call_id,
        digest=asked.digest,
        decision=asked.decision,
        by=by.person(),
        note=asked.note,
        edited=arguments,
        hands_over=True if asked.decision == "decline" else None,
    )
    return Draft(fact, cause=held, key=_key(asked, by))


def recorded(history: History, decided: Event) -> Recorded | No:
    """What a decision came to that is in the log now, behind `history`: the way there may have been a long one."""
    turn: int = getattr(decided.fact, "turn", 0)
    if any(event.id == decided.id for event, _ in counted(history.with_event(decided), turn)):
        return Recorded(decided)
    return No(410, "Recorded too late", "The hold had expired when your decision reached the log. It changed nothing.")


# The same again


def _said_before(
    history: History, held: HeldTurn | None, asked: AskDecide, by: Principal, now: datetime
) -> Recorded | None:
    """The fact of the same decision by the same person, and what is left to do where its call waits again.

    None where there is no such fact, or where it fills no seat of what is held now and they may say it anew.
    """
    before = _the_same(history, asked, by)
    if before is None:
        return None
    waiting = held.waiting if held is not None and now < held.fact.expires_at else []
    call = next((call for call in waiting if call.hold.call_id == asked.call_id), None)
    if call is None or history.started is None:
        return Recorded(before, repeated=True)
    if any(decision.event.id == before.id for decision in call.decisions):
        left = " and ".join(f"{'an' if role[0] in 'aeiou' else 'a'} {role}" for role in roles_awaited([call]))
        detail = f"Your approval stands, and nothing new was recorded. The call still waits for somebody else: {left}."
    elif asked.digest != call.hold.digest:
        detail = "What this call would do has changed since you decided, and is held anew. Reload and look again."
    elif (bar := _bar(history.started, call, asked, by)) is not None:
        detail = f"You have said this before, and it is no longer enough: nothing new was recorded. {bar.detail}"
    else:
        return None
    return Recorded(before, repeated=True, detail=detail)


def _the_same(history: History, asked: AskDecide, by: Principal) -> Event | None:
    for event, fact in reversed(counted(history, asked.turn)):
        said = (fact.call_id, fact.digest, fact.decision)
        if said != (asked.call_id, asked.digest, asked.decision) or not same(fact.by, by):
            continue
        # What was recorded is how the tool read the changes; the id is made from how they were sent.
        spelt_alike = event.id == event_id(history.key, event.cause, event.kind, _key(asked, by))
        if fact.edited == asked.edited or (fact.edited is not None and spelt_alike):
            return event
    return None


def _key(asked: AskDecide, by: Principal) -> str:
    """What tells one decision about a hold from another."""
    said = f"{asked.call_id} {by.issuer} {by.subject} {asked.decision}"
    return said if asked.edited is None else f"{said} {sha256(asked.edited)}"


# Why not


def _why_not(
    history: History, held: HeldTurn | None, call: HeldCall | None, asked: AskDecide, by: Principal, now: datetime
) -> No | None:
    """The first reason why this decision may not be recorded; None if it may."""
    started = history.started
    if started is None:
        return None
    part = entitlement.part_in(started.requested_by, started.ticket.customer, by, call.quote if call else None)
    if part is not None:
        return _barred(part)
    if history.end is not None:
        return No(409, "The run has ended", f"The run ended ({history.end.name}). Your click changed nothing.")
    if held is None or call is None:
        return No(404, "No such held call", f"Turn {asked.turn} of {history.key.run} holds no call {asked.call_id}.")
    if (no := _too_late(held, call, by, now) or _another_effect(held, call, asked)) is not None:
        return no
    if (bar := _bar(started, call, asked, by)) is not None:
        return _barred(bar)
    return _not_to_be_changed(held, asked)


def _too_late(held: HeldTurn, call: HeldCall, by: Principal, now: datetime) -> No | None:
    if (over := call.over) is not None:
        who = "You" if same(over.fact.by, by) else over.fact.by.subject
        when = f"{_span(now - over.event.time)} ago" if who == "You" else f"{_span(now - over.event.time)} before you"
        if is_changed_by(call.hold, over.fact):
            said = f"{who} changed this and approved it {when}. What it would do now is being looked at anew"
        else:
            said = f"{who} {'approved' if over.fact.decision == 'approve' else 'declined'} this {when}"
        return No(409, "Decided already", f"{said}. Your click changed nothing.")
    if (changed := held.changed_by) is not None:
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


def _another_effect(held: HeldTurn, call: HeldCall, asked: AskDecide) -> No | None:
    if not held.open:
        return No(409, "Moved on", "This turn no longer waits. Reload to see what became of it; nothing was changed.")
    if asked.digest != call.hold.digest:
        return No(
            409, "Another effect", "What this call would do has changed since you were shown it. Reload and look again."
        )
    return None


def paid_meanwhile(history: History, asked: AskDecide, stops: Sequence[Stop]) -> CallQuote | None:
    """The call whose customer may have been paid more by other runs since it was quoted, where a stop looks at that."""
    held = held_turn(history, asked.turn)
    call = held.calls.get(asked.call_id) if held else None
    if call is None or call.quote is None or asked.decision != "approve":
        return None
    looks = any(stop.above_minor is not None and stop.tool in (None, call.quote.tool) for stop in stops)
    return call.quote if looks and call.quote.facts.refunded_today_minor is not None else None


def stopped_by_now(
    history: History, asked: AskDecide, by: Principal, now: datetime, quoted: CallQuote
) -> NoOnRecord | No | None:
    """Why an approval of what is quoted like this by now is not taken; None if nothing stops it."""
    if quoted.facts.stopped is None:
        return None
    why = f"{quoted.facts.stopped} Approve it once the stop is lifted. It can be declined."
    return _on_record(history, asked, by, _because(why), now)


def _stopped(held: HeldTurn | None, asked: AskDecide, stops: Sequence[Stop]) -> No | None:
    """An approval is not spent on what would be refused; a decline is the safe word."""
    if held is None or asked.decision != "approve":
        return None
    # What is changed is looked at as it would be then.
    stopped = held.whole.stopped(asked.call_id, stops, changed=asked.edited is not None)
    return _because(stopped.detail) if stopped else None


def _because(stopped: str) -> No:
    return No(409, "Stopped", f"Your approval was not recorded, and nothing was done. {stopped}")


def _bar(started: RunStarted, call: HeldCall, asked: AskDecide, by: Principal) -> Bar | None:
    customer, approvers = started.ticket.customer, tuple(call.approvers)
    locale = started.locale or ""
    held = Held(started.requested_by, customer, call.hold, call.quote, call.editors, approvers, locale)
    return entitlement.bar(held, by, asked.decision if asked.edited is None else "change")


def _barred(bar: Bar) -> No:
    return No(403, bar.title, bar.detail)


def _not_to_be_changed(held: HeldTurn, asked: AskDecide) -> No | None:
    # A quote behind the last is refused, so what a person makes of that one would come to nothing.
    if asked.edited is not None and held.fact.attempt >= MOST_ATTEMPTS:
        return No(
            409,
            "Not to be changed again",
            f"This turn was quoted {MOST_ATTEMPTS} times. Approve or decline it as it is.",
        )
    return None


def _on_record(history: History, asked: AskDecide, by: Principal, no: No, now: datetime) -> NoOnRecord | No:
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
    return NoOnRecord(no, Draft(refused, cause=None, key=f"{by.issuer} {by.subject} {len(times)}"))


def _span(length: timedelta) -> str:
    """`3 s`, `4 min`, `2 h`: how long ago, for a person."""
    seconds = max(int(length.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 3600 else f"{seconds // 3600} h"
