"""What a script can make go wrong, as the real SDK meets it."""

import asyncio
from typing import Any

import anthropic
import httpx
import httpx2
import pytest
from anthropic import AsyncAnthropic
from standin.director import Director

TOOLS: list[Any] = [{"name": "issue_refund", "description": "", "input_schema": {"type": "object"}}]
REFUND = {"name": "issue_refund", "input": {"order_reference": "A-1", "amount_pence": 5000, "reason": "returned"}}
ASK: dict[str, Any] = {
    "model": "m",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "Ticket T-1"}],
    "tools": TOOLS,
}


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (401, anthropic.AuthenticationError),
        (413, anthropic.RequestTooLargeError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.OverloadedError),
    ],
)
async def test_an_error_answer_reaches_the_caller_as_itself(
    director: Director, asdk: AsyncAnthropic, status: int, raised: type[anthropic.APIStatusError]
) -> None:
    await director.script("T-1", [{"fault": {"status": status, "retry_after": 7}}])

    with pytest.raises(raised) as error:
        await asdk.messages.create(**ASK)

    assert error.value.response.headers["retry-after"] == "7"


async def test_the_sdk_gets_its_answer_after_two_refusals(director: Director, asdk: AsyncAnthropic) -> None:
    busy = {"fault": {"status": 529, "retry_after": 0.01}}
    await director.script("T-1", [[busy, busy, {"text": "At last."}]])

    message = await asdk.with_options(max_retries=2).messages.create(**ASK)

    assert message.content[0].type == "text"
    assert message.content[0].text == "At last."
    assert await director.asked("T-1") == {0: 3}


async def test_a_stream_that_began_well_can_fail_inside(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "Let me see what I can do.", "fault": {"error": "overloaded_error"}}])
    stream = await asdk.messages.create(**ASK, stream=True)
    text = ""

    async def read() -> None:
        nonlocal text
        async for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                text += event.delta.text

    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        await read()
    assert text
    assert text != "Let me see what I can do."


async def test_a_stream_can_end_in_the_middle_of_the_arguments_of_a_call(
    director: Director, asdk: AsyncAnthropic
) -> None:
    await director.script("T-1", [{"tool_calls": [REFUND], "fault": {"cut": "end"}}])

    parts = ""
    kinds = []
    async for event in await asdk.messages.create(**ASK, stream=True):
        kinds.append(event.type)
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            parts += event.delta.partial_json

    assert parts.startswith('{"order_reference"')
    assert not parts.endswith("}")
    assert "message_stop" not in kinds


async def test_a_connection_can_drop_in_the_middle_of_a_call(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"tool_calls": [REFUND], "fault": {"cut": "connection"}}])

    with pytest.raises(httpx2.RemoteProtocolError):
        async with asdk.messages.stream(**ASK) as stream:
            await stream.get_final_message()


async def test_arguments_arrive_as_the_model_wrote_them(director: Director, url: str) -> None:
    raw = '{"amount_pence": NaN}'
    await director.script("T-1", [{"tool_calls": [{"name": "issue_refund", "raw": raw}]}])
    headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}

    async with httpx.AsyncClient(base_url=url, headers=headers) as http:
        whole = await http.post("/v1/messages", json=ASK)
        streamed = await http.post("/v1/messages", json=ASK | {"stream": True})

    assert raw in whole.text
    assert "input_json_delta" in streamed.text


async def test_an_answer_waits_at_its_gate_until_it_is_opened(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "Thank you for waiting.", "gate": "lunch"}])
    answer = asyncio.create_task(asdk.messages.create(**ASK))
    await director.asked("T-1", at_least=1)
    assert not answer.done()

    await director.open("lunch")

    assert (await answer).stop_reason == "end_turn"


async def test_a_script_repeats_its_last_answer_where_it_is_told_to(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "Again."}], repeat=True)
    conversation: list[Any] = [{"role": "user", "content": "Ticket T-1"}]

    for _ in range(3):
        message = await asdk.messages.create(**ASK | {"messages": conversation})
        assert message.content[0].type == "text"
        assert message.content[0].text == "Again."
        conversation += [
            {"role": "assistant", "content": message.content},
            {"role": "user", "content": "And?"},
        ]


async def test_the_longest_key_is_the_one_that_counts(director: Director, asdk: AsyncAnthropic) -> None:
    await director.script("T-1", [{"text": "short"}])
    await director.script("T-12", [{"text": "long"}])

    message = await asdk.messages.create(**ASK | {"messages": [{"role": "user", "content": "Ticket T-12"}]})

    assert message.content[0].type == "text"
    assert message.content[0].text == "long"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ({"answers": []}, "needs a `key`"),
        ({"key": "T-1", "answers": [{"txt": "x"}]}, "unknown fields: txt"),
        ({"key": "T-1", "answers": [{"fault": {"cut": "off"}}]}, "`connection` or `end`"),
    ],
)
def test_a_script_that_cannot_be_read_is_refused_with_the_reason(url: str, script: dict[str, Any], says: str) -> None:
    answer = httpx.put(f"{url}/script", json=script)

    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]
