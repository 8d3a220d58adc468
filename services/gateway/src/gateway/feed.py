"""The accepted facts as they come: one follower of the log for the whole process, shared out to whoever listens."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import TypeVar

from contracts.bus import Bus
from contracts.events import Event
from contracts.facts import RunErased
from contracts.following import keep_up
from contracts.log import JetStreamLog
from contracts.parts import Json
from contracts.subjects import RunKey

from gateway.backlog import Backlog
from gateway.frames import Frames

T = TypeVar("T")

# A listener that is further behind than this is not waited for: it reads from the log what it missed.
ROOM = 2000
Heard = Event | Json
# Given to who follows a run of which something has changed that is no fact: they look for themselves.
LOOK: Json = {"look": True}


class Listener:
    """What has come for one listener since it last asked: facts, and, if it follows a run, its live text."""

    def __init__(self, tenant: str | None, key: RunKey | None) -> None:
        self.tenant = tenant
        self.key = key
        self.overflowed = False
        self._waiting: deque[Heard] = deque()
        self._arrived = asyncio.Event()

    def wants(self, key: RunKey) -> bool:
        return key == self.key if self.key else self.tenant in (None, key.tenant)

    def put(self, heard: Heard) -> None:
        if len(self._waiting) >= ROOM:
            self.overflowed = True
            self._waiting.clear()
        self._waiting.append(heard)
        self._arrived.set()

    async def take(self) -> list[Heard]:
        """Everything that waits, as soon as anything does."""
        await self._arrived.wait()
        self._arrived.clear()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken


class Feed:
    """`last` is the sequence of the last fact that was shared out."""

    def __init__(self, bus: Bus, log: JetStreamLog, last: int = 0) -> None:
        self.last = last
        self._bus = bus
        self._log = log
        self.backlog = Backlog(log)
        self.frames = Frames()
        self._listeners: set[Listener] = set()

    async def run(self) -> None:
        """Follows the log for ever."""
        await keep_up(self._log, self._share, self.last)

    def _share(self, event: Event) -> None:
        self.last = event.sequence
        if event.kind == RunErased.kind:
            self.backlog.forget()
            self.frames.forget()
        for listener in self._listeners:
            if listener.wants(event.key):
                listener.put(event)

    def touch(self, key: RunKey) -> None:
        """Wakes whoever follows this very run."""
        for listener in self._listeners:
            if listener.key == key:
                listener.put(LOOK)

    @contextmanager
    def listener(self, tenant: str | None = None, key: RunKey | None = None) -> Iterator[Listener]:
        listener = Listener(tenant, key)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def batches(self, after: int, tenant: str | None = None) -> AsyncGenerator[list[Event]]:
        """Every accepted fact behind `after`, once and in order, taken as many at a time as have come."""
        with self.listener(tenant) as listener:
            while True:
                listener.overflowed = False
                if after < self.last:
                    async with aclosing(self.backlog.behind(after, tenant, lambda: self.last)) as behind:
                        async for batch in behind:
                            after = batch[-1].sequence
                            yield batch
                while not listener.overflowed:
                    fresh = [e for e in await listener.take() if isinstance(e, Event) and e.sequence > after]
                    if fresh and not listener.overflowed:
                        after = fresh[-1].sequence
                        yield fresh

    async def of_run(self, key: RunKey, after: int) -> AsyncGenerator[list[Heard]]:
        """One run's facts behind `after`, then what comes, its live text included. Ends never by itself."""
        with self.listener(key=key) as listener:
            async with self._bus.hear_live(key, listener.put):
                while True:
                    listener.overflowed = False
                    history = await self._log.read(key)
                    if behind := [event for event in history.events if event.sequence > after]:
                        after = behind[-1].sequence
                        yield list(behind)
                    while not listener.overflowed:
                        fresh = [e for e in await listener.take() if not isinstance(e, Event) or e.sequence > after]
                        if fresh and not listener.overflowed:
                            after = max((e.sequence for e in fresh if isinstance(e, Event)), default=after)
                            yield fresh


async def with_pauses(source: AsyncGenerator[T], every: float) -> AsyncGenerator[T | None]:
    """The source's items, and None whenever nothing came for `every` seconds."""
    pending: asyncio.Task[T] | None = None
    try:
        while True:
            pending = pending or asyncio.ensure_future(anext(source))
            done, _ = await asyncio.wait((pending,), timeout=every)
            if not done:
                yield None
                continue
            try:
                item = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield item
    finally:
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await pending
        await source.aclose()
