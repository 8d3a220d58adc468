"""A run told fact by fact, with the agent answering as it would."""

from datetime import UTC, datetime, timedelta
from typing import Any

from agent_runner.answer import Answer, usable
from agent_runner.domain import Ask, next_step, word_of
from agent_runner.profiles import Profiles
from agent_runner.run import Run, fold
from agent_runner.transcript import Message, messages
from contracts.events import Draft, Event
from contracts.facts import CustomerSaid, Fact, RunEnded, RunStarted, TurnExecuted, TurnProposed, TurnRefused
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.parts import CallResult, Customer, Json, Limits, Pack, Person, Ticket, Usage
from contracts.subjects import RunKey

KEY = RunKey("acme", "TCK-1-1")
DIGEST = "0" * 64
PROMPT = Profiles.load().prompt("support-v2")
ALEX = Person(subject="alex", issuer="https://id.example", role="operator")
ADA = Person(subject="ada", issuer="https://id.example", role="admin")
PACK = Pack(name="acme", version=1, digest=DIGEST)


def started(**changes: Any) -> RunStarted:
    given: Json = {
        "ticket": ticket(),
        "profile": "support",
        "requested_by": ALEX,
        "limits": Limits(max_steps=12, max_cost_micro_usd=1_000_000),
        "model": "claude-sonnet-5-5",
        "prompt_version": "support-v2",
        "policy_pack": "acme",
        "toolset": "shop",
    }
    return RunStarted(**{**given, **changes})


def ticket(**changes: Any) -> Ticket:
    given: Json = {
        "reference": "TCK-1",
        "customer": Customer(email="tom@mail.example", name="Tom Field", id="C-1"),
        "subject": "My jacket",
        "body": "Where is it?",
    }
    return Ticket(**{**given, **changes})


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(call_id: str, tool: str = "get_order", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}


def answer(*content: Json, stop: str | None = None, cost: int = 10, detail: str = "") -> Answer:
    """What the model said, as it would be kept."""
    reason = stop or ("tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn")
    kept, why = usable(list(content), reason)
    return Answer(
        content=kept,
        stop_reason=why,
        usage=Usage(input=1, output=1),
        cost_micro_usd=cost,
        request_digest=DIGEST,
        tools_digest=DIGEST,
        detail=detail,
    )


class Told:
    """A run that grows by what is said in it. `last` is the last event."""

    def __init__(self, begins: RunStarted | None = None) -> None:
        self.now = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
        self.log = MemoryLog(clock=lambda: self.now)
        self.last = self.say(begins or started())

    @property
    def history(self) -> History:
        return self.log.history(KEY)

    @property
    def run(self) -> Run:
        run = fold(self.history.events)
        assert run is not None
        return run

    def say(self, fact: Fact, cause: Event | None = None) -> Event:
        self.now += timedelta(seconds=1)
        self.last = self.log.say(self.history, Draft(fact, cause, key=str(len(self.log.accepted))))
        return self.last

    def owes(self, event: Event | None = None) -> Ask | RunEnded | None:
        """What the agent owes the run because of an event (the last one)."""
        return next_step(self.history.events, event or self.last)

    def answers(self, *content: Json, to: Event | None = None, **how: Any) -> Fact:
        """The model answers what is due; what it said becomes part of the run."""
        due = to or self.last
        step = self.owes(due)
        assert isinstance(step, Ask)
        return self._add(word_of(step.run, answer(*content, **how)), due)

    def reacts(self) -> Fact | None:
        """The agent answers the last event without the model, if it owes it an answer."""
        step = self.owes()
        assert not isinstance(step, Ask)
        return self._add(step, self.last) if step else None

    def _add(self, fact: Fact, cause: Event) -> Fact:
        self.say(fact, cause)
        return fact

    def executes(self, **results: str | CallResult) -> Event:
        """The open turn ran: a text is a call's ordinary result."""
        turn = self.run.open_turn
        assert turn is not None
        return self.say(TurnExecuted(turn=turn.turn, attempt=1, receipt_id="r", results=_results(turn, results)))

    def refuses(self, why: str = "No.") -> Event:
        turn = self.run.open_turn
        assert turn is not None
        results = [CallResult(call_id=call.call_id, content=why, is_error=True) for call in turn.calls]
        return self.say(TurnRefused(turn=turn.turn, attempt=1, pack=PACK, rule="a rule", results=results))

    def customer_says(self, words: str) -> Event:
        return self.say(CustomerSaid(text=words, message_id=f"m{len(self.log.accepted)}"))

    def is_sent(self) -> list[Message]:
        """What the model is sent for what is due."""
        return messages(self.run.conversation(), PROMPT.ticket)


def _results(turn: TurnProposed, given: dict[str, str | CallResult]) -> list[CallResult]:
    found = []
    for made in turn.calls:
        result = given.get(made.call_id, "Done.")
        found.append(result if isinstance(result, CallResult) else CallResult(call_id=made.call_id, content=result))
    return found
