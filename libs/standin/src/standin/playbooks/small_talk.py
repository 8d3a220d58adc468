"""Messages that ask for nothing, or for nothing that can be made out."""

from standin.conversation import Conversation
from standin.playbooks.letter import letter
from standin.playbooks.turn import Play


def thanks(known: Conversation) -> Play:
    yield from ()
    return "You are welcome. Write to us whenever something comes up."


def unclear(known: Conversation) -> Play:
    yield from ()
    return letter(
        known,
        "I am not sure what you need. Please tell me in a sentence, with the reference if it is about an order.",
    )
