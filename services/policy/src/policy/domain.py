"""What policy knows of a run, and what it says next of the turn that was quoted last."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from contracts.declines import WHAT_FOLLOWS
from contracts.events import Draft, Event
from contracts.facts import CallDecided, HoldExpired, TurnForwarded, TurnHeld, TurnQuoted, TurnRefused
from contracts.history import History
from contracts.parts import MOST_ATTEMPTS, CallQuote, CallResult, Hold, Needs, Pack, Person, Verdict
from contracts.people import stricter

from policy import rules
from policy.decisions import Decisions, Declined, Released
from policy.limits import About
from policy.pack import PolicyPack
from policy.rules import AskPeople, Judgement, Refuse, Run

READS = (
    "desk.run-started",
    "tools.turn-quoted",
    "policy.turn-forwarded",
    "policy.turn-held",
    "policy.turn-refused",
    "approvals.call-decided",
    "approvals.hold-expired",
)
NO_PACK = Pack(name="none", version=0, digest=hashlib.sha256().hexdigest())

# The one refusal that the same call may get past: nothing is wrong with it but who was asked about it.
POLICY_CHANGED = Refuse(
    "policy-changed", "the shop's policy changed while this waited, and now asks for other people than were asked."
)
_ONCE_MORE = "Nothing was done. If it is still needed, propose it once more: it is then judged by the new policy."
_WITHOUT_IT = "Ask for this one again without the refused call if it is still needed."

Outcome = Run | Released | Declined | Hold | Refuse
Answer = TurnForwarded | TurnHeld | TurnRefused


@dataclass(frozen=True, slots=True)
class Turn:
    """The last quote, and what was said of it since; `decisions` are those of the turn's earlier attempts too."""

    quoted: TurnQuoted
    quote_id: str
    about: About
    held: TurnHeld | None
    answered: bool
    decisions: Decisions


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what the rules say of it (nothing where it was declined), and what becomes of it as things stand."""

    quote: CallQuote
    judgement: Judgement | None
    outcome: Outcome


def last_turn(history: History) -> Turn | None:
    """The turn that was quoted last, or None before the first quote."""
    quote: Event | None = None
    quoted: TurnQuoted | None = None
    events: list[Event] = []
    for event in reversed(history.events):
        if isinstance(event.fact, TurnQuoted):
            if quoted is None:
                quote, quoted = event, event.fact
            elif event.fact.turn != quoted.turn:
                break
        events.append(event)
    started = history.started
    if quote is None or quoted is None or started is None:
        return None
    # What lies between the turn before and this quote still speaks of the turn before.
    events = [event for event in reversed(events) if getattr(event.fact, "turn", None) == quoted.turn]
    since = [event.fact for event in events if event.ordinal > quote.ordinal]
    return Turn(
        quoted=quoted,
        quote_id=quote.id,
        about=About(history.key.tenant, started.profile, started.ticket.customer.id, quote.time, started.locale or ""),
        held=next((fact for fact in since if isinstance(fact, TurnHeld)), None),
        answered=any(isinstance(fact, TurnForwarded | TurnRefused) for fact in since),
        decisions=Decisions(events, started),
    )


def react(history: History, event: Event, pack: PolicyPack | None) -> Draft | None:
    """What policy says of `event`: a verdict over a new quote, or the end of a hold once all its calls are settled.

    Without a pack nothing runs.
    """
    turn = last_turn(history)
    if turn is None or turn.answered or history.end is not None:
        return None
    match event.fact:
        case TurnQuoted():
            due = event.id == turn.quote_id and turn.held is None
        case CallDecided(turn=number) | HoldExpired(turn=number):
            due = number == turn.quoted.turn and turn.held is not None
        case _:
            due = False
    if not due:
        return None
    answer = decide(turn, pack, event.time) if pack else _unruled(turn.quoted)
    return Draft(answer, cause=event) if answer else None


def decide(turn: Turn, pack: PolicyPack, now: datetime) -> Answer | None:
    """The turn's fate as things stand; None while people, or a changed call's quote, are waited for. A new hold's clock
    starts at `now`."""
    if turn.decisions.requoting:
        return None
    calls = _calls(turn, pack)
    if any(isinstance(call.outcome, Refuse) for call in calls):
        return _refused(turn.quoted, calls, pack)
    if any(isinstance(call.outcome, Hold) for call in calls):
        return None if turn.held else _held(turn.quoted, calls, pack, now)
    return _forwarded(turn.quoted, calls, pack)


def _calls(turn: Turn, pack: PolicyPack) -> list[Call]:
    quotes = turn.quoted.quotes
    declined = {quote.call_id: no for quote in quotes if (no := turn.decisions.declined(quote.call_id))}
    # What was declined will not run, so it counts towards no sum.
    going = [quote for quote in quotes if quote.call_id not in declined]
    if turn.quoted.attempt > MOST_ATTEMPTS and not any(quote.facts.stopped is not None for quote in going):
        changing = Refuse("keeps-changing", "The order keeps changing while this turn waits to run.")
        return [Call(quote, changing, changing) for quote in quotes]
    judged = iter(rules.judge(going, pack, turn.about))
    return [
        Call(quote, None, no) if (no := declined.get(quote.call_id)) else _call(quote, next(judged), turn)
        for quote in quotes
    ]


def _call(quote: CallQuote, judgement: Judgement, turn: Turn) -> Call:
    """What people have settled about a call that is theirs to settle; else the rules' own word."""
    if isinstance(judgement, Refuse):
        return Call(quote, judgement, judgement)
    judgement = _as_changed(quote, judgement, turn.decisions)
    asked = next((hold for hold in turn.held.holds if hold.call_id == quote.call_id), None) if turn.held else None
    if isinstance(judgement, Run):
        return Call(quote, judgement, (turn.decisions.of(asked) or asked) if asked else judgement)
    now = _hold(quote, judgement, turn.decisions.asked_for_by(quote, judgement.needs))
    settled = turn.decisions.of(now)
    if turn.held is None or isinstance(settled, Declined):
        return Call(quote, judgement, settled or now)
    if asked is None or (settled is None and turn.decisions.of(asked) is not None):
        # Nobody is asked any more for what is wanted now: by its own hold all is settled, or it has none.
        return Call(quote, judgement, settled or POLICY_CHANGED)
    return Call(quote, judgement, turn.decisions.of(asked) or asked)


def _as_changed(quote: CallQuote, judgement: Run | AskPeople, decisions: Decisions) -> Run | AskPeople:
    """A call that a person has changed needs people whatever it is by now: at least those who were asked before."""
    if quote.edited is None or quote.kind == "read" or quote.will_fail is not None:
        return judgement
    before = decisions.asked_before(quote) or Needs(role="lead")
    if isinstance(judgement, AskPeople):
        return replace(judgement, needs=stricter(judgement.needs, before))
    today = judgement.day.minor if judgement.day else (quote.effect.amount_minor or 0 if quote.effect else None)
    moved = before.model_copy(update={"amount_minor": today})
    why = "A person changed this call, so people have to release what it is now."
    return AskPeople("changed-by-a-person", why, moved, judgement.bounds, judgement.instead_of, judgement.day)


def _hold(quote: CallQuote, judgement: AskPeople, edited_by: Person | None) -> Hold:
    return Hold(
        call_id=quote.call_id,
        digest=quote.digest,
        rule=judgement.rule,
        reason=judgement.reason,
        needs=judgement.needs,
        edited_by=edited_by,
    )


def _held(quoted: TurnQuoted, calls: list[Call], pack: PolicyPack, now: datetime) -> TurnHeld:
    times = pack.hold
    escalates = times.escalate_after_seconds
    return TurnHeld(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        holds=[call.outcome for call in calls if isinstance(call.outcome, Hold)],
        will_run=[call.quote.call_id for call in calls if isinstance(call.outcome, Run | Released)],
        expires_at=now + timedelta(seconds=times.expires_after_seconds),
        remind_at=now + timedelta(seconds=times.remind_after_seconds),
        escalate_at=None if escalates is None else now + timedelta(seconds=escalates),
        would_have=_would_have(calls) or None,
    )


def _forwarded(quoted: TurnQuoted, calls: list[Call], pack: PolicyPack) -> TurnForwarded:
    running = [
        (call.judgement, call.outcome.by if isinstance(call.outcome, Released) else ())
        for call in calls
        if isinstance(call.outcome, Run | Released) and isinstance(call.judgement, Run | AskPeople)
    ]
    return TurnForwarded(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        verdicts=[_verdict(call) for call in calls],
        guards=rules.guards(running, pack),
        would_have=_would_have(calls),
    )


def _would_have(calls: list[Call]) -> list[str]:
    """What a pack that enforces would have refused, of the calls that were not declined."""
    return [
        f"{call.quote.call_id} ({call.quote.tool}) would have been refused by {refusal.rule}: {refusal.reason}"
        for call in calls
        if isinstance(call.judgement, Run | AskPeople) and (refusal := call.judgement.instead_of)
    ]


def _verdict(call: Call) -> Verdict:
    call_id, digest = call.quote.call_id, call.quote.digest
    match call.outcome:
        case Declined(rule=rule, reason=reason):
            return Verdict(call_id=call_id, verdict="declined", digest=digest, rule=rule, reason=reason)
        case Released(rule=rule, by=people):
            names = " and ".join(person.subject for person in people)
            return Verdict(call_id=call_id, verdict="run", digest=digest, rule=rule, reason=f"Released by {names}.")
        case Run(rule=rule):
            return Verdict(call_id=call_id, verdict="run", digest=digest, rule=rule)
        case _:
            raise AssertionError(f"{call_id} is not settled: {call.outcome}")


def _refused(quoted: TurnQuoted, calls: list[Call], pack: PolicyPack) -> TurnRefused:
    """Every call gets a result: the refused ones say why, the others that the turn runs whole or not at all."""
    refusals = [call.outcome for call in calls if isinstance(call.outcome, Refuse)]
    again = _ONCE_MORE if set(refusals) == {POLICY_CHANGED} else _WITHOUT_IT
    return TurnRefused(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        rule=refusals[0].rule,
        results=[
            CallResult(call_id=call.quote.call_id, content=_explanation(call.outcome, again), is_error=True)
            for call in calls
        ],
    )


def _unruled(quoted: TurnQuoted) -> TurnRefused:
    """Nobody has said what may run for this tenant, so nothing may."""
    why = "Refused: this shop has no policy yet, so nothing can be done for it. Nothing was done. Do not ask again."
    return TurnRefused(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=NO_PACK,
        rule="no-policy",
        results=[CallResult(call_id=quote.call_id, content=why, is_error=True) for quote in quoted.quotes],
    )


def _explanation(outcome: Outcome, again: str) -> str:
    """`again`: what becomes of a call that was refused for another's sake."""
    if isinstance(outcome, Declined):
        return f"{outcome.reason} {WHAT_FOLLOWS}"
    if outcome == POLICY_CHANGED:
        return f"Not done: {outcome.reason} {_ONCE_MORE}"
    if isinstance(outcome, Refuse):
        instead = " If it is needed, pass it to a person." if outcome.rule == rules.STOPPED else ""
        return (
            f"Refused by the shop's policy: {outcome.reason} Nothing was done. Do not ask for the same again.{instead}"
        )
    return f"Not done: another call of this turn was refused, and a turn runs whole or not at all. {again}"
