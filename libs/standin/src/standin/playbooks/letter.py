"""The reply, as a customer gets it."""

import re

from standin.conversation import Conversation, Result


def letter(known: Conversation, *paragraphs: str) -> str:
    name = known.ticket.name.split(" ")[0]
    return "\n\n".join([f"Hello {name}," if name else "Hello,", *paragraphs, "Kind regards"])


def why_not(result: Result) -> str:
    """What a refused or declined call means for the customer."""
    told = result.text.partition("They said:")[0]
    if "declined" in told and "in time" in told:
        return "Nobody looked at it in time, so it was not done. A colleague will get in touch with you about it."
    if "declined" in told:
        return "A colleague looked at it and did not release it. They will get in touch with you about it."
    if "policy" in result.text:
        return "It is more than I may decide. Answer this message, and a colleague will look at it."
    return sentence(result)


def sentence(result: Result, having: str = "") -> str:
    """The first sentence of a result that has these words, or nothing."""
    return next((part.strip() for part in re.findall(r".+?[.!](?=\s|$)", result.text) if having in part), "")
