"""What the agent owes a run next, and what a model's answer comes to in it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from contracts.declines import standing
from contracts.events import Event
from contracts.facts import AnswerUnfinished, Fact, ReplyGiven, RunEnded, TurnProposed

from agent_runner import declined
from agent_runner.answer import LONGEST_TEXT, UNUSABLE_CALLS, Answer
from agent_runner.endings import ended, out_of_steps
from agent_runner.run import Run, fold

MOST_UNFINISHED = 3  # answers in a row that could be neither run nor sent


@dataclass(frozen=True)
class Ask:
    """The model is to be asked."""

    run: Run


def _cited(text: str, sources: dict[str, str]) -> list[str]:
    """The articles that a reply names."""
    words = text.casefold()
    return [source for title, source in sources.items() if title.casefold() in words]


def next_step(events: Iterable[Event], event: Event) -> Ask | RunEnded | None:
    """What the agent owes the run because of `event`; None if that was dealt with, or somebody else is next."""
    events = tuple(events)
    run = fold(events)
    if run is None or run.due is None or run.due.id != event.id:
        return None
    if isinstance(event.fact, ReplyGiven):
        if run.escalation is not None:
            return ended(run, "escalated", "The agent handed this over to a person.", handover=run.escalation)
        if not run.is_chat:
            return _answered_for_good(run, events, "The agent replied to the customer.")
    if isinstance(event.fact, AnswerUnfinished) and event.fact.next == "end":
        return ended(run, "escalated", _why_given_up(event.fact), handover=run.escalation or _why_given_up(event.fact))
    if run.steps >= run.started.limits.max_steps:
        return out_of_steps(run)
    return Ask(run)


def word_of(run: Run, answer: Answer) -> Fact:
    """The fact that the model's answer is, in a run whose `due` it answers."""
    paid: dict[str, Any] = {
        "usage": answer.usage,
        "cost_micro_usd": answer.cost_micro_usd,
        "request_digest": answer.request_digest,
    }
    if answer.stop_reason == "refusal":
        why = f"The model declined to go on{f' ({answer.detail})' if answer.detail else ''}."
        spent = (run.steps + 1, run.cost_micro_usd + answer.cost_micro_usd)
        return ended(run, "escalated", why, handover=run.escalation or why, spent=spent)
    calls = answer.calls
    if calls and run.call_ids.isdisjoint(call.call_id for call in calls):
        return TurnProposed(
            turn=run.turn + 1,
            agent=run.started.profile,
            content=answer.content,
            calls=calls,
            stop_reason=answer.stop_reason,
            tools_digest=answer.tools_digest,
            **paid,
        )
    if not calls and answer.content and answer.stop_reason in ("end_turn", "stop_sequence", "tool_use"):
        text = (run.half + answer.text)[:LONGEST_TEXT]
        cited = _cited(text, run.sources)
        return ReplyGiven(content=answer.content, text=text, stop_reason=answer.stop_reason, citations=cited, **paid)
    content, reason = ([], UNUSABLE_CALLS) if calls else (answer.content, answer.stop_reason)
    hopeless = run.unfinished + 1 >= MOST_UNFINISHED or reason == "model_context_window_exceeded"
    after = "end" if hopeless else "continue" if content else "retry"
    return AnswerUnfinished(content=content, stop_reason=reason, next=after, **paid)


def awaits_customer(events: Iterable[Event], reply: str) -> bool:
    """Whether a chat stands still because nobody has said anything since the reply of that event id."""
    run = fold(events)
    return run is not None and not run.ended and run.due is None and run.open_turn is None and run.reply == reply


def overdue(events: Iterable[Event], since: Event) -> RunEnded | None:
    """The end of a run that has gone on for too long since it began, or of a chat since its last reply; else None."""
    events = tuple(events)
    run = fold(events)
    if run is None or run.ended:
        return None
    if isinstance(since.fact, ReplyGiven):
        if not awaits_customer(events, since.id):
            return None
        return _answered_for_good(run, events, "The customer said nothing more.")
    reason = "The run was still not finished after the longest time that a run may take. A person must go on from here."
    return ended(run, "escalated", reason, handover=run.escalation or reason)


def _answered_for_good(run: Run, events: Iterable[Event], reason: str) -> RunEnded:
    """The end of a run whose customer has their answer: with a person where a decline stands."""
    if declines := standing(events):
        return ended(run, "escalated", declined.why(declines), handover=declined.handover(declines))
    return ended(run, "resolved", reason)


def abandoned(events: Iterable[Event], service: str, kind: str, reference: str) -> RunEnded | None:
    """The end of a run of which some service could not handle a fact; None if it has ended."""
    run = fold(events)
    if run is None or run.ended:
        return None
    reason = (
        f"The {service} service could not deal with {kind} after several tries, so the run was stopped. What was done "
        f"before stays done. A person must go on from here; the log file has the cause under {reference}."
    )
    return ended(run, "failed", reason)


def _why_given_up(fact: AnswerUnfinished) -> str:
    if fact.stop_reason == "model_context_window_exceeded":
        return "The conversation has grown too long for the model. A person must go on from here."
    why = f"The model did not finish {MOST_UNFINISHED} answers in a row ({fact.stop_reason})."
    return f"{why} A person must go on from here."
