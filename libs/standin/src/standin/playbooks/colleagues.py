"""What is passed to a person: the agent keeps its hands off."""

from standin.answer import ToolCall
from standin.conversation import Conversation
from standin.playbooks.letter import letter
from standin.playbooks.turn import Play, Playbook, Turn


def hands_off(reason: str) -> Playbook:
    """Nothing is looked up, changed or promised."""

    def play(known: Conversation) -> Play:
        return (yield from passed_on(known, reason))

    return play


def passed_on(known: Conversation, reason: str) -> Play:
    """Escalates with what the customer wrote, and why it needs a person."""
    wrote = " ".join(known.everything().split())[:600]
    summary = f"{known.ticket.name or 'The customer'} writes: {wrote}"
    call = ToolCall("escalate_to_human", {"summary": summary, "reason": reason[:300]})
    (result,) = yield Turn("This is for a colleague to answer.", (call,))
    if result.failed:
        return letter(known, "I cannot settle this myself. Write to us again if nobody has answered by tomorrow.")
    return letter(known, "I have passed your message to a colleague, who will read it and answer you personally.")
