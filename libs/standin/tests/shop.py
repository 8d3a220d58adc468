"""A shop on paper for the agent's tests: what its tools would answer, in the words of the real ones."""

import json
from dataclasses import dataclass, field
from typing import Any

from standin import agent, request
from standin.answer import Answer, ToolCall

ORDER = {"type": "string", "description": "The order's reference: KX-123."}
PLAN = {"type": "string", "description": "The plan's reference: PLN-55."}


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"name": name, "description": name, "input_schema": {"type": "object", "properties": properties}}


TOOLS = [
    _tool("find_customer", query={"type": "string"}),
    _tool("get_order", order_reference=ORDER),
    _tool("get_shipment_status", order_reference=ORDER),
    _tool("search_help_centre", question={"type": "string"}),
    _tool("issue_refund", order_reference=ORDER, amount_pence={"type": "integer"}, reason={"type": "string"}),
    _tool("cancel_subscription", subscription_reference=PLAN, reason={"type": "string"}),
    _tool("escalate_to_human", summary={"type": "string"}, reason={"type": "string"}),
]
UNKNOWN = "There is no order {} on the account of this ticket's e-mail address. Check the reference with the customer."
HELP = "[returns / How long] Returns: Unused things can come back within 30 days."
LAMP_AND_VASE = (
    "Order KX-771, delivered, placed on 2 May 2031 by Ada Byron.\n"
    "Item: 1 × Reading lamp in brass, £61.50 (6150 pence).\n"
    "Item: 2 × Glass vase, small, £12.00 (1200 pence) each.\n"
    "Delivery: £4.50.\n"
    "Payment: £90.00 by Visa ending 1111 on 2 May 2031.\n"
    "Refunded: nothing so far. Still refundable: £90.00 (9000 pence).\n"
    "Shipment: Post AB1, delivered on 5 May 2031."
)
COAT = (
    "Order KX-9, delivered, placed on 2 May 2031 by Ada Byron.\n"
    "Item: 1 × Winter coat, long, £1,240.00 (124000 pence).\n"
    "Payment: £1,240.00 by Visa ending 1111 on 2 May 2031.\n"
    "Refunded: nothing so far. Still refundable: £1,240.00 (124000 pence).\n"
    "Shipment: Post AB2, delivered on 5 May 2031."
)


@dataclass
class Paper:
    """`said` is what each tool answers, by its name or by its name and a reference."""

    said: dict[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()

    def answer(self, call: ToolCall) -> tuple[str, bool]:
        about = str(next(iter(call.input.values())))
        text = self.said.get(f"{call.name} {about}") or self.said.get(call.name)
        if text is not None:
            return text, call.name in self.refused
        match call.name:
            case "get_order" | "get_shipment_status":
                return UNKNOWN.format(about), True
            case "issue_refund":
                return f"Refunded £0.00 (0 pence) for {about} to the original payment method, once.", False
            case "cancel_subscription":
                return f"Cancelled {about} (Plan). It ends on 1 June 2031 and does not renew.", False
            case "search_help_centre":
                return HELP, False
            case "find_customer":
                return "Ada Byron, a•••@mail.example. Orders: KX-771, KX-9.", False
            case _:
                return "Passed to a person: case ESC-1 was opened.", False


@dataclass
class Played:
    """A conversation to its end: the turns' calls, and the reply."""

    turns: list[tuple[ToolCall, ...]]
    reply: str

    def calls(self) -> list[str]:
        return [call.name for turn in self.turns for call in turn]

    def refunds(self) -> dict[str, int]:
        """Pence by order."""
        return {
            call.input["order_reference"]: call.input["amount_pence"]
            for turn in self.turns
            for call in turn
            if call.name == "issue_refund"
        }


def first_message(body: str, subject: str = "", name: str = "Ada Byron") -> dict[str, Any]:
    text = f"Ticket TK-1\nFrom: {name} <ada@mail.example>\nSubject: {subject}\n\n<ticket>\n{body}\n</ticket>"
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def play(messages: list[dict[str, Any]], paper: Paper) -> Played:
    """Answers and calls in turn until the agent replies; the messages grow by what was said."""
    turns: list[tuple[ToolCall, ...]] = []
    for _ in range(12):
        answer = next_answer(messages)
        blocks = answer.blocks(str(len(messages)).encode())
        messages.append({"role": "assistant", "content": blocks})
        if not answer.calls:
            return Played(turns, answer.text)
        turns.append(answer.calls)
        uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": use, "content": text, "is_error": refused}
            for use, (text, refused) in zip(uses, map(paper.answer, answer.calls), strict=True)
        ]
        messages.append({"role": "user", "content": results})
    raise AssertionError("The agent came to no end in twelve answers.")


def next_answer(messages: list[dict[str, Any]], tools: list[dict[str, Any]] = TOOLS) -> Answer:
    given = {"model": "m", "max_tokens": 4000, "messages": messages, "tools": tools}
    read = request.read(json.dumps(given).encode())
    return agent.answer(read.messages, read.tools)
