"""The Messages API as the real SDK sees it: messages, streams, tool use, usage."""

from typing import Any

import httpx
import pytest
from anthropic import Anthropic, AsyncAnthropic
from standin.director import Director

TOOLS: list[Any] = [
    {
        "name": "get_order",
        "description": "Shows an order.",
        "input_schema": {"type": "object", "properties": {"order_reference": {"type": "string"}}},
    }
]
CALL = {"name": "get_order", "input": {"order_reference": "A-1"}}


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1000, "messages": [{"role": "user", "content": text}], "tools": TOOLS, **more}


def answered(call_id: str, asked: Any, result: str = "found") -> list[Any]:
    """The conversation after one tool call and its result."""
    return [
        {"role": "user", "content": "Ticket T-1"},
        {"role": "assistant", "content": asked},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]},
    ]


async def test_a_scripted_tool_call_arrives_whole(director: Director, sdk: Anthropic) -> None:
    await director.script("T-1", [{"text": "Let me look.", "tool_calls": [CALL]}, {"text": "All is well."}])

    message = sdk.messages.create(**ask("Ticket T-1"))

    assert message.stop_reason == "tool_use"
    text, call = message.content
    assert text.type == "text"
    assert text.text == "Let me look."
    assert call.type == "tool_use"
    assert (call.name, call.input) == ("get_order", {"order_reference": "A-1"})
    assert call.id.startswith("toolu_")
    assert message.id.startswith("msg_")
    assert message._request_id is not None
    assert message._request_id.startswith("req_")


async def test_the_next_answer_is_chosen_by_the_answers_in_the_conversation(
    director: Director, asdk: AsyncAnthropic
) -> None:
    await director.script("T-1", [{"tool_calls": [CALL]}, {"text": "All is well."}])
    first = await asdk.messages.create(**ask("Ticket T-1"))
    call = first.content[0]
    assert call.type == "tool_use"

    second = await asdk.messages.create(**ask("") | {"messages": answered(call.id, first.content)})

    assert second.stop_reason == "end_turn"
    assert second.content[0].type == "text"
    assert second.content[0].text == "All is well."
    assert await director.asked("T-1") == {0: 1, 1: 1}


async def test_a_repeated_request_gets_the_same_answer_and_is_counted(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "Once.", "tool_calls": [CALL]}])

    first = await asdk.messages.create(**ask("Ticket T-1"))
    again = await asdk.messages.create(**ask("Ticket T-1"))

    assert first.to_dict() == again.to_dict()
    assert await director.asked("T-1") == {0: 2}


@pytest.mark.parametrize("streaming", ["sync", "async"])
async def test_a_stream_builds_the_message_that_one_piece_would_have_been(
    director: Director, sdk: Anthropic, asdk: AsyncAnthropic, streaming: str
) -> None:
    await director.script(
        "T-1",
        [{"thinking": "Hm.", "text": "Let me look at both of your orders – ¡sí! 🙏", "tool_calls": [CALL, CALL]}],
    )
    whole = await asdk.messages.create(**ask("Ticket T-1"))

    if streaming == "sync":
        with sdk.messages.stream(**ask("Ticket T-1")) as stream:
            text = "".join(stream.text_stream)
            built = stream.get_final_message()
    else:
        async with asdk.messages.stream(**ask("Ticket T-1")) as events:
            text = "".join([part async for part in events.text_stream])
            built = await events.get_final_message()

    assert text == "Let me look at both of your orders – ¡sí! 🙏"
    assert [block.type for block in built.content] == ["thinking", "text", "tool_use", "tool_use"]
    mine, theirs = built.to_dict(), whole.to_dict()
    for message in (mine, theirs):  # ids follow from the request, and a request to stream is another request
        del message["id"]
        for block in message["content"]:  # type: ignore[attr-defined]
            block.pop("id", None)
            block.pop("parsed_output", None)
    assert mine == theirs


async def test_the_events_come_in_the_order_of_the_api(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "Let me look.", "tool_calls": [CALL]}])

    kinds = [event.type async for event in await asdk.messages.create(**ask("Ticket T-1", stream=True))]

    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert [kind for kind in kinds if kind.startswith("content_block_st")] == 2 * [
        "content_block_start",
        "content_block_stop",
    ]


async def test_a_ping_is_among_the_events(director: Director, url: str) -> None:
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
    async with httpx.AsyncClient(base_url=url) as http:
        answer = await http.post("/v1/messages", json=ask("Hello", stream=True), headers=headers)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: ping\n" in answer.text


async def test_a_thinking_block_comes_back_unchanged_or_is_refused(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"thinking": "Hm.", "tool_calls": [CALL]}, {"text": "Done."}])
    first = await asdk.messages.create(**ask("Ticket T-1"))
    blocks = [block.to_dict() for block in first.content]
    call_id = str(blocks[1]["id"])

    kept = await asdk.messages.create(**ask("") | {"messages": answered(call_id, blocks)})
    blocks[0]["thinking"] = "Aha."

    assert kept.stop_reason == "end_turn"
    with pytest.raises(Exception, match="Invalid `signature`"):
        await asdk.messages.create(**ask("") | {"messages": answered(call_id, blocks)})


async def test_usage_counts_what_is_sent_and_said(asdk: AsyncAnthropic) -> None:
    little = await asdk.messages.create(**ask("Hello"))
    more = await asdk.messages.create(**ask("Hello " * 1000))

    assert 1400 < more.usage.input_tokens - little.usage.input_tokens < 1600
    assert little.usage.output_tokens > 3


async def test_what_lies_before_a_breakpoint_is_written_to_the_cache_and_later_read_from_it(
    director: Director, asdk: AsyncAnthropic
) -> None:
    await director.script("T-1", [{"tool_calls": [CALL]}, {"text": "Done."}])
    system: list[Any] = [{"type": "text", "text": "rule " * 500, "cache_control": {"type": "ephemeral"}}]

    first = await asdk.messages.create(**ask("Ticket T-1", system=system))
    call = first.content[0]
    assert call.type == "tool_use"
    second = await asdk.messages.create(**ask("", system=system) | {"messages": answered(call.id, first.content)})

    assert first.usage.cache_creation_input_tokens
    assert first.usage.cache_read_input_tokens == 0
    assert second.usage.cache_creation_input_tokens == 0
    assert second.usage.cache_read_input_tokens == first.usage.cache_creation_input_tokens


async def test_counting_agrees_with_what_is_charged(asdk: AsyncAnthropic) -> None:
    message = await asdk.messages.create(**ask("Where is my parcel?"))
    asked = {key: value for key, value in ask("Where is my parcel?").items() if key != "max_tokens"}

    counted = await asdk.messages.count_tokens(**asked)

    assert counted.input_tokens == message.usage.input_tokens


async def test_an_answer_longer_than_its_limit_is_cut_off(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "word " * 100, "tool_calls": [CALL]}])

    message = await asdk.messages.create(**ask("Ticket T-1") | {"max_tokens": 10})

    assert message.stop_reason == "max_tokens"
    assert [block.type for block in message.content] == ["text"]
