"""What a run did, folded from its facts: what it called, whether it was held, what it changed, how it ended."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from contracts.events import Event
from contracts.facts import (
    ReplyGiven,
    RunCancelled,
    RunEnded,
    RunFailed,
    RunTakenOver,
    TurnExecuted,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
)
from contracts.parts import CallQuote


@dataclass(frozen=True, slots=True)
class Trajectory:
    """`called` are the proposed calls, in order, whatever became of them; `writes` those that changed something.

    `refunds`: minor units by order. `status` is a run's terminal one, or `waiting` where it has not ended.
    """

    run: str
    called: tuple[str, ...] = ()
    held: bool = False
    writes: tuple[str, ...] = ()
    refunds: Mapping[str, int] = field(default_factory=dict)
    status: str = "waiting"
    reason: str = ""
    reply: str = ""


def trajectory(run: str, events: Iterable[Event]) -> Trajectory:
    called: list[str] = []
    writes: list[str] = []
    refunds: Counter[str] = Counter()
    quotes: dict[str, CallQuote] = {}
    held, status, reason, reply = False, "waiting", "", ""
    for event in events:
        match event.fact:
            case TurnProposed(calls=calls):
                called += [call.tool for call in calls]
            case TurnQuoted(quotes=found):
                quotes |= {quote.call_id: quote for quote in found}
            case TurnHeld():
                held = True
            case TurnExecuted(results=results):
                for result in results:
                    quote = quotes[result.call_id]
                    if quote.kind == "read" or result.is_error or result.duplicate or quote.effect is None:
                        continue
                    writes.append(quote.tool)
                    if quote.effect.amount_minor:
                        refunds[quote.effect.object] += quote.effect.amount_minor
            case ReplyGiven(text=text):
                reply = text
            case RunEnded(status=end, reason=why):
                status, reason = end, why
            case RunFailed(reason=why):
                status, reason = "failed", why
            case RunCancelled():
                status = "cancelled"
            case RunTakenOver():
                status = "taken_over"
    return Trajectory(run, tuple(called), held, tuple(writes), dict(refunds), status, reason, reply)
