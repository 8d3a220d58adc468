"""Orders: whose they are, and what can still be done about them."""

import re

from standin import order as orders
from standin.answer import ToolCall
from standin.conversation import Conversation
from standin.order import Order
from standin.playbooks.colleagues import passed_on
from standin.playbooks.help_centre import by_the_book
from standin.playbooks.letter import letter
from standin.playbooks.turn import Part, Play, Turn, one_each

_SOMEBODY_ELSE = re.compile(
    r"\bon behalf of\b|\b(?:his|her|their) order\b"
    r"|\b(?:for my|my) (?:partner|wife|husband|mum|mother|dad|father|son|daughter|friend|sister|brother|boss|colleague"
    r"|neighbou?r|flatmate)(?:'s order|,| \w+ \w+, who\b)",
    re.IGNORECASE,
)
NOT_SENT = frozenset(("placed", "paid", "pending", "processing"))


def look_up(known: Conversation) -> Part[list[Order] | str]:
    """The orders that the customer names; or the reply, where there is none that they may ask about."""
    references = known.orders()
    if not references:
        return ask_which(known, (yield from theirs(known)))
    results = yield one_each("I look at the order first.", "get_order", "order_reference", references)
    found = [order for result in results if (order := orders.read(result.text))]
    name = known.ticket.name.casefold()
    strangers = [order for order in found if name and order.customer.casefold() != name]
    if strangers or (len(found) < len(references) and _SOMEBODY_ELSE.search(known.everything())):
        return (yield from passed_on(known, "The order does not belong to the person who writes. Nothing was changed."))
    if not found:
        return letter(
            known,
            f"I cannot find {' or '.join(references)} under the address that you write from; nothing was changed.",
            "Please check the reference in your confirmation e-mail, and write from the address that you ordered with.",
        )
    return found


def theirs(known: Conversation) -> Part[list[str]]:
    """The references of the sender's orders, where the shop knows the sender."""
    if not known.ticket.email:
        return []
    call = ToolCall("find_customer", {"query": known.ticket.email})
    (result,) = yield Turn("No order is named, so I look for theirs.", (call,))
    return [] if result.failed else list(dict.fromkeys(known.order_like.findall(result.text)))


def ask_which(known: Conversation, listed: list[str]) -> str:
    if listed:
        return letter(known, f"Which order is it about? Under your address I find {', '.join(listed)}.")
    return letter(known, "Which order is it about? Please send me its reference; it is in your confirmation e-mail.")


def cancel_order(known: Conversation) -> Play:
    """No tool stops an order: one that has not left yet is a person's, one that has is sent back."""
    found = yield from look_up(known)
    if isinstance(found, str):
        return found
    if all(order.status in NOT_SENT for order in found):
        return (yield from passed_on(known, "The customer wants to cancel an order that has not been sent."))
    gone = "Your order has left us, so I cannot stop it any more."
    return (yield from by_the_book(known, "Can I cancel an order that is on its way?", gone))


def damaged(known: Conversation) -> Play:
    """Something is wrong with what came, and the customer does not say what they want."""
    found = yield from look_up(known)
    if isinstance(found, str):
        return found
    sorry = "I am sorry about that. Please tell me whether you want your money back or a replacement."
    return (yield from by_the_book(known, "What happens when something arrives damaged or wrong?", sorry))


def send_back(known: Conversation) -> Play:
    """Something is to be returned or exchanged, and no money is asked for."""
    if known.orders():
        found = yield from look_up(known)
        if isinstance(found, str):
            return found
    return (yield from by_the_book(known, known.everything()[:300], "This is how it works:"))
