"""A run of a fixed length for benchmarks: a ticket with the subject `bench:5` gets five reads, then a reply."""

import re

from standin.answer import Answer, ToolCall
from standin.request import Request

SUBJECT = re.compile(r"^subject\s*:\s*bench:(\d+)\s*$", re.IGNORECASE | re.MULTILINE)
ORDER = re.compile(r"\b[A-Z]+-\d+\b")
# As long as what a model says beside a call, and to a customer: the bytes count in a benchmark.
BESIDE = (
    "I will look at the order before I answer, so that what I say about the parcel, the payment and what can "
    "still be refunded comes from the shop's own record of it."
)
REPLY = (
    "Thank you for waiting. I have looked at your order: it was paid in full, it left our warehouse on the day that "
    "you placed it, and nothing about it needs anything more from you. If there is something else that we can do, "
    "answer this message and it will reach us."
)


def turns(request: Request) -> int | None:
    """The length asked for, or None for an ordinary ticket."""
    found = SUBJECT.search(request.messages[0].text(), 0, 2_000)
    return int(found[1]) if found else None


def answer(request: Request, turns: int) -> Answer:
    if request.step() >= turns:
        return Answer(text=REPLY)
    body = request.messages[0].text().partition("<ticket>")[2]
    order = ORDER.search(body)
    return Answer(text=BESIDE, calls=(ToolCall("get_order", {"order_reference": order[0] if order else "ORD-1"}),))
