"""What policy knows of a run, and what it says next of the turn that was quoted last."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.events import Draft, Event
from contracts.facts import (
    CallDecided,
    CallQuote,
    CallResult,
    Hold,
    HoldExpired,
    Pack,
    TurnForwarded,
    TurnHeld,
    TurnQuoted,
    TurnRefused,
    Verdict,
)
from contracts.history import History

from policy import rules
from policy.decisions import Decisions, Declined, Released
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
MOST_ATTEMPTS = 3
NO_PACK = Pack(name="none", version=0, digest=hashlib.sha256().hexdigest())

Outcome = Run | Released | Declined | Hold | Refuse
Answer = TurnForwarded | TurnHeld | TurnRefused


@dataclass(frozen=True, slots=True)
class Turn:
    """The last quote, and what was said of it since; `decisions` are those of the turn's earlier attempts too."""

    quoted: TurnQuoted
    quote_id: str
    held: TurnHeld | None
    answered: bool
    decisions: Decisions


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
    if quote is None or quoted is None or history.started is None:
        return None
    # What lies between the turn before and this quote still speaks of the turn before.
    events = [event for event in reversed(events) if getattr(event.fact, "turn", None) == quoted.turn]
    since = [event.fact for event in events if event.ordinal > quote.ordinal]
    return Turn(
        quoted=quoted,
        quote_id=quote.id,
        held=next((fact for fact in since if isinstance(fact, TurnHeld)), None),
        answered=any(isinstance(fact, TurnForwarded | TurnRefused) for fact in since),
        decisions=Decisions(events, history.started),
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
    """The turn's fate as things stand; None while people are waited for. A new hold's clock starts at `now`."""
    outcomes = _outcomes(turn, pack)
    if any(isinstance(outcome, Refuse) for _, outcome in outcomes):
        return _refused(turn.quoted, outcomes, pack)
    if any(isinstance(outcome, Hold) for _, outcome in outcomes):
        return None if turn.held else _held(turn.quoted, outcomes, pack, now)
    return _forwarded(turn.quoted, outcomes, pack)


def _outcomes(turn: Turn, pack: PolicyPack) -> list[tuple[CallQuote, Outcome]]:
    quotes = turn.quoted.quotes
    if turn.quoted.attempt > MOST_ATTEMPTS:
        changing = Refuse("keeps-changing", "The order keeps changing while this turn waits to run.")
        return [(quote, changing) for quote in quotes]
    declined = {quote.call_id: no for quote in quotes if (no := turn.decisions.declined(quote.call_id))}
    # What was declined will not run, so it counts towards no sum.
    judged = iter(rules.judge([quote for quote in quotes if quote.call_id not in declined], pack))
    return [(quote, declined.get(quote.call_id) or _outcome(quote, next(judged), turn)) for quote in quotes]


def _outcome(quote: CallQuote, judgement: Judgement, turn: Turn) -> Outcome:
    """What people have settled about a call that is theirs to settle; else the rules' own word."""
    asked = next((hold for hold in turn.held.holds if hold.call_id == quote.call_id), None) if turn.held else None
    if isinstance(judgement, Refuse):
        return judgement
    if isinstance(judgement, Run):
        return (turn.decisions.of(asked) or asked) if asked else judgement
    hold = asked or _hold(quote, judgement)
    settled = turn.decisions.of(hold)
    if settled is None and turn.held and not asked:
        # Nobody was asked to release it when the turn was held, so nobody would ever answer.
        return Refuse(
            "policy-changed", "The policy changed while this turn waited, and now asks for a person here too."
        )
    return settled or hold


def _hold(quote: CallQuote, judgement: AskPeople) -> Hold:
    return Hold(
        call_id=quote.call_id,
        digest=quote.digest,
        rule=judgement.rule,
        reason=judgement.reason,
        needs=judgement.needs,
    )


def _held(quoted: TurnQuoted, outcomes: list[tuple[CallQuote, Outcome]], pack: PolicyPack, now: datetime) -> TurnHeld:
    return TurnHeld(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        holds=[outcome for _, outcome in outcomes if isinstance(outcome, Hold)],
        will_run=[quote.call_id for quote, outcome in outcomes if isinstance(outcome, Run | Released)],
        expires_at=now + timedelta(seconds=pack.hold.expires_after_seconds),
        remind_at=now + timedelta(seconds=pack.hold.remind_after_seconds),
    )


def _forwarded(quoted: TurnQuoted, outcomes: list[tuple[CallQuote, Outcome]], pack: PolicyPack) -> TurnForwarded:
    return TurnForwarded(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        verdicts=[_verdict(quote, outcome) for quote, outcome in outcomes],
        guards=rules.guards(
            paying=[quote for quote, outcome in outcomes if isinstance(outcome, Run) and outcome.pays],
            released=[quote for quote, outcome in outcomes if isinstance(outcome, Released)],
            pack=pack,
        ),
    )


def _verdict(quote: CallQuote, outcome: Outcome) -> Verdict:
    match outcome:
        case Declined(rule=rule, reason=reason):
            return Verdict(call_id=quote.call_id, verdict="declined", digest=quote.digest, rule=rule, reason=reason)
        case Released(rule=rule, by=people):
            names = " and ".join(person.subject for person in people)
            return Verdict(
                call_id=quote.call_id, verdict="run", digest=quote.digest, rule=rule, reason=f"Released by {names}."
            )
        case Run(rule=rule):
            return Verdict(call_id=quote.call_id, verdict="run", digest=quote.digest, rule=rule)
        case _:
            raise AssertionError(f"{quote.call_id} is not settled: {outcome}")


def _refused(quoted: TurnQuoted, outcomes: list[tuple[CallQuote, Outcome]], pack: PolicyPack) -> TurnRefused:
    """Every call gets a result: the refused ones say why, the others that the turn runs whole or not at all."""
    refusals = [outcome for _, outcome in outcomes if isinstance(outcome, Refuse)]
    return TurnRefused(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=pack.stamp,
        rule=refusals[0].rule,
        results=[
            CallResult(call_id=quote.call_id, content=_explanation(outcome), is_error=True)
            for quote, outcome in outcomes
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


def _explanation(outcome: Outcome) -> str:
    if isinstance(outcome, Refuse):
        return f"Refused by the shop's policy: {outcome.reason} Nothing was done. Do not ask for the same again."
    return (
        "Not done: another call of this turn was refused, and a turn runs whole or not at all. "
        "Ask for this one again without the refused call if it is still needed."
    )
