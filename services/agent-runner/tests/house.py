"""The other services as the agent meets them: played over a real nats-server, always willing."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import nats
import psycopg
from agent_runner import app
from agent_runner.ledger import Away
from agent_runner.run import READS
from agent_runner.settings import Settings
from contracts import service
from contracts.asks import CATALOGUE as ASK_CATALOGUE
from contracts.bus import Bus
from contracts.datakeys import JetStreamKeys, KeyRing
from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.facts import CustomerSaid, Fact, RunEnded, TurnExecuted, TurnForwarded, TurnProposed, TurnQuoted
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import CallQuote, CallResult, Json, Verdict
from contracts.subjects import TENANTS, RunKey, TenantKey
from contracts.tenant_facts import BudgetSet
from contracts.verify import verify
from nats.aio.client import Client
from nats.aio.msg import Msg
from turngate.testing import Database, NatsAccess

from .told import ADA, DIGEST, PACK, started

LOOK: Json = {"text": "I will look.", "tool_calls": [{"name": "get_order", "input": {"order_reference": "ORD-1"}}]}
REPLY: Json = {"text": "Your parcel is on its way."}

CATALOGUE: Json = {
    "tools": [
        {"name": name, "description": name, "input_schema": {"type": "object"}, "kind": kind}
        for name, kind in (("get_order", "read"), ("escalate_to_human", "write"))
    ],
    "version": "1",
    "digest": DIGEST,
}


class House:
    """Desk, policy, shop and approvals. With `willing`, each turn is quoted, forwarded and executed as soon as it is
    proposed. Personal data goes into the log sealed, as it always does."""

    def __init__(self, nc: Client) -> None:
        self.nc = nc
        self.log = JetStreamLog(nc, keys=KeyRing(JetStreamKeys(nc)))
        self.line = JetStreamLog(nc, stream=TENANTS)
        self.willing = True
        self.catalogue = CATALOGUE
        self.asked_for: list[Json] = []
        self.live: list[tuple[str, Json]] = []
        self._events: list[Event] = []
        self._grown = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    async def opens(self) -> None:
        async def catalogue(message: Msg) -> None:
            self.asked_for.append(json.loads(message.data))
            await message.respond(json.dumps(self.catalogue).encode())

        async def hear_live(message: Msg) -> None:
            self.live.append((message.subject, json.loads(message.data)))

        await self.nc.subscribe(ASK_CATALOGUE, cb=catalogue)
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

    async def sets_budget(self, day_micro_usd: int | None, tenant: str = "acme") -> Event:
        history = await self.line.read(TenantKey(tenant))
        fact = BudgetSet(day_micro_usd=day_micro_usd, by=ADA)
        return await self.line.append(history, Draft(fact, None, str(len(history.events))))

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

    async def nothing_in_hand(self, stream: str = "RUNS") -> None:
        """Returns once the agent-runner has dealt with everything that it was to hear."""
        async with asyncio.timeout(20):
            while True:
                consumer = await self.nc.jetstream().consumer_info(stream, "agent-runner")
                if not (consumer.num_pending or consumer.num_ack_pending):
                    return
                await asyncio.sleep(0.02)

    def _of(self, key: RunKey) -> list[Event]:
        return [event for event in self._events if event.key == key]

    async def history(self, key: RunKey) -> History:
        return await self.log.read(key)


def kinds(events: list[Event]) -> list[str]:
    return [event.kind for event in events]


def end_of(events: list[Event]) -> RunEnded:
    [end] = [event.fact for event in events if isinstance(event.fact, RunEnded)]
    return end


def words(events: list[Event]) -> str:
    """All that the facts say, opened."""
    return "\n".join(event.fact.model_dump_json() for event in events if event.fact is not None)


def settings(access: NatsAccess, database: Database, model_url: str | None, **changes: Any) -> Settings:
    user, password = access.user("agent-runner")
    given: Json = {
        "nats_url": access.url,
        "nats_user": user,
        "nats_password": password,
        "postgres_dsn": database.of("agent-runner"),
        "model_api_key": "test" if model_url else None,
        "model_base_url": model_url,
        "issuers": [],
    }
    return Settings(**{**given, **changes})


def running(given: Settings) -> AbstractAsyncContextManager[Bus]:
    """An agent-runner in this process, until the block ends."""
    return service.running("agent-runner", given, app.start, reads=READS, outages=(Away,))


def lines(database: Database, tenant: str = "acme") -> list[dict[str, Any]]:
    """The ledger, as a service of that tenant sees it."""
    with psycopg.connect(database.runner, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])
        return connection.execute("select * from ledger.calls order by reserved_at").fetchall()


def change(database: Database, tenant: str, assignment: str, *values: Any, cause: Event | None = None) -> None:
    """Changes the tenant's calls, all or one, as nobody but a test can."""
    which = "where tenant = %s and cause = coalesce(%s::uuid, cause)"
    with psycopg.connect(database.superuser) as connection:
        connection.execute(
            f"update ledger.calls set {assignment} {which}".encode(), [*values, tenant, cause.id if cause else None]
        )


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
