"""Questions, answered from the help centre and with its article named."""

import re

from standin.answer import ToolCall
from standin.conversation import Conversation
from standin.playbooks.letter import letter
from standin.playbooks.turn import Play, Turn

_PASSAGE = re.compile(r"\[(?P<article>.+?) / (?P<section>.+?)\] .+?: (?P<body>.+)")


def question(known: Conversation) -> Play:
    return (yield from by_the_book(known, known.said[-1][:300], "Thank you for asking."))


def by_the_book(known: Conversation, asked: str, first: str) -> Play:
    """A reply that rests on the passage that answers a question."""
    call = ToolCall("search_help_centre", {"question": asked})
    (result,) = yield Turn("I look up what our help centre says.", (call,))
    passage = _PASSAGE.match(result.text)
    if passage is None:
        return letter(known, first, "If you tell me a little more, I can look further.")
    source = f"(From our help centre: {passage['article']}, {passage['section']}.)"
    return letter(known, first, f"{passage['body']}\n{source}")
