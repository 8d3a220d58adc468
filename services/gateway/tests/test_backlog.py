"""Many who join late catch up by reading the log together, and each sees its first fact soon."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
import nats
import pytest

from .conftest import World
from .facts import started
from .test_streams import some, stream

pytestmark = pytest.mark.timeout(120)
FACTS = 600
PEOPLE = ("alex", "sam", "sue", "lee", "ari", "ada")


@asynccontextmanager
async def reads(world: World) -> AsyncIterator[list[bytes]]:
    """What the log is asked for meanwhile, by anybody."""
    user, password = world.nats.user("setup")
    client = await nats.connect(world.nats.url, user=user, password=password)
    asked: list[bytes] = []

    async def heard(message: object) -> None:
        asked.append(getattr(message, "data", b""))

    await client.subscribe("$JS.API.DIRECT.GET.RUNS", cb=heard)
    await client.flush()
    try:
        yield asked
    finally:
        await client.close()


async def fill(world: World, count: int) -> list[int]:
    said = [await world.others.say(f"TCK-{n}-1", started(f"TCK-{n}", body="Please. " * 50)) for n in range(count)]
    return [event.sequence for events in said for event in events]


async def test_many_late_joiners_read_the_log_once_and_all_hear_everything_in_order(world: World) -> None:
    said = await fill(world, FACTS)
    await world.seen(f"TCK-{FACTS - 1}-1")
    behind = [0, 0, 0, said[1], said[3]]
    each = world.settings.max_streams_per_person
    joiners = [(person, behind[n % len(behind)]) for person in PEOPLE for n in range(each)]
    async with AsyncExitStack() as stack, reads(world) as asked:
        clients = {
            person: await stack.enter_async_context(world.client(person, limits=httpx.Limits())) for person in PEOPLE
        }

        async def join(person: str, after: int) -> list[int]:
            place = {"Last-Event-ID": str(after)} if after else {}
            async with stream(clients[person], "/v1/events", **place) as frames:
                missed = len([sequence for sequence in said if sequence > after])
                return [int(str(frame.id)) for frame in await some(frames, missed)]

        heard = await asyncio.gather(*(join(*joiner) for joiner in joiners))
    assert len(joiners) >= 72
    for (_, after), sequences in zip(joiners, heard, strict=True):
        assert sequences == [sequence for sequence in said if sequence > after]
    # Three pages and their end, and the two places that were named: not one for each who joined. The rest is asked by
    # those who follow all tenants.
    pages = [query for query in asked if b"run.acme." in query]
    places = [query for query in asked if b"next_by_subj" not in query]
    assert (3 <= len(pages) <= 8, len(places) <= 4) == (True, True), asked
