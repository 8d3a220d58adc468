"""Who follows the log misses nothing and hears nothing twice, whatever becomes of the broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
from contracts.errors import Conflict, Outage
from contracts.events import Draft, Event
from contracts.facts import RunEnded
from contracts.handler import respond
from contracts.history import History
from contracts.log import JetStreamLog, Log
from contracts.subjects import RunKey
from turngate.testing import Server

from .lines import ENDED, STARTED, grow, publish, said
from .servers import SOON, House, Wire, own_server

# Outages


@own_server
async def test_a_fact_whose_confirmation_was_lost_is_not_said_twice(server: Server, key: RunKey) -> None:
    port = int(server.access.url.rsplit(":", 1)[1])
    async with Wire(port) as wire, House(server.access, wire.url) as far, House(server.access) as near:
        log = await far.log(timeout=1.0)
        started = await log.append(History(key), Draft(STARTED, None))
        decisions = 0

        def react(history: History, event: Event) -> Draft | None:
            nonlocal decisions
            decisions += 1
            if history.last(RunEnded):
                return None
            if decisions == 1:
                wire.hold_answers()
            return Draft(ENDED, event)

        with pytest.raises(Outage, match="confirm"):
            await respond(log, started, react)
        wire.let_answers_through()
        assert await respond(log, started, react) is None

        assert decisions == 3  # before the outage, after it with a stale memory, and once more behind the conflict
        kinds = [event.kind for event in (await (await near.log()).read(key)).events]
        assert kinds == ["desk.run-started", "agent.run-ended"]


@own_server
async def test_a_server_that_dies_with_the_message_in_hand_is_an_outage_and_the_fact_is_said_once(
    server: Server, key: RunKey
) -> None:
    port = int(server.access.url.rsplit(":", 1)[1])
    async with Wire(port) as wire, House(server.access, wire.url) as house:
        log = await house.log(timeout=1.0)
        started = await log.append(History(key), Draft(STARTED, None))
        wire.hold_answers()
        with pytest.raises(Outage):
            await log.append(await log.read(key, at=started), Draft(ENDED, started))
        server.restart()
        wire.cut()
        wire.let_answers_through()

        def react(history: History, event: Event) -> Draft | None:
            return None if history.last(RunEnded) else Draft(ENDED, event)

        async with asyncio.timeout(SOON):
            while True:
                with suppress(Outage):
                    await respond(log, started, react)
                    break
        assert [event.kind for event in (await log.read(key)).events] == ["desk.run-started", "agent.run-ended"]


@own_server
async def test_no_server_is_an_outage_for_readers_too(server: Server, key: RunKey) -> None:
    async with House(server.access) as house:
        log = await house.log(timeout=0.5)
        await grow(log, key, 1)
        server.kill()
        with pytest.raises(Outage):
            await log.read(key)
        with pytest.raises(Outage):
            async for _ in log.follow(live=False):
                pass


# Following


async def take(follower: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(SOON):
        return [await anext(follower) for _ in range(count)]


async def test_a_follower_gets_what_was_there_and_what_comes(fresh_house: House, key: RunKey) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    before = await grow(writer, key, 600)  # more than one batch
    async with aclosing(reader.follow()) as follower:
        assert await take(follower, 600) == before
        behind = await grow(writer, key, 620)
        assert await take(follower, 20) == behind
    async with aclosing(reader.follow(after=before[-1].sequence, live=False)) as follower:
        assert [event async for event in follower] == behind


async def test_nothing_is_lost_or_doubled_between_what_was_there_and_what_comes(
    fresh_house: House, key: RunKey
) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    writing = asyncio.create_task(grow(writer, key, 400))
    async with aclosing(reader.follow()) as follower:
        followed = await take(follower, 400)
    assert followed == await writing


async def test_a_follower_of_one_tenant_gets_that_tenants(fresh_house: House) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    runs = [RunKey(tenant, f"TCK-{n}-1") for n in range(5) for tenant in ("acme", "globex")]
    async with aclosing(reader.follow(tenant="acme")) as follower:
        writing = asyncio.gather(*(grow(writer, run, 20) for run in runs))
        followed = await take(follower, 100)
        await writing
    assert {event.key.tenant for event in followed} == {"acme"}
    assert len({event.sequence for event in followed}) == 100
    assert [event.sequence for event in followed] == sorted(event.sequence for event in followed)


async def test_what_lost_with_a_conflict_is_followed_by_nobody(fresh_house: House, key: RunKey) -> None:
    log = await fresh_house.log()
    async with aclosing(log.follow()) as follower:
        first = await log.append(History(key), Draft(STARTED, None))
        with pytest.raises(Conflict):
            await log.append(History(key), Draft(STARTED, None, key="another"))
        second = await log.append(await log.read(key), said("hello"))
        assert await take(follower, 2) == [first, second]


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_one_unreadable_event_does_not_blind_a_follower(
    fresh_house: House, key: RunKey, tenant: str | None
) -> None:
    log, nc = await fresh_house.log(), await fresh_house.client("setup")
    [started] = await grow(log, key, 1)
    await publish(nc, started, b"{")
    other = RunKey("acme", f"{key.run}-2")
    async with aclosing(log.follow(tenant=tenant)) as follower:
        assert await take(follower, 1) == [started]
        await publish(nc, started, subject="run.acme.x.tools.turn-executed.more")
        [behind] = await grow(log, other, 1)
        assert await take(follower, 1) == [behind]


@own_server
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_a_follower_lives_through_a_restart_of_the_server(
    server: Server, server_house: House, key: RunKey, tenant: str | None
) -> None:
    writer, reader = await server_house.log(timeout=1.0), await server_house.log()
    globex = RunKey("globex", key.run)
    async with aclosing(reader.follow(tenant=tenant)) as follower:
        expected = await grow(writer, key, 5)
        assert await take(follower, 5) == expected
        server.restart()
        # The writer may be back before the reader is: what is said meanwhile nobody pushes to the reader.
        for length in range(6, 40):
            expected += await eventually(writer, key, length)
            await eventually(writer, globex, length - 5)
        followed: list[Event] = []
        while len(followed) < 34:
            followed += [event for event in await take(follower, 1) if event.key == key]
        assert followed == expected[5:]


@own_server
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_what_was_said_while_a_follower_was_cut_off_comes_before_what_is_said_behind_it(
    server: Server, server_house: House, key: RunKey, tenant: str | None
) -> None:
    writer = await server_house.log()
    async with Wire(int(server.access.url.rsplit(":", 1)[1])) as wire, House(server.access, wire.url) as far:
        bus = await far.bus("setup")
        async with aclosing(JetStreamLog(bus.nc).follow(tenant=tenant)) as follower:
            grown = await grow(writer, key, 1)
            assert await take(follower, 1) == grown
            waiting = asyncio.create_task(take(follower, 1))
            await asyncio.sleep(0.2)  # it has caught up, and takes the next one as it comes
            grown = await grow(writer, key, 2)
            assert await waiting == grown
            wire.cut()
            missed = await grow(writer, key, 4)
            async with asyncio.timeout(SOON):
                while not (bus.nc.stats["reconnects"] and bus.connected):
                    await asyncio.sleep(0.01)
            behind = await grow(writer, key, 5)
            assert await take(follower, 3) == [*missed, *behind]


async def eventually(log: Log, key: RunKey, length: int) -> list[Event]:
    """`grow`, over an outage. Returns what this run has got beyond `length` - 1."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                await grow(log, key, length)
                return list((await log.read(key)).events[length - 1 :])
            except (Outage, Conflict):
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_a_follower_that_is_too_slow_is_waited_for_by_nobody_and_misses_nothing(
    fresh_house: House, key: RunKey, tenant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contracts.stream._WAITING", 8)
    writer, reader = await fresh_house.log(), await fresh_house.log()
    async with aclosing(reader.follow(tenant=tenant)) as follower:
        first = await grow(writer, key, 1)
        assert await take(follower, 1) == first
        behind = await grow(writer, key, 100)  # the follower does not look
        assert await take(follower, 99) == behind
