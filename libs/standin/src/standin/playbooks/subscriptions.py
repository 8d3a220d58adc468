"""Subscriptions that a customer wants to end."""

import re

from standin.answer import ToolCall
from standin.conversation import Conversation, Result
from standin.playbooks.colleagues import passed_on
from standin.playbooks.letter import letter, sentence, why_not
from standin.playbooks.turn import Play, Turn

_MONEY_TOO = re.compile(r"(?<!need to )(?<!no )(?<!not )\b(?:refund|money back)", re.IGNORECASE)


def subscription(known: Conversation) -> Play:
    references = known.subscriptions()
    if not references:
        return letter(known, "Which subscription is it? Please send me its reference; it is in every e-mail about it.")
    reason = known.ticket.subject[:200] or "The customer asked for it"
    calls = [
        ToolCall("cancel_subscription", {"subscription_reference": reference, "reason": reason})
        for reference in references
    ]
    results = yield Turn("The customer wants this to end, so I cancel it.", tuple(calls))
    if _MONEY_TOO.search(known.everything()):
        return (yield from passed_on(known, "The customer also wants money back, and no tool refunds a subscription."))
    told = [_told(reference, result) for reference, result in zip(references, results, strict=True)]
    return letter(known, *told)


def _told(reference: str, result: Result) -> str:
    if result.failed:
        return f"I could not cancel {reference}. {why_not(result)}"
    return f"Your subscription {reference} is cancelled. {sentence(result, having='ends on')}"
