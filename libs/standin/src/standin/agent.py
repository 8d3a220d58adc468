"""A deterministic support agent: from the conversation alone, the next answer. It knows nothing of any shop's data."""

from collections.abc import Mapping, Sequence

from standin import conversation, intents, playbooks
from standin.answer import Answer
from standin.conversation import Conversation
from standin.intents import Intent
from standin.pairs import Block
from standin.request import Message


def answer(messages: Sequence[Message], tools: Mapping[str, Block]) -> Answer:
    """The next answer of the playbook that fits what the customer wants.

    The playbook is played from its beginning with the results that the conversation holds; the first calls without one
    are the answer, or else the reply at its end. So the same conversation always gets the same answer.
    """
    known = conversation.read(messages, tools)
    play = playbooks.BY_INTENT[intent(known)](known)
    try:
        turn = next(play)
        while True:
            results = [known.result(call) for call in turn.calls]
            missing = [call for call, result in zip(turn.calls, results, strict=True) if result is None]
            if missing:
                return Answer(turn.text, tuple(missing))
            turn = play.send([result for result in results if result is not None])
    except StopIteration as end:
        return Answer(end.value)


def intent(known: Conversation) -> Intent:
    """What the customer's latest message wants; where it only adds to the earlier ones, what all of them want."""
    latest = _intent(known.said[-1], known)
    if len(known.said) > 1 and latest is Intent.UNCLEAR:
        return _intent(known.everything(), known)
    return latest


def _intent(text: str, known: Conversation) -> Intent:
    """References are read as the words that they stand for: who writes `cancel SUB-1` means a subscription."""
    plain = known.subscription_like.sub("subscription", known.order_like.sub("order", text))
    return intents.of(plain, names_an_order=bool(known.order_like.search(text)))
