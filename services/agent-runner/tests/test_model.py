"""What comes of asking the model, over the real SDK: an answer, an outage, or a message for the operator."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agent_runner.answer import Answer
from agent_runner.model import Lost, Model, NotTaken, Unusable
from agent_runner.prices import Prices
from agent_runner.request import Request, Tools, build
from contracts.parts import UNREADABLE, Limits
from standin.director import Director

from .told import DIGEST, PROMPT, Told, started, text

PRICE = Prices.load().of("claude-sonnet-5-5")
TOOLS = Tools(b'[{"name":"get_order","description":"d","input_schema":{"type":"object"}}]', DIGEST)
KEY = "TCK-1"


def request(told: Told | None = None, **changes: Any) -> Request:
    run = (told or Told()).run
    found = build(run, PROMPT, TOOLS, "claude-sonnet-5-5", PRICE, **{"most": 4096, **changes})
    assert found is not None
    return found


@pytest.fixture
async def model(standin_url: str) -> AsyncIterator[Model]:
    model = Model("test", standin_url, 10)
    yield model
    await model.close()


async def ask(model: Model, asked: Request | None = None) -> tuple[Answer, list[str]]:
    heard: list[str] = []

    async def hear(piece: str) -> None:
        heard.append(piece)

    return await model.ask(asked or request(), PRICE, hear), heard


# Answers


async def test_a_reply_is_heard_as_it_comes_and_kept_whole(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "Your parcel is on its way, and will be with you tomorrow."}])
    answer, heard = await ask(model)
    assert answer.text == "".join(heard) == "Your parcel is on its way, and will be with you tomorrow."
    assert len(heard) > 1
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output > 0
    assert answer.cost_micro_usd == PRICE.cost(answer.usage) > 0


async def test_what_is_asked_is_the_prompt_the_tools_and_the_conversation(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "Hello."}])
    await ask(model)
    [body] = await director.bodies(KEY)
    assert body["stream"] is True
    assert body["max_tokens"] == 4096
    assert body["system"][0]["text"] == PROMPT.system
    assert body["tools"] == json.loads(TOOLS.offered)
    assert body["messages"][0]["content"][0]["text"].startswith("Ticket TCK-1\n")


async def test_a_turn_has_its_blocks_as_the_api_gave_them(model: Model, director: Director) -> None:
    calls = [
        {"name": "get_order", "input": {"order_reference": "ORD-1", "n": {"x": [1.5, "é"]}}},
        {"name": "get_order"},
    ]
    await director.script(KEY, [{"thinking": "Let me see.", "text": "I will look.", "tool_calls": calls}])
    answer, _ = await ask(model)
    assert [block["type"] for block in answer.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert answer.content[0]["signature"]
    assert [made.arguments for made in answer.calls] == [calls[0]["input"], {}]
    assert answer.calls[0].call_id.startswith("toolu_")


async def test_a_transcript_with_thoughts_and_results_is_taken_back(model: Model, director: Director) -> None:
    await director.script(
        KEY, [{"thinking": "Hm.", "tool_calls": [{"name": "get_order", "input": {"a": 1}}]}, {"text": "Found it."}]
    )
    told = Told()
    answer, _ = await ask(model, request(told))
    told.answers(*answer.content)
    told.executes()
    answer, _ = await ask(model, request(told))
    assert answer.text == "Found it."


@pytest.mark.parametrize("raw", ['{"amount_pence":NaN}', '{"a":1,"a":2}', '{"a":', '{"x":' * 20_000, '{"r":"\\ud83d"}'])
async def test_arguments_that_cannot_be_carried_are_said_to_be_unreadable(
    model: Model, director: Director, raw: str
) -> None:
    await director.script(KEY, [{"tool_calls": [{"name": "get_order", "raw": raw}]}])
    answer, _ = await ask(model, request(most=50_000))
    assert list(answer.calls[0].arguments) == [UNREADABLE]
    assert len(json.dumps(answer.calls[0].arguments)) < 1_000


async def test_an_answer_beyond_all_bounds_is_not_kept(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "word " * 20_000}])
    answer, _ = await ask(model, request(most=50_000))
    assert (answer.content, answer.stop_reason) == ([], "too_long")
    assert answer.usage.output > 10_000


async def test_an_answer_at_its_length_limit_says_so(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "word " * 1_000}])
    answer, _ = await ask(model, request(most=100))
    assert answer.stop_reason == "max_tokens"
    assert 0 < len(answer.text) <= 400


# Broken off


@pytest.mark.parametrize("cut", ["connection", "end"])
@pytest.mark.parametrize("said", [{"text": "Half a sentence."}, {"tool_calls": [{"name": "get_order"}]}])
async def test_half_an_answer_is_discarded_and_counts_as_long_as_it_may_have_become(
    model: Model, director: Director, cut: str, said: dict[str, Any]
) -> None:
    await director.script(KEY, [{**said, "fault": {"cut": cut}}])
    answer, _ = await ask(model)
    assert (answer.content, answer.stop_reason) == ([], "stream_cut")
    read = answer.usage.input + answer.usage.cache_write
    assert read > 0
    assert answer.usage.output == 4096
    assert answer.cost_micro_usd >= 4096 * 10 + read * 2  # micro-dollars a token, as the price list has it
    assert answer.cost_micro_usd <= request().at_most_micro_usd


async def test_an_answer_that_breaks_off_for_good_counts_as_one_that_was_cut(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "Half of it.", "fault": {"error": "invalid_request_error"}}])
    answer, _ = await ask(model)
    assert (answer.content, answer.stop_reason, answer.usage.output) == ([], "stream_cut", 4096)


# Outages, which are waited out: nothing is paid


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
async def test_an_api_that_says_that_it_cannot_answer_now_is_asked_once_and_took_nothing(
    model: Model, director: Director, status: int
) -> None:
    await director.script(KEY, [[{"fault": {"status": status, "retry_after": 0.01}}, {"text": "There."}]])
    with pytest.raises(NotTaken):
        await ask(model)
    assert await director.asked(KEY) == {0: 1}


@pytest.mark.parametrize(("given", "wait"), [(7, 7.0), (3600, 60.0), (None, 0.0)])
async def test_how_long_an_api_wants_to_be_left_alone_for_is_passed_on_within_reason(
    model: Model, director: Director, given: int | None, wait: float
) -> None:
    await director.script(KEY, [{"fault": {"status": 429, **({"retry_after": given} if given else {})}}])
    with pytest.raises(NotTaken) as outage:
        await ask(model)
    assert outage.value.wait == wait


async def test_an_api_that_is_not_there_took_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        model = Model("test", f"http://127.0.0.1:{taken.getsockname()[1]}", 1)
        with pytest.raises(NotTaken):
            await ask(model)
        await model.close()


# Outages after which nobody knows what is to be paid


@pytest.mark.parametrize("error", ["overloaded_error", "api_error", "rate_limit_error"])
async def test_what_an_answer_cost_that_an_outage_broke_off_is_not_known(
    model: Model, director: Director, error: str
) -> None:
    await director.script(KEY, [{"text": "Half of it.", "fault": {"error": error}}])
    with pytest.raises(Lost):
        await ask(model)


async def test_what_a_model_does_that_stays_silent_is_not_known(director: Director, standin_url: str) -> None:
    await director.script(KEY, [{"text": "Too late.", "gate": "never"}])
    model = Model("test", standin_url, 0.5)
    with pytest.raises(Lost):
        await ask(model)
    assert await director.asked(KEY) == {0: 1}
    await model.close()


async def test_what_an_api_did_that_timed_out_is_not_known(model: Model, director: Director) -> None:
    await director.script(KEY, [{"fault": {"status": 504}}])
    with pytest.raises(Lost):
        await ask(model)


@pytest.mark.parametrize(
    "answered",
    [
        b"",
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\nLost",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 0\r\n\r\n",
    ],
    ids=["nothing", "a proxy's word", "an empty stream"],
)
async def test_what_came_of_a_request_is_not_known_where_no_api_answers_it(answered: bytes) -> None:
    async with proxy(answered) as (url, requests):
        model = Model("test", url, 10)
        with pytest.raises(Lost):
            await ask(model)
        await model.close()
    assert len(requests) == 1


@pytest.mark.parametrize("status", ["429 Too Many Requests", "529 Overloaded"])
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error":"busy"}', b'{"error":{"type":"busy"}}'])
async def test_an_api_that_is_too_busy_took_nothing_whatever_it_says_about_it(status: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    async with proxy(head.encode() + body) as (url, requests):
        model = Model("test", url, 10)
        with pytest.raises(NotTaken):
            await ask(model)
        await model.close()
    assert len(requests) == 1


@asynccontextmanager
async def proxy(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Something between us and the API that takes each request, gives one answer to all and hangs up."""
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [
            int(line.split(b":")[1]) for line in head.lower().splitlines() if line.startswith(b"content-length:")
        ]
        requests.append(await reader.readexactly(length))
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


# What a person must change


async def test_without_a_key_the_operator_is_told_what_to_set() -> None:
    model = Model(None, None, 1)
    with pytest.raises(Unusable, match=r"Set ANTHROPIC_API_KEY .* restart it, and start the run again"):
        await ask(model)


async def test_a_refused_key_says_what_to_set_and_does_not_show_it(standin_url: str) -> None:
    model = Model("invalid-secret", standin_url, 10)
    with pytest.raises(Unusable, match=r"did not accept the key \(401\).*Set ANTHROPIC_API_KEY") as refused:
        await ask(model)
    assert "invalid-secret" not in f"{refused.value} {refused.value.internals}"
    await model.close()


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "refused the request"),
        (402, "billing"),
        (403, "key"),
        (404, "TURNGATE_MODEL"),
        (413, "refused the request"),
    ],
)
async def test_a_refused_request_keeps_the_apis_words_out_of_the_message_and_of_the_log_file(
    model: Model, director: Director, status: int, says: str
) -> None:
    await director.script(KEY, [{"fault": {"status": status, "message": "messages.0: 'Dear Quokka' is not allowed"}}])
    with pytest.raises(Unusable, match=says) as refused:
        await ask(model)
    assert "Quokka" not in f"{refused.value} {refused.value.internals}"
    assert refused.value.internals.startswith(f"{status} ")
    assert "request-id=" in refused.value.internals


# What is asked for


def test_the_same_question_has_the_same_digest_and_another_has_another() -> None:
    assert request().digest == request().digest
    told = Told()
    told.answers(text("Half"), stop="max_tokens")
    assert len({request().digest, request(most=100).digest, request(told).digest}) == 3


def test_output_is_cut_to_what_the_runs_money_pays_for() -> None:
    told = Told(started(limits=Limits(max_steps=12, max_cost_micro_usd=40_000)))
    asked = request(told)
    assert 512 <= json.loads(asked.body)["max_tokens"] < 4096
    assert asked.at_most_micro_usd <= 40_000


def test_a_run_whose_money_does_not_reach_is_not_asked_about() -> None:
    told = Told(started(limits=Limits(max_steps=12, max_cost_micro_usd=5_000)))
    assert build(told.run, PROMPT, TOOLS, "claude-sonnet-5-5", PRICE, 4096) is None


async def test_many_answers_at_once_do_not_mix(model: Model, director: Director) -> None:
    await director.script(KEY, [{"text": "The very same.", "delay_ms": 5}], repeat=True)
    answers = await asyncio.gather(*(ask(model) for _ in range(20)))
    assert {answer.text for answer, _ in answers} == {"The very same."}
