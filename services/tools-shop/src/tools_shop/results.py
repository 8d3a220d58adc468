"""What the model is told of a turn, one result a call."""

from collections.abc import Mapping

from contracts.declines import WHAT_FOLLOWS
from contracts.parts import CallResult

from tools_shop import calls
from tools_shop.outcomes import Refusal
from tools_shop.receipts import Receipt
from tools_shop.running import Outcomes
from tools_shop.turn import Executed, Order, Turn


def of_calls(turn: Turn, order: Order, outcomes: Outcomes) -> list[CallResult]:
    results = []
    for call in turn.calls:
        outcome = outcomes.get(call.call_id)
        if call.call_id in order.declined:
            results.append(calls.refused(call.call_id, _why_declined(order, call.call_id), "declined"))
        elif outcome is None:
            raise LookupError(f"Call {call.call_id} was run and came to nothing.")
        else:
            results.append(calls.result(call, outcome))
    return calls.fitted(results)


def unauthorised(turn: Turn, missing: Mapping[str, Refusal]) -> list[CallResult]:
    """Of a turn that was forwarded and may not run, since the calls in `missing` may not."""
    others = Refusal("turn-not-released", "This was not done: another call of the same turn had not been released.")
    return [calls.result(call, missing.get(call.call_id, others)) for call in turn.calls]


def of_receipt(receipt: Receipt) -> Executed:
    """What its receipt says of a turn that was executed."""
    return Executed(receipt.attempt, receipt.results, receipt.id, receipt.approved_by)


def _why_declined(order: Order, call_id: str) -> str:
    verdict = order.verdicts[call_id]
    reason = verdict.reason or "This was declined, so it was not done."
    if call_id not in order.notes or verdict.rule != "declined":
        return f"{reason} {WHAT_FOLLOWS}"
    # Their words come last: what is the shop's cannot be taken for a part of them.
    note = order.notes[call_id]
    return f"{reason} {WHAT_FOLLOWS} " + (f"They said: {note}" if note else "They gave no reason.")
