"""Money that moves: a payment that was taken twice, and the refund itself."""

import re

from standin.answer import ToolCall
from standin.conversation import Conversation, Result
from standin.order import Order
from standin.playbooks.letter import letter, why_not
from standin.playbooks.orders import look_up
from standin.playbooks.turn import Part, Play, Turn

_PAID = re.compile(r"\brefunded (\S*\d[\d.,]*\d)", re.IGNORECASE)


def duplicate(known: Conversation) -> Play:
    """Compares the payments: only one that was taken twice is paid back."""
    found = yield from look_up(known)
    if isinstance(found, str):
        return found
    due = {order: _twice(order) for order in found}
    told = [_taken_once(order) for order in found if not due[order]]
    told += yield from pay_back(known, {order: minor for order, minor in due.items() if minor})
    return letter(known, *told)


def pay_back(known: Conversation, due: dict[Order, int]) -> Part[list[str]]:
    """Asks for all refunds in one turn, and tells what became of each. Amounts in minor units."""
    if not due:
        return []
    reason = known.ticket.subject[:200] or "The customer asked for a refund"
    calls = [
        ToolCall("issue_refund", {"order_reference": order.reference, "amount_pence": minor, "reason": reason})
        for order, minor in due.items()
    ]
    results = yield Turn("This is owed to the customer, so I ask for the refund.", tuple(calls))
    return [_told(order, minor, result) for (order, minor), result in zip(due.items(), results, strict=True)]


def _told(order: Order, minor: int, result: Result) -> str:
    # A person may have approved less than was asked for.
    paid = _PAID.search(result.text)
    amount = paid[1] if paid and not result.failed else order.money(minor)
    if result.failed:
        return f"I could not refund {amount} for {order.reference}. {why_not(result)}"
    if "already" in result.text:
        return f"{amount} for {order.reference} had been refunded to you already, so no second payment was made."
    return (
        f"I have refunded {amount} for {order.reference} to the card or account that you paid with. "
        "Banks usually show it within 3 to 5 working days."
    )


def _twice(order: Order) -> int:
    """The largest amount that was taken more than once, as far as it is not paid back."""
    doubled = [minor for minor in order.payments if order.payments.count(minor) > 1 and minor not in order.refunds]
    return min(max(doubled, default=0), order.refundable_minor)


def _taken_once(order: Order) -> str:
    paid = order.money(*order.payments) or "nothing"
    return (
        f"I have compared the payments for {order.reference}: we have taken {paid}, "
        "and nothing twice, so there is nothing to refund. A second line that is marked as pending is your bank's "
        "reservation for the same payment; it goes away by itself. Write to us again should both become payments."
    )
