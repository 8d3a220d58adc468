"""The streams: complete, in order, resumable, and bounded."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from contracts.facts import RunCancelled
from gateway import sse
from turngate.sse import Frame, Parser

from .conftest import World
from .facts import ALEX, executed, started, story_from_the_hold, story_to_the_hold

pytestmark = pytest.mark.timeout(60)
STREAM = {"Accept": "text/event-stream"}


@asynccontextmanager
async def stream(client: httpx.AsyncClient, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Frame]]:
    async with client.stream("GET", path, headers={"Accept": "text/event-stream", **headers}) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert answer.headers["x-accel-buffering"] == "no"
        assert "no-cache" in answer.headers["cache-control"]
        parser = Parser()

        async def frames() -> AsyncIterator[Frame]:
            async for piece in answer.aiter_bytes():
                for frame in parser.feed(piece):
                    yield frame

        yield frames()


async def some(frames: AsyncIterator[Frame], count: int) -> list[Frame]:
    return [await asyncio.wait_for(anext(frames), 20) for _ in range(count)]


def kinds(frames: list[Frame]) -> list[str]:
    return [str(document(frame)["type"]).removeprefix("turngate.").removesuffix(".v1") for frame in frames]


def document(frame: Frame) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(frame.data)
    return parsed


async def test_a_run_is_told_from_its_first_fact_to_its_last_and_the_stream_ends(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client() as alex, stream(alex, "/v1/runs/TCK-2004-1/events") as frames:
        before = await some(frames, 8)
        said = await world.others.say("TCK-2004-1", *story_from_the_hold())
        after = await some(frames, 5)
        assert [frame async for frame in frames] == []

    assert [int(str(frame.id)) for frame in after] == [event.sequence for event in said]
    assert kinds(before)[-1] == "policy.turn-held"
    assert kinds(after)[-1] == "agent.run-ended"


async def test_a_stream_goes_on_where_it_broke(world: World) -> None:
    events = await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client() as alex:
        async with stream(alex, "/v1/runs/TCK-2004-1/events", **{"Last-Event-ID": str(events[2].sequence)}) as frames:
            assert [int(str(frame.id)) for frame in await some(frames, 5)] == [event.sequence for event in events[3:]]
        async with stream(alex, f"/v1/runs/TCK-2004-1/events?after={events[5].sequence}") as frames:
            assert kinds(await some(frames, 2)) == ["tools.turn-quoted", "policy.turn-held"]


async def test_who_comes_back_behind_the_end_is_told_the_end_again(world: World) -> None:
    events = await world.others.say("TCK-2004-1", *story_to_the_hold(), *story_from_the_hold())
    last = {"Last-Event-ID": str(events[-1].sequence)}
    async with world.client() as alex, stream(alex, "/v1/runs/TCK-2004-1/events", **last) as frames:
        assert kinds([frame async for frame in frames]) == ["agent.run-ended"]


async def test_what_happened_behind_the_end_is_told_with_it(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold(), RunCancelled(by=ALEX), executed(2, ("c-2", "Refunded.")))
    async with world.client() as alex, stream(alex, "/v1/runs/TCK-2004-1/events") as frames:
        assert kinds([frame async for frame in frames])[-2:] == ["desk.run-cancelled", "tools.turn-executed"]


async def test_who_comes_back_between_the_end_and_what_came_later_is_told_that_and_the_stream_ends(
    world: World,
) -> None:
    paid = executed(2, ("c-2", "Refunded."))
    events = await world.others.say("TCK-2004-1", *story_to_the_hold(), RunCancelled(by=ALEX), paid)
    for seen, told in ((events[-2], ["tools.turn-executed"]), (events[-1], ["desk.run-cancelled"])):
        place = {"Last-Event-ID": str(seen.sequence)}
        async with world.client() as alex, stream(alex, "/v1/runs/TCK-2004-1/events", **place) as frames:
            assert kinds([frame async for frame in frames]) == told


async def test_what_people_write_after_taking_over_is_told_to_who_follows_the_run(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with (
        world.client() as alex,
        stream(alex, "/v1/runs/TCK-2004-1/events") as frames,
        alex.stream("GET", "/console/stream/runs/TCK-2004-1") as page,
    ):
        await alex.post("/v1/runs/TCK-2004-1/take-over")
        assert kinds(await some(frames, 2))[-1] == "desk.run-taken-over"
        await alex.post("/v1/runs/TCK-2004-1/messages", json={"text": "Hello Tom, this is Alex."})
        assert kinds(await some(frames, 1)) == ["desk.person-said"]
        async with asyncio.timeout(20):
            assert await anext(line async for line in page.aiter_lines() if "Hello Tom, this is Alex." in line)


@pytest.mark.parametrize("place", ["abc", "-1", "1.5", "99999999999999999999"])
async def test_a_place_that_is_none_is_refused(world: World, place: str) -> None:
    await world.others.say("TCK-2004-1", started())
    async with world.client() as alex:
        for path in ("/v1/runs/TCK-2004-1/events", "/v1/events"):
            for answer in (
                await alex.get(path, headers={"Last-Event-ID": place, "Accept": "text/event-stream"}),
                await alex.get(path, params={"after": place}),
            ):
                assert answer.status_code == 400


async def test_a_place_of_another_run_or_tenant_is_refused(world: World) -> None:
    [mine] = await world.others.say("TCK-1-1", started("TCK-1"))
    [other] = await world.others.say("TCK-2-1", started("TCK-2"))
    [foreign] = await world.others.say("TCK-1-1", started("TCK-1"), tenant="globex")
    async with world.client() as alex:
        for path, event in (
            ("/v1/runs/TCK-1-1/events", other),
            ("/v1/runs/TCK-1-1/events", foreign),
            ("/v1/events", foreign),
        ):
            answer = await alex.get(path, headers={"Last-Event-ID": str(event.sequence), "Accept": "text/event-stream"})
            assert answer.status_code == 400
        async with stream(alex, "/v1/events", **{"Last-Event-ID": str(mine.sequence)}) as frames:
            [frame] = await some(frames, 1)
            assert int(str(frame.id)) == other.sequence


async def test_a_tenant_hears_all_of_its_runs_and_nobody_elses(world: World) -> None:
    await world.others.say("TCK-1-1", started("TCK-1"))
    await world.others.say("TCK-1-1", started("TCK-1"), tenant="globex")
    async with world.client() as alex, stream(alex, "/v1/events") as frames:
        await world.others.say("TCK-2-1", started("TCK-2"), tenant="globex")
        await world.others.say("TCK-3-1", started("TCK-3"))
        heard = [document(frame) for frame in await some(frames, 2)]
    assert [(one["tenant"], one["subject"]) for one in heard] == [("acme", "TCK-1-1"), ("acme", "TCK-3-1")]


async def test_many_listeners_hear_everything_once_and_in_order(world: World) -> None:
    async def listen(client: httpx.AsyncClient) -> list[int]:
        async with stream(client, "/v1/events") as frames:
            return [int(str(frame.id)) for frame in await some(frames, 60)]

    async with world.client("alex") as alex, world.client("sam") as sam:
        listeners = [asyncio.create_task(listen(client)) for client in (alex, sam) for _ in range(5)]
        said = [
            event.sequence
            for number in range(60)
            for event in await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"))
        ]
        heard = await asyncio.gather(*listeners)
    assert heard == [said] * 10


async def test_one_person_has_so_many_streams_and_no_more(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    most = world.settings.max_streams_per_person
    async with world.client() as alex:
        opened = [alex.stream("GET", "/v1/events") for _ in range(most)]
        answers = [await one.__aenter__() for one in opened]
        # Held on to: one that is let go of closes its connection.
        begun = [answer.aiter_bytes() for answer in answers]
        for pieces in begun:
            await anext(pieces)
        one_too_many = await alex.get("/v1/events")
        for one in opened:
            await one.__aexit__(None, None, None)
    assert one_too_many.status_code == 429
    assert one_too_many.headers["retry-after"]


@pytest.mark.parametrize("path", ["/v1/events", "/v1/runs/TCK-2004-1/events", "/console/stream/inbox"])
async def test_of_many_who_come_at_once_those_who_are_too_many_are_told_so_and_get_no_stream(
    world: World, path: str
) -> None:
    await world.others.say("TCK-2004-1", started())
    most = world.settings.max_streams_per_person
    async with world.client(limits=httpx.Limits(max_connections=None)) as alex, AsyncExitStack() as stack:
        opened = [stack.enter_async_context(alex.stream("GET", path, headers=STREAM)) for _ in range(most + 8)]
        answers = await asyncio.gather(*opened)
        statuses = Counter(answer.status_code for answer in answers)
        refused = [answer for answer in answers if answer.status_code != 200]
        for answer in refused:
            await answer.aread()
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["retry-after"]
            assert "streams open" in answer.json()["detail"]
    assert statuses == {200: most, 429: 8}
    # What is closed counts no longer.
    async with world.client() as alex, stream(alex, "/v1/events") as frames:
        await some(frames, 1)


async def test_a_silent_stream_shows_that_it_lives(world: World) -> None:
    async with world.client() as alex, alex.stream("GET", "/v1/events") as answer:
        lines = answer.aiter_lines()
        async with asyncio.timeout(20):
            async for line in lines:
                if line.startswith(":"):
                    return


async def test_json_is_for_who_asks_for_no_stream(world: World) -> None:
    events = await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client() as alex:
        answer = await alex.get("/v1/runs/TCK-2004-1/events")
        rest = await alex.get("/v1/runs/TCK-2004-1/events", params={"after": events[6].sequence})
    assert [one["id"] for one in answer.json()["events"]] == [event.id for event in events]
    assert answer.json()["events"][0] == events[0].opened_document()
    assert len(rest.json()["events"]) == 1


def test_no_text_ends_a_frame_or_begins_a_field() -> None:
    frame = sse.frame("one\r\nid: 7\n\ndata: two\rthree", id=3, event="text")

    assert frame == b"id: 3\nevent: text\ndata: one\ndata: id: 7\ndata: \ndata: data: two\ndata: three\n\n"
