"""A run's facts as tests write them down, sealed into events."""

from datetime import UTC, datetime

from contracts.canonical import sha256
from contracts.events import Draft, Event, write
from contracts.facts import Fact, RunEnded, TurnExecuted, TurnProposed, TurnQuoted
from contracts.parts import CallQuote, CallResult, Effect, ToolCall, Usage
from contracts.subjects import RunKey

DIGEST = sha256("")


def events(*facts: Fact) -> list[Event]:
    found: list[Event] = []
    for fact in facts:
        before = found[-1] if found else None
        found.append(write(RunKey("acme", "T-1"), Draft(fact, before), before, datetime(2031, 5, 2, tzinfo=UTC)))
    return found


def proposed(*tools: str) -> TurnProposed:
    return TurnProposed(
        turn=1,
        agent="support",
        content=[],
        calls=[ToolCall(call_id=f"{at}", tool=tool, arguments={}) for at, tool in enumerate(tools)],
        stop_reason="tool_use",
        usage=Usage(),
        cost_micro_usd=0,
        request_digest=DIGEST,
        tools_digest=DIGEST,
    )


def quoted(*quotes: CallQuote) -> TurnQuoted:
    return TurnQuoted(turn=1, attempt=1, quotes=list(quotes))


def read(call_id: str, tool: str = "get_order") -> CallQuote:
    return CallQuote(call_id=call_id, tool=tool, kind="read", arguments={}, digest=DIGEST)


def refund(call_id: str, order: str, minor: int) -> CallQuote:
    effect = Effect(summary="", object=order, amount_minor=minor, currency="GBP")
    return CallQuote(call_id=call_id, tool="issue_refund", kind="write", arguments={}, effect=effect, digest=DIGEST)


def executed(*results: CallResult) -> TurnExecuted:
    return TurnExecuted(turn=1, attempt=1, receipt_id="r", results=list(results))


def result(call_id: str, *, is_error: bool = False, duplicate: bool = False) -> CallResult:
    return CallResult(call_id=call_id, content="", is_error=is_error, duplicate=duplicate)


def ended(status: str = "resolved") -> RunEnded:
    return RunEnded.model_validate({"status": status, "reason": "", "steps": 1, "cost_micro_usd": 0})
