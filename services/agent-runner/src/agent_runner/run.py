"""What the agent knows of a run: a fold of the log."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from contracts.events import Event
from contracts.facts import (
    AnswerUnfinished,
    CallDecided,
    CustomerSaid,
    Fact,
    HoldExpired,
    ReplyGiven,
    RunStarted,
    TurnExecuted,
    TurnProposed,
    TurnRefused,
)

from agent_runner.answer import CUT_OFF, LONGEST_TEXT, NO_TEXT, TOO_LONG, UNREADABLE, UNUSABLE_CALLS, text_of
from agent_runner.transcript import AgentSaid, Customer, Entry, Note, Results

ESCALATE = "escalate_to_human"
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
