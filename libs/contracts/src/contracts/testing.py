"""For the tests of services: people, a run's first fact, and on a real broker everyone else, said by one user."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import nats

from contracts.datakeys import JetStreamKeys, KeyRing
from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.facts import Fact, RunStarted
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Customer, Limits, Person, Ticket
from contracts.subjects import RunKey

PATIENCE = 20


def person(subject: str, role: str, issuer: str = "https://id.example") -> Person:
    return Person(subject=subject, issuer=issuer, role=role)


def started(by: Person) -> RunStarted:
    return RunStarted(
        ticket=Ticket(
            reference="TCK-2004",
            customer=Customer(email="tom@example.org", id="C-1004"),
            subject="Jacket",
            body="I want to return it.",
        ),
        profile="support",
        requested_by=by,
        limits=Limits(max_steps=12, max_cost_micro_usd=1_000_000),
        model="stand-in",
        prompt_version="1",
        policy_pack="acme",
        toolset="shop",
    )


class World:
    """Everyone but the service that is tested."""

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
async def world(url: str, user: str, password: str, *, sealed: bool = False) -> AsyncIterator[World]:
    """sealed: whether personal data goes into the log as the gateway has it there, under a key for each run."""
    client = await nats.connect(url, user=user, password=password)
    try:
        yield World(JetStreamLog(client, keys=KeyRing(JetStreamKeys(client)) if sealed else None))
    finally:
        await client.close()
