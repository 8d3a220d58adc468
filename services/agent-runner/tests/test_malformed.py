"""Answers of endpoints that are only nearly the Messages API: each is one request, one fact, one step, and is paid."""

import asyncio
import copy
import json
from typing import Any

import pytest
from agent_runner.answer import Answer
from agent_runner.domain import word_of
from agent_runner.model import Lost, Model, NotTaken, Unusable
from contracts.events import Draft
from contracts.facts import AnswerUnfinished, TurnProposed
from contracts.parts import UNREADABLE, Json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turngate.testing import Database, NatsAccess

from .endpoint import SSE, Endpoint, call_answer, endpoint, sse, text_answer
from .house import House, end_of, kinds, lines, running
from .house import settings as settings_of
from .test_model import PRICE, request
from .told import Told

NONE_OF_IT = b"data: {not json}\n\n"


def change(events: list[Json], where: str, value: Any) -> list[Json]:
    """The events with the value at a path such as `1.content_block.text`; `...` takes it out."""
    changed = copy.deepcopy(events)
    *path, last = [int(step) if step.isdigit() else step for step in where.split(".")]
    at: Any = changed
    for step in path:
        at = at[step]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return changed


async def ask(bodies: bytes, content_type: str = SSE) -> tuple[Answer, Endpoint]:
    async def hear(_: str) -> None:
        pass

    async with endpoint(bodies, content_type=content_type) as found:
        model = Model("test", found.url, 5)
        try:
            return await model.ask(request(), PRICE, hear), found
        finally:
            await model.close()


# One case of each kind, through the whole service

CASES: dict[str, bytes] = {
    "text of the wrong type": sse(change(text_answer(), "2.delta.text", ["a"])),
    "an id that is too long": sse(call_answer(call_id="x" * 600)),
    "an id that is no text": sse(change(call_answer(), "1.content_block.id", 7)),
    "no id": sse(change(call_answer(), "1.content_block.id", ...)),
    "an empty name": sse(call_answer(name="")),
    "no stop reason": sse(change(text_answer(), "4.delta.stop_reason", ...)),
    "a stop reason of the wrong type": sse(change(text_answer(), "4.delta.stop_reason", {"a": 1})),
    "no index": sse(change(text_answer(), "1.index", ...)),
    "an index that is a text": sse(change(text_answer(), "2.index", "0")),
    "a block of no type": sse(change(text_answer(), "1.content_block.type", None)),
    "a delta before its block": sse([text_answer()[0], *text_answer()[2:]]),
    "a line that is no JSON": sse([text_answer()[0], NONE_OF_IT, *text_answer()[1:]]),
    "a line that is no UTF-8": sse(
        [*text_answer()[:2], b'data: {"type":"ping","x":"\xff\xfe"}\n\n', *text_answer()[2:]]
    ),
    "an event that is a list": sse([[1, 2], *text_answer()]),
    "nested without end": sse([b"data: " + b"[" * 100_000 + b"\n\n", *text_answer()]),
    "a block given twice": sse([*text_answer()[:3], text_answer()[1], *text_answer()[3:]]),
    "nested deeper than a fact can be read": sse(
        change(text_answer(), "1.content_block.x", json.loads("[" * 220 + "]" * 220))
    ),
    "nested deeper than a fact can be written": sse(
        change(text_answer(), "1.content_block.x", json.loads("[" * 280 + "]" * 280))
    ),
    "a page of HTML": b"<html><body>Sign in to the hotel's network</body></html>",
}


@pytest.mark.parametrize("body", CASES.values(), ids=CASES.keys())
async def test_an_answer_that_cannot_be_read_is_recorded_paid_and_counted_and_the_third_ends_the_run(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, body: bytes
) -> None:
    async with endpoint(body) as model, running(settings_of(fresh_nats, fresh_database, model.url)):
        events = await home.ended(await home.starts("TCK-70-1"))
    assert kinds(events)[1:] == ["agent.answer-unfinished"] * 3 + ["agent.run-ended"]
    facts = [event.fact for event in events if isinstance(event.fact, AnswerUnfinished)]
    assert {(fact.stop_reason, len(fact.content)) for fact in facts} == {("unreadable", 0)}
    assert all(fact.cost_micro_usd > 0 for fact in facts)
    end = end_of(events)
    assert (end.status, end.steps) == ("escalated", 3)
    assert end.cost_micro_usd == sum(fact.cost_micro_usd for fact in facts)
    assert len(model.asked) == 3
    assert [line["uncertain_micro_usd"] for line in lines(fresh_database)] == [0, 0, 0]


async def test_an_answer_that_cannot_be_read_is_asked_for_again_and_the_run_goes_on(
    home: House, fresh_nats: NatsAccess, fresh_database: Database
) -> None:
    bodies = [sse(call_answer(call_id="x" * 600)), sse(call_answer()), sse(text_answer())]
    async with endpoint(*bodies) as model, running(settings_of(fresh_nats, fresh_database, model.url)):
        events = await home.ended(await home.starts("TCK-71-1"))
    assert (end_of(events).status, end_of(events).steps, len(model.asked)) == ("resolved", 3, 3)
    assert "could not be read" in json.dumps(model.asked[1]["messages"])


@pytest.mark.parametrize("said", ["\ud83d", "\x00"], ids=["half a character", "a NUL"])
async def test_a_refusal_for_a_reason_that_nobody_can_write_down_ends_the_run(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, said: str
) -> None:
    events = change(text_answer(), "4.delta", {"stop_reason": "refusal", "stop_details": {"category": said}})
    async with endpoint(sse(events)) as model, running(settings_of(fresh_nats, fresh_database, model.url)):
        found = await home.ended(await home.starts("TCK-73-1"))
    assert (end_of(found).status, end_of(found).steps, len(model.asked)) == ("escalated", 1, 1)


async def test_an_endpoint_without_usage_is_worked_with_and_its_answers_are_estimated(
    home: House, fresh_nats: NatsAccess, fresh_database: Database
) -> None:
    def without_usage(events: list[Json]) -> bytes:
        return sse(change(change(events, "0.message.usage", ...), "4.usage", ...))

    bodies = [without_usage(call_answer()), without_usage(change(text_answer(), "1.content_block.text", None))]
    async with endpoint(*bodies) as model, running(settings_of(fresh_nats, fresh_database, model.url)):
        events = await home.ended(await home.starts("TCK-72-1"))
    assert (end_of(events).status, end_of(events).steps, len(model.asked)) == ("resolved", 2, 2)
    [turn] = [event.fact for event in events if isinstance(event.fact, TurnProposed)]
    assert turn.usage.estimated
    assert turn.usage.output < 100
    assert 0 < turn.cost_micro_usd < lines(fresh_database)[0]["reserved_micro_usd"]


# What can be read, though it is not as the API writes it


async def test_input_that_is_given_whole_is_read_and_as_strictly() -> None:
    whole = {"order_reference": "ORD-1", "amount_pence": 1200}
    events = change(call_answer(pieces=""), "1.content_block.input", whole)
    answer, _ = await ask(sse(events))
    assert [made.arguments for made in answer.calls] == [whole]

    answer, _ = await ask(sse([events[0], *events[1:2], *events[3:]]))  # and no piece at all
    assert [made.arguments for made in answer.calls] == [whole]

    twice = json.dumps(events[1]).replace('"amount_pence": 1200', '"amount_pence": 1200, "amount_pence": 9900')
    answer, _ = await ask(sse([events[0], f"data: {twice}\n\n".encode(), *events[2:]]))
    assert (answer.content, answer.stop_reason) == ([], "unreadable")

    nan = json.dumps(events[1]).replace("1200", "NaN")
    answer, _ = await ask(sse([events[0], f"data: {nan}\n\n".encode(), *events[2:]]))
    assert [list(made.arguments) for made in answer.calls] == [[UNREADABLE]]


async def test_input_that_is_given_whole_and_in_other_pieces_is_not_guessed_at() -> None:
    events = change(call_answer(), "1.content_block.input", {"order_reference": "ORD-2"})
    answer, _ = await ask(sse(events))
    assert [list(made.arguments) for made in answer.calls] == [[UNREADABLE]]


async def test_text_that_is_null_at_its_blocks_start_is_read() -> None:
    answer, _ = await ask(sse(change(text_answer("Hello."), "1.content_block.text", None)))
    assert answer.text == "Hello."


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b""])
async def test_an_answer_without_names_of_events_or_a_last_blank_line_is_read(end: bytes) -> None:
    blank = end or b"\n\n"
    body = blank.join(b"data:" + json.dumps(event).encode() for event in text_answer("Hello.")) + end
    answer, _ = await ask(body)
    assert (answer.text, answer.stop_reason) == ("Hello.", "end_turn")


async def test_a_message_in_one_piece_is_read() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": {"order_reference": "ORD-1"}}
    message = {
        "type": "message",
        "content": [{"type": "text", "text": "I will look."}, block],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 100, "output_tokens": 12},
    }
    answer, _ = await ask(json.dumps(message).encode(), "application/json")
    assert answer.text == "I will look."
    assert [made.arguments for made in answer.calls] == [{"order_reference": "ORD-1"}]
    assert (answer.usage.output, answer.usage.estimated) == (12, None)


async def test_what_comes_behind_the_end_and_what_nobody_knows_is_passed_over() -> None:
    strange = {"type": "content_block_start", "index": 1, "content_block": {"type": "hologram", "data": [1]}}
    events = text_answer("Hello.")
    events[4:4] = [{"type": "news"}, strange, {"type": "content_block_stop", "index": 1}]
    answer, _ = await ask(sse([*events, *text_answer("Again."), NONE_OF_IT]))
    assert [block["type"] for block in answer.content] == ["text"]
    assert (answer.text, answer.stop_reason) == ("Hello.", "end_turn")


async def test_an_answer_whose_connection_stays_open_behind_its_end_is_not_waited_for() -> None:
    release = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + sse(text_answer("Hello.")))
        await writer.drain()
        await release.wait()
        writer.close()

    async def hear(_: str) -> None:
        pass

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        model = Model("test", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 60)
        async with asyncio.timeout(30):
            answer = await model.ask(request(), PRICE, hear)
        release.set()
        await model.close()
    assert answer.text == "Hello."


# What is paid

NO_COUNTS: list[Any] = [None, -5, "12", 1.5, True, [], {}, 2**60, 10**400]


@pytest.mark.parametrize("count", NO_COUNTS, ids=str)
@pytest.mark.parametrize("where", ["0.message.usage.input_tokens", "4.usage.output_tokens"])
async def test_a_count_that_no_such_request_can_have_is_estimated(where: str, count: Any) -> None:
    answer, _ = await ask(sse(change(text_answer("Hello."), where, count)))
    assert answer.text == "Hello."
    assert answer.usage.estimated
    assert 0 < answer.cost_micro_usd <= request().at_most_micro_usd


async def test_what_is_counted_is_not_estimated() -> None:
    answer, _ = await ask(sse(text_answer("Hello.")))
    assert (answer.usage.input, answer.usage.output, answer.usage.estimated) == (100, 12, None)


# Whatever an endpoint may send

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["x" * 3000, "\ud83d", "\x00", "0", "tool_use", "text", "thinking", "message_start", "error"]),
    st.lists(st.none(), max_size=2),
    st.just({}),
)
STARTS = [
    text_answer(),
    call_answer(),
    [*call_answer()[:4], *change(call_answer("toolu_2"), "1.index", 1)[1:4], *call_answer()[4:]],
    [{"type": "ping"}, *text_answer()],
]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in the events that holds something."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in inside for place in [(*path, key), *_places(part, (*path, key))]]


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An answer as it should be, with a few things in it changed, left out, doubled or moved, or cut off."""
    events: list[Any] = copy.deepcopy(draw(st.sampled_from(STARTS)))
    for _ in range(draw(st.integers(1, 3))):
        match draw(st.sampled_from(["value", "value", "value", "out", "double", "move", "raw"])):
            case "value" | "out" as how:
                places = [place for place in _places(events) if len(place) > 1]
                if not places:
                    continue
                *path, last = draw(st.sampled_from(places))
                at = events
                for step in path:
                    at = at[step]
                if how == "out":
                    del at[last]
                else:
                    at[last] = draw(ODD)
            case "double" if events:
                events.insert(draw(st.integers(0, len(events))), copy.deepcopy(draw(st.sampled_from(events))))
            case "move" if events:
                events.insert(draw(st.integers(0, len(events) - 1)), events.pop(draw(st.integers(0, len(events) - 1))))
            case "raw":
                line = draw(st.binary(max_size=30)).replace(b"\n", b"") or b"x"
                events.insert(draw(st.integers(0, len(events))), b"data: " + line + b"\n\n")
    body = sse(events)
    return body[: draw(st.integers(1, len(body)))] if body and draw(st.booleans()) else body or b"\n"


@given(body=streams())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_is_one_request_and_a_fact_or_what_may_be_owed(body: bytes) -> None:
    async def tries() -> None:
        async with endpoint(body) as found:
            model = Model("test", found.url, 5)
            try:
                await _comes_to_a_fact(model)
            finally:
                await model.close()
                assert len(found.asked) == 1

    asyncio.run(tries())


async def _comes_to_a_fact(model: Model) -> None:
    async def hear(text: str) -> None:
        json.dumps(text)

    told = Told()
    try:
        answer = await model.ask(request(told), PRICE, hear)
    except Unusable as error:
        return None if error.billed else pytest.fail("inside a 200 nothing is for free")
    except Lost:
        return None
    except NotTaken:
        pytest.fail("inside a 200 nothing is for free")
    assert 0 < answer.cost_micro_usd <= request(told).at_most_micro_usd
    kept = Answer.model_validate_json(answer.model_dump_json())
    fact = word_of(told.run, kept)
    event = told.log.say(told.history, Draft(fact, told.last))
    assert event.payload
    assert told.is_sent()
