"""What the model answered to one request, whole and paid for."""

from collections.abc import Iterator

from contracts.canonical import canonical
from contracts.parts import MOST_CALLS, Json, ToolCall, Usage
from pydantic import BaseModel, ConfigDict

LONGEST = 256_000  # bytes of content as JSON: a fact carries it and its calls, well under the broker's 1 MB
LONGEST_NAME = 512  # characters of a call's id, or its tool's name: what a fact takes
LONGEST_TEXT = 64_000  # what a fact's text may hold
DEEPEST = 64  # levels of a block; facts are read by libraries that take no more than 200

# Why an answer can be neither run nor sent, where the API gives no reason of its own.
CUT_OFF = "stream_cut"
TOO_LONG = "too_long"
NO_TEXT = "no_text"
UNREADABLE = "unreadable"
UNUSABLE_CALLS = "unusable_calls"

_KEPT = frozenset(("text", "tool_use", "redacted_thinking"))


class Answer(BaseModel):
    """`content` are complete blocks only: half a call is never among them. `detail` is the API's word on a refusal."""

    model_config = ConfigDict(frozen=True)

    content: list[Json]
    stop_reason: str
    usage: Usage
    cost_micro_usd: int
    request_digest: str
    tools_digest: str
    detail: str = ""

    @property
    def text(self) -> str:
        return text_of(self.content)

    @property
    def calls(self) -> list[ToolCall]:
        return list(_calls(self.content))


def text_of(content: list[Json]) -> str:
    return "".join(block["text"] for block in content if block["type"] == "text")


def usable(content: list[Json], stop_reason: str) -> tuple[list[Json], str]:
    """The content that may be kept, and the reason to give for the rest.

    Of an answer that was broken off before its calls were complete nothing is kept; else only blocks go that the API
    would not take back (a thought that was cut before its signature), or that nothing here can be made of.
    """
    if not all(_is_call(block) for block in content if block["type"] == "tool_use"):
        return [], UNREADABLE
    calls = list(_calls(content))
    if stop_reason == "refusal":
        return [], stop_reason
    if calls and stop_reason not in ("tool_use", "end_turn", "stop_sequence"):
        return [], stop_reason
    try:
        size = len(canonical(content))
    except ValueError:
        return [], UNREADABLE
    if size > LONGEST or len(text_of(content)) > LONGEST_TEXT:
        return [], TOO_LONG
    if _is_deeper(content, DEEPEST):
        return [], UNREADABLE
    if len(calls) > MOST_CALLS or len({call.call_id for call in calls}) < len(calls):
        return [], UNUSABLE_CALLS
    kept = [block for block in content if block["type"] in _KEPT or (block["type"] == "thinking" and _is_signed(block))]
    if not calls and not text_of(kept).strip():
        return [], NO_TEXT if stop_reason in ("tool_use", "end_turn", "stop_sequence") else stop_reason
    return kept, stop_reason


def _is_call(block: Json) -> bool:
    """Whether a fact can hold the call."""
    names = (block.get("id"), block.get("name"))
    return all(isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME for name in names)


def _is_deeper(value: object, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in inside)


def _is_signed(block: Json) -> bool:
    return isinstance(block.get("signature"), str) and bool(block["signature"])


def _calls(content: list[Json]) -> Iterator[ToolCall]:
    for block in content:
        if block["type"] == "tool_use":
            yield ToolCall(call_id=block["id"], tool=block["name"], arguments=block["input"])
