"""A model that is away is seen: in the run's JSON, in the lists, on its page and in the queue, for as long as it is."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest
from contracts.bus import Bus
from contracts.facts import RunCancelled
from contracts.model_wait import KEPT_FOR, ModelWait
from contracts.subjects import RunKey
from gateway import model_waits
from gateway.model_waits import ModelWaits

from .conftest import World, connect
from .facts import ALEX, started, story_to_the_hold
from .test_console import browser

SINCE = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC)
AWAY = ModelWait(state="away", since=SINCE, attempt=3, status="529")
SILENT = ModelWait(state="waiting", since=SINCE, attempt=1)
RUN = "TCK-2004-1"
KEY = RunKey("acme", RUN)


@pytest.fixture
async def runner(world: World) -> AsyncIterator[Bus]:
    await world.ticket()
    await world.others.say(RUN, started())
    bus = await connect(world.nats, "agent-runner")
    yield bus
    await bus.close()


async def until(client: httpx.AsyncClient, runner: Bus, wait: ModelWait | None) -> dict[str, object]:
    """The run's JSON, once it says so; said again, as a runner does."""
    async with asyncio.timeout(20):
        while True:
            await runner.send_model_wait(KEY, wait)
            await runner.nc.flush()
            run: dict[str, object] = (await client.get(f"/v1/runs/{RUN}")).json()
            if (run["model_wait"] is None) == (wait is None):
                return run


async def read_until(pieces: AsyncIterator[str], word: str) -> str:
    heard = ""
    async with asyncio.timeout(20):
        while word not in heard:
            heard += await anext(pieces)
    return heard


# In the API


async def test_a_run_and_the_lists_say_that_it_waits_until_it_does_no_more(world: World, runner: Bus) -> None:
    async with world.client() as alex:
        assert (await alex.get(f"/v1/runs/{RUN}")).json()["model_wait"] is None
        said = (await until(alex, runner, AWAY))["model_wait"]
        assert said == {"state": "away", "since": "2026-11-30T09:00:00Z", "attempt": 3, "status": "529"}
        await world.seen(RUN)
        [listed] = (await alex.get("/v1/runs")).json()["runs"]
        assert listed["model_wait"] == said
        [of_ticket] = (await alex.get("/v1/tickets/TCK-2004")).json()["runs"]
        assert of_ticket["model_wait"] == said
        await until(alex, runner, None)
        assert (await alex.get("/v1/runs")).json()["runs"][0]["model_wait"] is None


async def test_a_run_that_has_ended_waits_for_nothing_whatever_its_runner_still_says(world: World, runner: Bus) -> None:
    async with world.client() as alex:
        await until(alex, runner, AWAY)
        await world.others.say(RUN, RunCancelled(by=ALEX))
        await runner.send_model_wait(KEY, AWAY)
        assert (await alex.get(f"/v1/runs/{RUN}")).json()["model_wait"] is None


async def test_a_run_of_another_tenant_says_nothing_of_it(world: World, runner: Bus) -> None:
    await world.others.say(RUN, started(), tenant="globex")
    async with world.client() as alex, world.client("gwen") as gwen:
        await until(alex, runner, AWAY)
        assert (await gwen.get(f"/v1/runs/{RUN}")).json()["model_wait"] is None


async def test_who_follows_a_run_is_given_a_sign_at_once_and_no_event(world: World, runner: Bus) -> None:
    async with world.client() as alex:
        headers = {"Accept": "text/event-stream"}
        async with alex.stream("GET", f"/v1/runs/{RUN}/events", headers=headers) as answer:
            pieces = answer.aiter_text()
            await read_until(pieces, "turngate.desk.run-started.v1")
            await until(alex, runner, AWAY)
            assert "data:" not in await read_until(pieces, ": still here")


# In the console


async def test_the_page_of_a_run_says_it_when_it_is_loaded_and_as_it_changes(world: World, runner: Bus) -> None:
    async with world.client() as alex, browser(world, "alex") as client:
        await until(alex, runner, AWAY)
        page = (await client.get("/tickets/TCK-2004")).text
        [element] = re.findall(rf'<p class="wait[^>]* id="wait-{RUN}".*?</p>', page, re.DOTALL)
        assert "The model is away (529) since 09:00:00, attempt 3" in element
        async with client.stream("GET", f"/console/stream/runs/{RUN}?after=1") as answer:
            pieces = answer.aiter_text()
            await read_until(pieces, "The model is away (529) since 09:00:00, attempt 3")
            await until(alex, runner, SILENT)
            await read_until(pieces, "Waiting for the model since 09:00:00, attempt 1")
            await until(alex, runner, None)
            emptied = await read_until(pieces, f"wait-{RUN}")
            assert "Waiting for" not in emptied


async def test_a_page_that_was_loaded_while_it_waited_is_told_that_it_does_no_more(world: World, runner: Bus) -> None:
    async with (
        browser(world, "alex") as client,
        client.stream("GET", f"/console/stream/runs/{RUN}?after=1") as answer,
    ):
        await read_until(answer.aiter_text(), f'"wait-{RUN}"')


async def test_the_queue_says_it_on_the_tickets_line(world: World, runner: Bus) -> None:
    async with world.client() as alex, browser(world, "alex") as client:
        await world.seen(RUN)
        async with client.stream("GET", "/console/stream/inbox") as answer:
            pieces = answer.aiter_text()
            await read_until(pieces, "event: state")
            await until(alex, runner, AWAY)
            await read_until(pieces, "The model is away (529) since 09:00:00, attempt 3")
            assert "The model is away (529)" in (await client.get("/tickets")).text
            await until(alex, runner, None)
            async with asyncio.timeout(20):  # what was still on its way may come first
                while "away" in await read_until(pieces, "ticket-TCK-2004"):
                    pass


async def test_a_held_run_waits_for_a_person_and_no_model(world: World) -> None:
    await world.others.say("TCK-2005-1", *story_to_the_hold())
    waits = ModelWaits(lambda _: None)
    waits.hear(RunKey("acme", "TCK-2005-1"), AWAY)
    assert waits.of(await world.runs.read("acme", "TCK-2005-1")) is None


# What is remembered


def test_what_is_said_no_more_is_forgotten() -> None:
    now = [0.0]
    waits = ModelWaits(lambda _: None, lambda: now[0])
    waits.hear(KEY, AWAY)
    now[0] = KEPT_FOR
    assert waits.of_key(KEY) == AWAY
    waits.hear(KEY, AWAY)
    now[0] += KEPT_FOR
    assert waits.of_tenant("acme") == {RUN: AWAY}
    now[0] += 0.1
    assert (waits.of_key(KEY), waits.of_tenant("acme")) == (None, {})


def test_who_looks_is_woken_where_it_changes_and_only_there() -> None:
    woken: list[RunKey] = []
    waits = ModelWaits(woken.append)
    for wait in (None, AWAY, AWAY, SILENT, None, None):
        waits.hear(KEY, wait)
    assert woken == [KEY] * 3


def test_there_is_an_end_to_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_waits, "MOST", 2)
    waits = ModelWaits(lambda _: None)
    for n in range(4):
        waits.hear(RunKey("acme", f"TCK-{n}-1"), AWAY)
    assert set(waits.of_tenant("acme")) == {"TCK-0-1", "TCK-1-1"}
    waits.hear(RunKey("acme", "TCK-0-1"), SILENT)
    assert waits.of_tenant("acme")["TCK-0-1"] == SILENT


def test_what_is_over_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_waits, "MOST", 2)
    now = [0.0]
    waits = ModelWaits(lambda _: None, lambda: now[0])
    for n in range(2):  # nobody says that they are over, and nobody looks at them
        waits.hear(RunKey("globex", f"TCK-{n}-1"), AWAY)
    now[0] = KEPT_FOR + 0.1
    waits.hear(KEY, AWAY)
    assert waits.of_key(KEY) == AWAY
