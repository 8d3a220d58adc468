"""What tools owes, by the history alone."""

from datetime import UTC, datetime, timedelta

import pytest
from contracts.events import Draft, Event
from contracts.facts import (
    CallDecided,
    Fact,
    RunCancelled,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.parts import CallQuote, CallResult, Hold, Json, Pack, ToolCall, Usage, Verdict
from contracts.subjects import RunKey
from tools_shop.domain import OwesExecution, OwesQuote, owed

from .shops import OPERATOR, started_for

KEY = RunKey("acme", "TCK-1-1")
DIGEST = "a" * 64
STARTED = started_for("tom@mail.example")
PROPOSED = TurnProposed(
    turn=1, agent="support", content=[], calls=[ToolCall(call_id="a", tool="get_order", arguments={})],
    stop_reason="tool_use", usage=Usage(), cost_micro_usd=0, request_digest=DIGEST, tools_digest=DIGEST,
)  # fmt: skip
ENDED = RunCancelled(by=OPERATOR)


LESS = {"amount_pence": 1}


def quoted(attempt: int = 1, edited: Json | None = None) -> TurnQuoted:
    was = DIGEST if edited else None
    quote = CallQuote(call_id="a", tool="get_order", kind="read", arguments=edited or {}, digest=DIGEST, edited=was)
    return TurnQuoted(turn=1, attempt=attempt, quotes=[quote])


def forwarded(attempt: int = 1) -> TurnForwarded:
    verdict = Verdict(call_id="a", verdict="run", digest=DIGEST, rule="read")
    pack = Pack(name="test", version=1, digest=DIGEST)
    return TurnForwarded(turn=1, attempt=attempt, pack=pack, verdicts=[verdict])


PACK = Pack(name="test", version=1, digest=DIGEST)
LATER = datetime.now(UTC) + timedelta(hours=1)
HELD = TurnHeld(
    turn=1, attempt=1, pack=PACK, expires_at=LATER, remind_at=LATER,
    holds=[Hold(call_id="a", digest=DIGEST, rule="above-limit", reason="much")],
)  # fmt: skip
APPROVED = CallDecided(turn=1, call_id="a", digest=DIGEST, decision="approve", by=OPERATOR)
CHANGED = APPROVED.model_copy(update={"edited": LESS})
REFUSED = TurnRefused(
    turn=1, attempt=1, pack=PACK, rule="test", results=[CallResult(call_id="a", content="x", is_error=True)]
)
EXECUTED = TurnExecuted(turn=1, attempt=1, receipt_id=None, results=[CallResult(call_id="a", content="x")])


def told(*facts: Fact) -> tuple[History, list[Event]]:
    log = MemoryLog()
    events = [log.say(log.history(KEY), Draft(fact, None, str(n))) for n, fact in enumerate(facts)]
    return log.history(KEY), events


@pytest.mark.parametrize(
    ("facts", "heard", "owes"),
    [
        pytest.param([STARTED, PROPOSED], 1, OwesQuote, id="a proposal is owed a quote"),
        pytest.param([STARTED, PROPOSED, quoted()], 1, None, id="which it gets once"),
        pytest.param([STARTED, PROPOSED, ENDED], 1, None, id="and not once the run has ended"),
        pytest.param([STARTED, PROPOSED, quoted(), forwarded()], 3, OwesExecution, id="a forward is owed execution"),
        pytest.param([STARTED, PROPOSED, quoted(), forwarded(), EXECUTED], 3, None, id="which it gets once"),
        pytest.param([STARTED, PROPOSED, quoted(), forwarded(), quoted(2)], 3, None, id="unless it was quoted anew"),
        pytest.param([STARTED, PROPOSED, quoted(), forwarded(2)], 3, None, id="a forward of no quote is owed nothing"),
        pytest.param([STARTED, PROPOSED, forwarded()], 2, None, id="nor is one before the quote"),
        pytest.param([STARTED, forwarded()], 1, None, id="nor one of no turn"),
        pytest.param([PROPOSED], 0, None, id="nothing is owed to a run that nobody started"),
        pytest.param([STARTED, PROPOSED, quoted(), HELD, CHANGED], 4, OwesQuote, id="a changed call is owed a quote"),
        pytest.param([STARTED, PROPOSED, quoted(), HELD, CHANGED, quoted(2, LESS)], 4, None, id="which it gets once"),
        pytest.param([STARTED, PROPOSED, quoted(), CHANGED], 3, None, id="a change of what is not held is not"),
        pytest.param([STARTED, PROPOSED, quoted(), HELD, CHANGED, ENDED], 4, None, id="nor in a run that has ended"),
        pytest.param([STARTED, PROPOSED, quoted(), HELD, CHANGED, REFUSED], 4, None, id="nor of a refused turn"),
        pytest.param([STARTED, PROPOSED, quoted(), HELD, APPROVED], 4, None, id="nor is a plain approval"),
    ],
)
def test_what_is_owed(facts, heard, owes):
    history, events = told(*facts)
    found = owed(history, events[heard])
    assert found is None if owes is None else isinstance(found, owes)


def test_a_forward_of_an_ended_run_is_owed_no_more_than_what_was_done():
    history, events = told(STARTED, PROPOSED, quoted(), forwarded(), ENDED)
    found = owed(history, events[3])
    assert isinstance(found, OwesExecution)
    assert found.ended
    assert found.proposal_id == events[1].id
