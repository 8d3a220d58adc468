"""Every tool call has its result in the next message, and every result its call in the one before."""

from typing import Any

from standin.errors import ApiError

Block = dict[str, Any]


def check(messages: list[list[Block]]) -> None:
    """Raises ApiError 400, as the API does, for a call without its result or a result without its call."""
    seen: set[str] = set()
    for at, blocks in enumerate(messages):
        calls = _calls(blocks)
        for call in calls:
            if call in seen:
                raise ApiError(400, f"messages.{at}: `tool_use` ids must be unique")
            seen.add(call)
        following = _leading_results(messages[at + 1]) if calls and at + 1 < len(messages) else set()
        missing = [call for call in calls if call not in following]
        if missing:
            raise ApiError(
                400,
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )
        _check_results(at, blocks, _calls(messages[at - 1]) if at else [])


def _check_results(at: int, blocks: list[Block], asked: list[str]) -> None:
    answered: set[str] = set()
    for place, block in enumerate(blocks):
        if block["type"] != "tool_result":
            continue
        call = block["tool_use_id"]
        if call not in asked:
            raise ApiError(
                400,
                f"messages.{at}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        if call in answered:
            raise ApiError(
                400,
                f"messages.{at}.content.{place}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call}",
            )
        answered.add(call)


def _calls(blocks: list[Block]) -> list[str]:
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def _leading_results(blocks: list[Block]) -> set[str]:
    """The API wants the results before any other block of their message."""
    answered: set[str] = set()
    for block in blocks:
        if block["type"] != "tool_result":
            break
        answered.add(block["tool_use_id"])
    return answered
