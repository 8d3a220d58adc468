"""The other services as the agent meets them: played over a real nats-server, always willing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import nats
from agent_runner import app
from agent_runner.domain import READS
from agent_runner.ledger import Away
from agent_runner.settings import Settings
from contracts.bus import Bus
from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.facts import CustomerSaid, Fact, TurnExecuted, TurnForwarded, TurnProposed, TurnQuoted
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import CallQuote, CallResult, Json, Verdict
from contracts.subjects import RunKey
from contracts.verify import verify
from nats.aio.client import Client
from nats.aio.msg import Msg
from turngate.testing import Database, NatsAccess

from .told import DIGEST, PACK, started

CATALOGUE: Json = {
    "tools": [
        {"name": name, "description": name, "input_schema": {"type": "object"}, "kind": kind}
        for name, kind in (("get_order", "read"), ("escalate_to_human", "write"))
    ],
    "version": "1",
    "digest": DIGEST,
}


class House:
    """Desk, policy and shop. With `willing`, each turn is quoted, forwarded and executed as soon as it is proposed."""

    def __init__(self, nc: Client) -> None:
        self.nc = nc
        self.log = JetStreamLog(nc)
        self.willing = True
        self.catalogue = CATALOGUE
        self.live: list[tuple[str, Json]] = []
        self._events: list[Event] = []
        self._grown = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    async def opens(self) -> None:
        async def catalogue(message: Msg) -> None:
            await message.respond(json.dumps(self.catalogue).encode())

        async def hear_live(message: Msg) -> None:
            self.live.append((message.subject, json.loads(message.data)))

        await self.nc.subscribe("ask.tools.catalogue", cb=catalogue)
        await self.nc.subscribe("live.>", cb=hear_live)
        self._tasks.append(asyncio.create_task(self._follow()))

    async def closes(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.nc.close()

    async def _follow(self) -> None:
        async for event in self.log.follow():
            async with self._grown:
                self._events.append(event)
                self._grown.notify_all()
            if isinstance(event.fact, TurnProposed) and self.willing:
                await self.runs(event)

    # Saying

    async def starts(self, run: str, **changes: Any) -> RunKey:
        key = RunKey("acme", run)
        reference = run.rpartition("-")[0]
        begins = started(**changes)
        begins = begins.model_copy(update={"ticket": begins.ticket.model_copy(update={"reference": reference})})
        await self.says(key, begins)
        return key

    async def says(self, key: RunKey, fact: Fact, cause: Event | None = None, discriminator: str = "") -> Event:
        while True:
            try:
                return await self.log.append(await self.log.read(key), Draft(fact, cause, discriminator))
            except Conflict:
                continue

    async def customer_says(self, key: RunKey, text: str, message: str) -> Event:
        return await self.says(key, CustomerSaid(text=text, message_id=message), None, message)

    async def runs(self, proposed: Event) -> None:
        """Quotes, forwards and executes a turn."""
        fact = proposed.fact
        assert isinstance(fact, TurnProposed)
        quotes = [
            CallQuote(call_id=c.call_id, tool=c.tool, kind="read", arguments=c.arguments, digest=DIGEST)
            for c in fact.calls
        ]
        verdicts = [Verdict(call_id=c.call_id, verdict="run", digest=DIGEST, rule="read") for c in fact.calls]
        results = [CallResult(call_id=c.call_id, content=f"{c.tool} is done") for c in fact.calls]
        event = await self.says(proposed.key, TurnQuoted(turn=fact.turn, attempt=1, quotes=quotes), proposed)
        forwarded = TurnForwarded(turn=fact.turn, attempt=1, pack=PACK, verdicts=verdicts)
        event = await self.says(proposed.key, forwarded, event)
        executed = TurnExecuted(turn=fact.turn, attempt=1, receipt_id=None, results=results)
        await self.says(proposed.key, executed, event)

    # Hearing

    async def until(self, key: RunKey, kind: type[Fact], times: int = 1) -> list[Event]:
        """The run's events, once it has so many of a kind."""

        def there() -> bool:
            return sum(isinstance(event.fact, kind) for event in self._of(key)) >= times

        async with asyncio.timeout(60), self._grown:
            await self._grown.wait_for(there)
        return self._of(key)

    async def ended(self, key: RunKey) -> list[Event]:
        """The run's events, once it has ended. Whatever rule of the log they break fails the test."""
        async with asyncio.timeout(60), self._grown:
            await self._grown.wait_for(lambda: any(event.terminal for event in self._of(key)))
        events = self._of(key)
        assert [str(violation) for violation in verify(events)] == []
        return events

    async def nothing_in_hand(self) -> None:
        """Returns once the agent-runner has dealt with everything that it was to hear."""
        async with asyncio.timeout(20):
            while True:
                consumer = await self.nc.jetstream().consumer_info("RUNS", "agent-runner")
                if not (consumer.num_pending or consumer.num_ack_pending):
                    return
                await asyncio.sleep(0.02)

    def _of(self, key: RunKey) -> list[Event]:
        return [event for event in self._events if event.key == key]

    async def history(self, key: RunKey) -> History:
        return await self.log.read(key)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def settings(access: NatsAccess, database: Database, model_url: str | None, **changes: Any) -> Settings:
    user, password = access.user("agent-runner")
    given: Json = {
        "nats_url": access.url,
        "nats_user": user,
        "nats_password": password,
        "postgres_dsn": database.of("agent-runner"),
        "model_api_key": "test" if model_url else None,
        "model_base_url": model_url,
    }
    return Settings(**{**given, **changes})


@asynccontextmanager
async def running(given: Settings) -> AsyncIterator[None]:
    """An agent-runner in this process, until the block ends."""
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(given, "agent-runner", (Away,))
        log = JetStreamLog(bus.nc, READS)
        bus.on_error.append(log.on_error)
        await app.start(bus, log, given, stack)
        stack.push_async_callback(bus.close)
        yield


@asynccontextmanager
async def house(access: NatsAccess) -> AsyncIterator[House]:
    user, password = access.user("setup")
    nc = await nats.connect(access.url, user=user or None, password=password or None)
    at_home = House(nc)
    await at_home.opens()
    try:
        yield at_home
    finally:
        await at_home.closes()
