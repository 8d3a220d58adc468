"""What a caller asks of the Messages API, refused in the API's own words where it would refuse."""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from standin.errors import ApiError
from standin.pairs import Block, check
from standin.signature import signed

FIELDS = frozenset(
    (
        *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "stream", "stop_sequences"),
        *("temperature", "top_k", "top_p", "thinking", "metadata", "cache_control", "container", "diagnostics"),
        *("inference_geo", "output_config", "service_tier", "speed"),
    )
)
REQUIRED = ("model", "max_tokens", "messages")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
CALL_ID = re.compile(r"^[a-zA-Z0-9_-]+$")
USER_BLOCKS = frozenset(("text", "image", "document", "search_result", "tool_result"))
ASSISTANT_BLOCKS = frozenset(("text", "tool_use", "thinking", "redacted_thinking"))


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["user", "assistant"]
    blocks: list[Block]

    def text(self) -> str:
        return "\n".join(block["text"] for block in self.blocks if block["type"] == "text")


@dataclass(frozen=True, slots=True)
class Request:
    """A valid request: the conversation with every content as blocks, and the tools on offer by name.

    `caches_all`: the request asks for one cache breakpoint behind its last block.
    """

    model: str
    max_tokens: int
    messages: list[Message]
    tools: dict[str, Block]
    system: str | list[Block]
    stream: bool
    caches_all: bool = False

    def step(self) -> int:
        """How many answers the conversation holds already."""
        return sum(message.role == "assistant" for message in self.messages)


def read(body: bytes, *, counting: bool = False) -> Request:
    """Reads a body. Raises ApiError 400 with the first thing that is wrong with it."""
    try:
        given = json.loads(body)
    except ValueError as error:
        raise ApiError(400, f"The request body is not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise ApiError(400, "Input should be a valid dictionary")
    for name in given:
        if name not in FIELDS:
            raise ApiError(400, f"{name}: Extra inputs are not permitted")
    for name in REQUIRED:
        if name not in given and not (counting and name == "max_tokens"):
            raise ApiError(400, f"{name}: Field required")
    max_tokens = given.get("max_tokens", 1)
    if not isinstance(given["model"], str) or not given["model"]:
        raise ApiError(400, "model: Input should be a valid string")
    if type(max_tokens) is not int:
        raise ApiError(400, "max_tokens: Input should be a valid integer")
    if max_tokens < 1:
        raise ApiError(400, "max_tokens: must be greater than or equal to 1")
    tools = _tools(given.get("tools", []))
    messages = _messages(given["messages"])
    choice = given.get("tool_choice") or {"type": "auto"}
    if choice["type"] == "tool" and choice.get("name") not in tools:
        raise ApiError(400, f"tool_choice: Tool '{choice.get('name')}' not found in provided tools")
    if not tools and any(block["type"] in ("tool_use", "tool_result") for m in messages for block in m.blocks):
        raise ApiError(400, "Requests which include `tool_use` or `tool_result` blocks must define tools")
    return Request(
        model=given["model"],
        max_tokens=max_tokens,
        messages=messages,
        tools={} if choice["type"] == "none" else tools,
        system=given.get("system", ""),
        stream=bool(given.get("stream", False)),
        caches_all=given.get("cache_control") is not None,
    )


def _tools(given: Any) -> dict[str, Block]:
    if not isinstance(given, list):
        raise ApiError(400, "tools: Input should be a valid list")
    tools: dict[str, Block] = {}
    for at, tool in enumerate(given):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not TOOL_NAME.match(name):
            raise ApiError(400, f"tools.{at}.custom.name: String should match pattern '{TOOL_NAME.pattern}'")
        if name in tools:
            raise ApiError(400, "tools: Tool names must be unique.")
        schema = tool.get("input_schema")
        if schema is None:
            raise ApiError(400, f"tools.{at}.custom.input_schema: Field required")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise ApiError(400, f"tools.{at}.custom.input_schema.type: Input should be 'object'")
        tools[name] = tool
    return tools


def _messages(given: Any) -> list[Message]:
    if not isinstance(given, list):
        raise ApiError(400, "messages: Input should be a valid list")
    if not given:
        raise ApiError(400, "messages: at least one message is required")
    messages = [_message(at, message) for at, message in enumerate(given)]
    if messages[0].role != "user":
        raise ApiError(400, 'messages: first message must use the "user" role')
    check([message.blocks for message in messages])
    last = messages[-1]
    if last.role == "assistant" and last.blocks and last.text() != last.text().rstrip():
        raise ApiError(400, "messages: final assistant content cannot end with trailing whitespace")
    return messages


def _message(at: int, given: Any) -> Message:
    role = given.get("role") if isinstance(given, dict) else None
    if role not in ("user", "assistant"):
        raise ApiError(400, f"messages.{at}.role: Input should be 'user' or 'assistant'")
    content = given.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ApiError(400, f"messages.{at}.content: Input should be a valid list")
    if not content:
        raise ApiError(400, f"messages.{at}: all messages must have non-empty content")
    allowed = USER_BLOCKS if role == "user" else ASSISTANT_BLOCKS
    for place, block in enumerate(content):
        _block(f"messages.{at}.content.{place}", block, allowed)
    return Message(role, content)


def _block(where: str, block: Any, allowed: frozenset[str]) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind not in allowed:
        raise ApiError(400, f"{where}.type: Input should be one of {', '.join(sorted(allowed))}")
    if kind == "text":
        if not isinstance(block.get("text"), str):
            raise ApiError(400, f"{where}.text.text: Field required")
        if not block["text"]:
            raise ApiError(400, "messages: text content blocks must be non-empty")
        if not block["text"].strip():
            raise ApiError(400, "messages: text content blocks must contain non-whitespace text")
    elif kind == "tool_use":
        if not isinstance(block.get("id"), str) or not CALL_ID.match(block["id"]):
            raise ApiError(400, f"{where}.tool_use.id: String should match pattern '{CALL_ID.pattern}'")
        if not isinstance(block.get("name"), str):
            raise ApiError(400, f"{where}.tool_use.name: Field required")
        if not isinstance(block.get("input"), dict):
            raise ApiError(400, f"{where}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        if not isinstance(block.get("tool_use_id"), str):
            raise ApiError(400, f"{where}.tool_result.tool_use_id: Field required")
    elif kind == "thinking" and block.get("signature") != signed(str(block.get("thinking"))):
        raise ApiError(400, f"{where}: Invalid `signature` in `thinking` block")
