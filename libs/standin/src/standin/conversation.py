"""What an agent can know: the ticket, what the customer said since, the tools on offer, and what its calls brought."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from standin import ticket, words
from standin.answer import ToolCall
from standin.pairs import Block
from standin.request import Message
from standin.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Result:
    """What a call brought. `failed`: it was refused or declined, or could not be done."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    ticket: Ticket
    said: tuple[str, ...]
    tools: frozenset[str]
    results: Mapping[str, Result]
    order_like: re.Pattern[str]
    subscription_like: re.Pattern[str]

    def everything(self) -> str:
        return "\n\n".join(self.said)

    def orders(self) -> list[str]:
        """The order references in the customer's latest message that has any, as the shop writes them."""
        return _latest(self.order_like, self.said)

    def subscriptions(self) -> list[str]:
        return _latest(self.subscription_like, self.said)

    def result(self, call: ToolCall) -> Result | None:
        """What this very call brought, whenever it was made."""
        if call.name not in self.tools:
            return Result("This cannot be done from here.", failed=True)
        return self.results.get(_key(call.name, call.input))


def read(messages: Sequence[Message], tools: Mapping[str, Block]) -> Conversation:
    calls: dict[str, str] = {}
    results: dict[str, Result] = {}
    said: list[str] = []
    first: Ticket | None = None
    for message in messages:
        for block in message.blocks:
            if block["type"] == "tool_use":
                calls[block["id"]] = _key(block["name"], block["input"])
            elif block["type"] == "tool_result":
                results[calls[block["tool_use_id"]]] = Result(_text(block.get("content")), bool(block.get("is_error")))
            elif block["type"] == "text" and message.role == "user":
                if first is None:
                    first = ticket.read(block["text"])
                    said.append(words.own(first.words()))
                else:
                    said.append(words.own(block["text"]))
    assert first is not None  # noqa: S101 - the first message of a valid request is the user's
    return Conversation(
        ticket=first,
        said=tuple(said),
        tools=frozenset(tools),
        results=results,
        order_like=_like(tools.get("get_order")),
        subscription_like=_like(tools.get("cancel_subscription")),
    )


def _latest(like: re.Pattern[str], said: Sequence[str]) -> list[str]:
    for text in reversed(said):
        if found := [reference.upper() for reference in like.findall(text)]:
            return list(dict.fromkeys(found))
    return []


def _like(tool: Block | None) -> re.Pattern[str]:
    """What a reference looks like, from the example in the tool's own description."""
    example = re.search(r"\b([A-Z]{2,5})-\d+", json.dumps(tool)) if tool else None
    return re.compile(rf"\b{example[1] if example else '[A-Z]{2,5}'}-\d+\b", re.IGNORECASE)


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))
    return content if isinstance(content, str) else ""
