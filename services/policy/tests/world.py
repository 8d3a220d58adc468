"""The rest of the system, as a service on a real broker meets it: everyone else's facts, said by the set-up user."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats
from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.facts import Fact
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.subjects import RunKey
from turngate.testing import NatsAccess

PATIENCE = 20


class World:
    def __init__(self, log: JetStreamLog) -> None:
        self.log = log

    async def say(self, key: RunKey, fact: Fact, cause: Event | None = None) -> Event:
        """Adds a fact behind whatever the run has come to by now."""
        while True:
            history = await self.log.read(key)
            try:
                return await self.log.append(history, Draft(fact, cause, key=str(len(history.events))))
            except Conflict:
                await asyncio.sleep(0.001)

    async def hear(self, key: RunKey, kind: str, count: int = 1) -> Event:
        """The run's event of that kind (the `count`th), once there is one."""
        async with asyncio.timeout(PATIENCE):
            async for event in self.log.follow(tenant=key.tenant):
                if (event.key, event.kind) == (key, kind):
                    count -= 1
                    if not count:
                        return event
        raise AssertionError("the log ended")

    async def history(self, key: RunKey) -> History:
        return await self.log.read(key)


@asynccontextmanager
async def world(server: NatsAccess) -> AsyncIterator[World]:
    user, password = server.user("setup")
    client = await nats.connect(server.url, user=user, password=password)
    try:
        yield World(JetStreamLog(client))
    finally:
        await client.close()
