"""What a process folds in memory from its start on: all that there is, then all that comes, whatever goes wrong."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from contracts.events import Event
from contracts.following import catch_up, keep_up
from contracts.log import JetStreamLog
from contracts.subjects import RunKey

from .lines import grow
from .servers import SOON, House


class Took:
    """Remembers what it took; `fails_at` is the event of which it can make nothing."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.taken: list[int] = []
        self._fails_at = fails_at
        self._more = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self._more.set()
        if event.ordinal == self._fails_at:
            raise LookupError("nobody thought of this")
        self.taken.append(event.ordinal)

    async def has(self, ordinal: int) -> None:
        async with asyncio.timeout(SOON):
            while ordinal not in self.taken:
                self._more.clear()
                await self._more.wait()


@pytest.fixture
async def three(fresh_house: House, key: RunKey) -> list[Event]:
    return await grow(await fresh_house.log(), key, 3)


async def test_who_starts_catches_up_with_all_that_there_is_and_knows_how_far_it_is(
    fresh_house: House, three: list[Event]
) -> None:
    took = Took()

    assert await catch_up(await fresh_house.log(), took) == three[-1].sequence
    assert took.taken == [0, 1, 2]
    assert await catch_up(await fresh_house.log(), took, after=three[-1].sequence) == three[-1].sequence
    assert took.taken == [0, 1, 2]


async def test_an_event_that_its_hearer_can_make_nothing_of_keeps_no_later_one_from_them(
    fresh_house: House, key: RunKey, three: list[Event]
) -> None:
    took = Took(fails_at=1)
    log = await fresh_house.log()
    keeping = asyncio.create_task(keep_up(log, took, after=0))
    try:
        await took.has(2)
        await grow(await fresh_house.log(), key, 5)
        await took.has(4)
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping

    assert took.taken == [0, 2, 3, 4]


async def test_a_reading_that_breaks_off_unexpectedly_goes_on_behind_what_was_taken(
    fresh_house: House, key: RunKey, three: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    took, log = Took(), await fresh_house.log()
    follow, broken = log.follow, asyncio.Event()

    async def breaking(after: int = 0) -> AsyncIterator[Event]:
        async for event in follow(after):
            yield event
            if not broken.is_set():
                broken.set()
                raise RuntimeError("the reader has a bug")

    monkeypatch.setattr(log, "follow", breaking)
    keeping = asyncio.create_task(keep_up(log, took))
    try:
        await took.has(2)
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping

    assert broken.is_set()
    assert took.taken == [0, 1, 2]


async def test_it_ends_with_its_connection(fresh_house: House, three: list[Event]) -> None:
    took, bus = Took(), await fresh_house.bus("gateway")
    keeping = asyncio.create_task(keep_up(JetStreamLog(bus.nc), took))
    await took.has(2)

    await bus.close()

    await asyncio.wait_for(keeping, SOON)
