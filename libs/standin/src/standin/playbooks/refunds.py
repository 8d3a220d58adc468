"""Refunds: what is owed is paid back once; what is not is explained."""

from standin.conversation import Conversation
from standin.order import Order
from standin.owed import asked, is_owed
from standin.playbooks.colleagues import passed_on
from standin.playbooks.help_centre import by_the_book
from standin.playbooks.letter import letter
from standin.playbooks.orders import NOT_SENT, look_up
from standin.playbooks.parcels import located, not_arrived
from standin.playbooks.payments import pay_back
from standin.playbooks.turn import Play


def refund(known: Conversation) -> Play:
    found = yield from look_up(known)
    if isinstance(found, str):
        return found
    words = known.everything()
    if not_arrived(known):
        waiting = "It is still on its way, so I have not refunded anything yet."
        return (yield from located(known, known.orders(), waiting))
    if all(order.status in NOT_SENT for order in found):
        return (yield from passed_on(known, "The customer wants money back for an order that has not been sent."))
    if not is_owed(words):
        used = "I have looked at your order. It has been used and nothing is wrong with it, so I cannot refund it."
        return (yield from by_the_book(known, "How long can I return something, and in what condition?", used))
    due: dict[Order, int] = {}
    told: list[str] = []
    for order in found:
        wanted = asked(words, order)
        if order.refundable_minor and wanted not in order.refunds:
            due[order] = min(wanted, order.refundable_minor)
        else:
            told.append(_not_again(order))
    told += yield from pay_back(known, due)
    return letter(known, *told)


def refund_status(known: Conversation) -> Play:
    """News of a refund, and never a new one."""
    if not known.orders():
        return (yield from by_the_book(
            known, "How long does a refund take?", "If you send me the order's reference, I can look at your refund."
        ))  # fmt: skip
    found = yield from look_up(known)
    return found if isinstance(found, str) else letter(known, *map(_news, found))


def _not_again(order: Order) -> str:
    if not order.refunds:
        return f"Nothing was paid for {order.reference}, so there is nothing to refund."
    return f"For {order.reference} we have refunded {order.money(*order.refunds)} before, so I have paid nothing again."


def _news(order: Order) -> str:
    if not order.refunds:
        return f"For {order.reference} no refund has been made. Tell me what it was for if you are waiting for one."
    paid = order.money(*order.refunds)
    return f"For {order.reference} we have refunded {paid}. Banks show it within 3 to 5 working days."
