"""What the agent knows of a run, and what it owes it next: a fold of the log."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from contracts.declines import standing
from contracts.events import Event
from contracts.facts import (
    AnswerUnfinished,
    CallDecided,
    CustomerSaid,
    Fact,
    HoldExpired,
    ReplyGiven,
    RunEnded,
    RunStarted,
    TurnExecuted,
    TurnProposed,
    TurnRefused,
)

from agent_runner import declined
from agent_runner.answer import CUT_OFF, LONGEST_TEXT, NO_TEXT, TOO_LONG, UNREADABLE, UNUSABLE_CALLS, Answer, text_of
from agent_runner.transcript import AgentSaid, Customer, Entry, Note, Results

ESCALATE = "escalate_to_human"
MOST_UNFINISHED = 3  # answers in a row that could be neither run nor sent
READS = frozenset(
    fact.kind
    for fact in (
        RunStarted,
        CustomerSaid,
        TurnProposed,
        TurnExecuted,
        TurnRefused,
        AnswerUnfinished,
        ReplyGiven,
        CallDecided,
        HoldExpired,
    )
)

_CONTINUE = "Your answer was cut off at its length limit. Continue it exactly where it stopped; do not repeat anything."
_AGAIN = {
    CUT_OFF: "Your last answer broke off on its way. Nothing of it was run or sent. Please answer again.",
    TOO_LONG: "Your last answer was too long to be handled. Nothing of it was run or sent. Answer again, more briefly.",
    UNREADABLE: "Your last answer could not be read. Nothing of it was run or sent. Please answer again.",
    NO_TEXT: "Your last answer held neither a tool call nor any text. Call a tool, or write the reply to the customer.",
    UNUSABLE_CALLS: "Your last answer's tool calls were too many, or could not be told apart. None was run. Try again.",
}
_SHORTER = (
    "Your last answer was cut off before it was complete. Nothing of it was run or sent. Answer again, more briefly."
)


@dataclass
class Run:
    """A run up to some event.

    due: the event that the agent has yet to answer; None while somebody else is next.
    waiting: the customer's messages that the model has not seen, by ordinal.
    reply: the event of the last reply, by id.
    half: text of a reply that is being continued.
    sources: help articles that the tools showed, `article#section` by title.
    escalation: the hand-over to a person, once the turn that asked for it has run.
    """

    started: RunStarted
    entries: list[Entry]
    due: Event | None
    steps: int = 0
    cost_micro_usd: int = 0
    turn: int = 0
    open_turn: TurnProposed | None = None
    reply: str | None = None
    unfinished: int = 0
    half: str = ""
    waiting: list[tuple[int, str]] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)
    sources: dict[str, str] = field(default_factory=dict)
    escalation: str | None = None
    ended: bool = False

    @property
    def is_chat(self) -> bool:
        return self.started.ticket.channel == "chat"

    def conversation(self) -> list[Entry]:
        """What the model is to be sent for `due`: nothing that was said after it."""
        if self.due is None:
            return self.entries
        return [*self.entries, *(Customer(text) for ordinal, text in self.waiting if ordinal <= self.due.ordinal)]


@dataclass(frozen=True)
class Ask:
    """The model is to be asked."""

    run: Run


@dataclass(frozen=True, slots=True)
class DayFull:
    """The tenant's day has no room for a model call, in micro-dollars: its budget, what of it is taken, and what the
    call may cost."""

    budget: int
    taken: int
    asked: int


def fold(events: Iterable[Event]) -> Run | None:
    """The run that these events tell, in order; None without a beginning."""
    run: Run | None = None
    for event in events:
        if isinstance(event.fact, RunStarted):
            run = Run(started=event.fact, entries=[event.fact.ticket], due=event)
        elif run is not None and event.fact is not None and not run.ended:
            _take(run, event, event.fact)
    return run


def _take(run: Run, event: Event, fact: Fact) -> None:
    match fact:
        case CustomerSaid():
            run.waiting.append((event.ordinal, fact.text))
            if run.is_chat and run.due is None and run.open_turn is None:
                run.due = event
        case TurnProposed():
            _answered(run, fact)
            run.entries.append(AgentSaid(fact.content))
            run.call_ids |= {call.call_id for call in fact.calls}
            run.turn, run.open_turn, run.due = fact.turn, fact, None
            run.half, run.unfinished = "", 0
        case TurnExecuted() | TurnRefused() if run.open_turn is not None and run.open_turn.turn == fact.turn:
            results = {result.call_id: result for result in fact.results}
            run.entries.append(Results(run.open_turn.calls, results))
            if isinstance(fact, TurnExecuted):
                run.escalation = _escalation(run.open_turn, fact) or run.escalation
                run.sources |= _sources(fact)
            run.open_turn, run.due = None, event
        case AnswerUnfinished():
            _answered(run, fact)
            run.entries += _unfinished(fact)
            run.half += text_of(fact.content)
            run.unfinished, run.due = run.unfinished + 1, event
        case ReplyGiven():
            _answered(run, fact)
            run.entries.append(AgentSaid(fact.content))
            run.half, run.unfinished, run.reply = "", 0, event.id
            owed = not run.is_chat or run.escalation is not None or bool(run.waiting)
            run.due = event if owed else None
        case _ if fact.terminal:
            run.ended, run.due = True, None


def _answered(run: Run, fact: TurnProposed | AnswerUnfinished | ReplyGiven) -> None:
    """Counts a model call, and puts what it was sent before what it said; later messages go on waiting."""
    run.steps += 1
    run.cost_micro_usd += fact.cost_micro_usd
    run.entries = run.conversation()
    if run.due is not None:
        run.waiting = [(ordinal, text) for ordinal, text in run.waiting if ordinal > run.due.ordinal]


def _unfinished(fact: AnswerUnfinished) -> list[Entry]:
    if fact.next == "continue":
        note: list[Entry] = [] if fact.stop_reason == "pause_turn" else [Note(_CONTINUE)]
        return [AgentSaid(fact.content), *note]
    return [Note(_AGAIN.get(fact.stop_reason, _SHORTER))]


def _escalation(proposed: TurnProposed, executed: TurnExecuted) -> str | None:
    done = {result.call_id for result in executed.results if not result.is_error}
    for call in proposed.calls:
        if call.tool == ESCALATE and call.call_id in done:
            summary, reason = (str(call.arguments.get(name, "")).strip() for name in ("summary", "reason"))
            return (
                "\n\n".join(filter(None, (summary, reason and f"Why: {reason}")))[:LONGEST_TEXT]
                or "No summary was given."
            )
    return None


def _sources(executed: TurnExecuted) -> dict[str, str]:
    shown = [source for result in executed.results for source in result.data.get("citations", ())]
    # The best passage of an article comes first, and is the one that is cited.
    return {source["title"]: f"{source['article']}#{source['section']}" for source in reversed(shown)}


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


def ended(
    run: Run,
    status: Literal["resolved", "escalated", "budget_exhausted", "failed"],
    reason: str,
    *,
    handover: str | None = None,
    spent: tuple[int, int] | None = None,
) -> RunEnded:
    """The run's end; `spent` where the last call is not yet a fact: steps and micro-dollars."""
    steps, cost = spent or (run.steps, run.cost_micro_usd)
    return RunEnded(status=status, reason=reason, steps=steps, cost_micro_usd=cost, handover=handover)


def out_of_steps(run: Run) -> RunEnded:
    most = run.started.limits.max_steps
    reason = f"The agent used all of its {most} steps without finishing. A person must go on from here."
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def out_of_money(run: Run) -> RunEnded:
    reason = (
        f"The agent has spent {_usd(run.cost_micro_usd)} of the run's "
        f"{_usd(run.started.limits.max_cost_micro_usd)}, and what is left does not pay for another step. "
        "A person must go on from here, or start a run with a higher limit."
    )
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def out_of_days_money(run: Run, full: DayFull) -> RunEnded:
    reason = (
        f"The model calls of the whole tenant may cost {_usd(full.budget)} a day (UTC). {_usd(full.taken)} of that is "
        f"spent or reserved today, and the next step may cost {_usd(full.asked)}, so the model was not asked. Nothing "
        "was done in this step; what was done before stays done. A person must go on with the ticket, or an admin "
        "raises the budget (`turngate budget --day`) and somebody starts the run again."
    )
    return ended(run, "budget_exhausted", reason, handover=run.escalation)


def _usd(micro_usd: int) -> str:
    return f"${micro_usd / 1_000_000:.4f}"


def _why_given_up(fact: AnswerUnfinished) -> str:
    if fact.stop_reason == "model_context_window_exceeded":
        return "The conversation has grown too long for the model. A person must go on from here."
    why = f"The model did not finish {MOST_UNFINISHED} answers in a row ({fact.stop_reason})."
    return f"{why} A person must go on from here."
