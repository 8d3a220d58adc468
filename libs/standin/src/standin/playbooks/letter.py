"""The reply, as a customer gets it."""

import re

from standin.conversation import Conversation, Result


def letter(known: Conversation, *paragraphs: str) -> str:
    name = known.ticket.name.split(" ")[0]
    return "\n\n".join([f"Hello {name}," if name else "Hello,", *paragraphs, "Kind regards"])


def why_not(result: Result) -> str:
    """What a refused or declined call means for the customer."""
    if "declined" in result.text:
        return "A colleague looked at it and did not release it. Answer this message if there is more to know."
    if "policy" in result.text:
        return "It is more than I may decide. Answer this message, and a colleague will look at it."
    return sentence(result)


def sentence(result: Result, having: str = "") -> str:
    """The first sentence of a result that has these words, or nothing."""
    return next((part.strip() for part in re.findall(r".+?[.!](?=\s|$)", result.text) if having in part), "")
