"""Where a parcel is, in the carrier's words; and what did not arrive."""

import re

from standin.conversation import Conversation
from standin.playbooks.colleagues import passed_on
from standin.playbooks.letter import letter
from standin.playbooks.orders import ask_which, theirs
from standin.playbooks.turn import Play, one_each

_NOT_ARRIVED = re.compile(
    r"(?:never|not|n't)(?: \w+)? (?:arrived?|turned up|come|received?|delivered)\b"
    r"(?! (?:my |the |a |any )?(?:refund|money))|\b(?:is|got) lost\b",
    re.IGNORECASE,
)


def parcel(known: Conversation) -> Play:
    """Of the orders that the customer names, or of the only one that they have."""
    references = known.orders()
    if not references:
        listed = yield from theirs(known)
        if len(listed) != 1:
            return ask_which(known, listed)
        references = listed
    return (yield from located(known, references))


def located(known: Conversation, references: list[str], *more: str) -> Play:
    """Tells where the parcels are, and `more`. What the carrier delivered and the customer misses is a person's."""
    results = yield one_each("I ask where the parcel is.", "get_shipment_status", "order_reference", references)
    where = [result.text for result in results]
    if not_arrived(known) and any("delivered on" in text for text in where):
        said = " ".join(where)
        return (yield from passed_on(known, f"The customer says that it did not arrive; the carrier says: {said}"))
    return letter(known, *where, *more)


def not_arrived(known: Conversation) -> bool:
    return bool(_NOT_ARRIVED.search(known.everything().replace("’", "'")))
