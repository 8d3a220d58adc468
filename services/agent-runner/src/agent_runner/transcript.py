"""The conversation as the Messages API wants it: alternating, begun by the user, each call answered right behind it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from string import Template

from contracts.parts import CallResult, Json, Ticket, ToolCall

Message = Json
Block = Json

_UNSEEN = r"[\s\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]*"
_TAG = re.compile("<(?=" + _UNSEEN + "/?" + "".join(_UNSEEN + letter for letter in "ticket") + ")", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Customer:
    """Words of the customer's in a chat."""

    text: str


@dataclass(frozen=True, slots=True)
class AgentSaid:
    """The model's content blocks, as the API gave them."""

    content: list[Block]


@dataclass(frozen=True, slots=True)
class Results:
    """A turn's calls and their results, by call id."""

    calls: list[ToolCall]
    results: dict[str, CallResult]


@dataclass(frozen=True, slots=True)
class Note:
    """What the house tells the model about its own last answer."""

    text: str


Entry = Ticket | Customer | AgentSaid | Results | Note


def messages(entries: Iterable[Entry], ticket: Template) -> list[Message]:
    """The messages of a request; `ticket` lays out the first. Neighbours of one role are joined, empty ones dropped."""
    found: list[Message] = []
    for entry in entries:
        blocks = _blocks(entry, ticket)
        role = "assistant" if isinstance(entry, AgentSaid) else "user"
        if not blocks:
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += blocks
        else:
            found.append({"role": role, "content": blocks})
    return found


def _blocks(entry: Entry, ticket: Template) -> list[Block]:
    match entry:
        case Ticket():
            return [_text(_first_message(entry, ticket))]
        case Customer():
            return [_text(neutral(entry.text) if entry.text.strip() else "(The customer sent an empty message.)")]
        case AgentSaid():
            # The API refuses to be sent back the empty text that it may give.
            return [block for block in entry.content if block.get("type") != "text" or block["text"].strip()]
        case Results():
            return [_result(call, entry.results.get(call.call_id)) for call in entry.calls]
        case Note():
            return [_text(entry.text)]


def _first_message(ticket: Ticket, template: Template) -> str:
    return template.substitute(
        reference=ticket.reference,
        name=_line(ticket.customer.name or ""),
        email=_line(ticket.customer.email),
        subject=_line(ticket.subject),
        body=neutral(ticket.body),
    )


def _result(call: ToolCall, result: CallResult | None) -> Block:
    if result is None:
        return {
            "type": "tool_result",
            "tool_use_id": call.call_id,
            "content": "No result was recorded for this call. Do not assume that it ran.",
            "is_error": True,
        }
    block: Block = {"type": "tool_result", "tool_use_id": call.call_id, "content": result.content}
    return {**block, "is_error": True} if result.is_error else block


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _line(text: str) -> str:
    """Text that stays on its line, so that a name cannot add a header."""
    return neutral(" ".join(text.split()))


def neutral(text: str) -> str:
    """A customer's text in which nothing opens or closes the tag that their words stand in."""
    return _TAG.sub("&lt;", text)
