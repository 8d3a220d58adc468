"""Where a parcel is, in the carrier's words."""

from standin.conversation import Conversation
from standin.playbooks.letter import letter
from standin.playbooks.orders import ask_which, theirs
from standin.playbooks.turn import Play, Turn, one_each


def parcel(known: Conversation) -> Play:
    """Of the orders that the customer names, or of the only one that they have."""
    references = known.orders()
    if not references:
        listed = yield from theirs(known)
        if len(listed) != 1:
            return ask_which(known, listed)
        references = listed
    results = yield shipments(references)
    return letter(known, *(result.text for result in results))


def shipments(references: list[str]) -> Turn:
    return one_each("I ask where the parcel is.", "get_shipment_status", "order_reference", references)
