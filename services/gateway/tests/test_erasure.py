"""An erasure misses nothing: neither a start that is under way, nor one whose confirmation was lost; and says where it
breaks off."""

import asyncio
import json
from functools import partial
from typing import Any

import nats
import psycopg
import pytest
from contracts.datakeys import JetStreamKeys
from contracts.errors import Outage
from contracts.events import Draft, Event
from contracts.facts import RunErased, RunStarted
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Json
from contracts.personal import ERASED
from contracts.tenant_facts import CustomerErased
from gateway.__main__ import answer_erasure
from gateway.erasure import Erase, erase
from gateway.problems import Problem
from gateway.profiles import Tenant
from gateway.runs import Runs, StartRun
from pydantic import SecretStr
from turngate.embedded.nats import SETUP

from .conftest import World, connect
from .facts import ALEX, TOM, started
from .test_domain import asker
from .test_stops import ADA, tenant_line

pytestmark = pytest.mark.timeout(60)
ERASE = Erase(token=SecretStr("ada's"), tenant="acme", customer="C-1004", emails=[TOM.email])


class Halting(JetStreamLog):
    """A log whose author stands still before each append until it may go on."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.reached, self.goes_on = asyncio.Event(), asyncio.Event()

    async def append(self, history: History, draft: Draft) -> Event:
        self.reached.set()
        await self.goes_on.wait()
        return await super().append(history, draft)


class Losing(JetStreamLog):
    """A log whose confirmations are lost: what it is given is kept, and comes to the log when a test lets it."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.under_way: list[tuple[Event, int]] = []

    async def _publish(self, event: Event, expected: int) -> int:
        self.under_way.append((event, expected))
        raise Outage("Nobody answered.")

    async def arrive(self) -> None:
        event, expected = self.under_way[0]
        await super()._publish(event, expected)


async def approvals_agree(world: World) -> None:
    say = await tenant_line(world)

    async def answer(asked: Json) -> Json:
        return {"status": 200, "event": await say(CustomerErased(customer=asked["customer"], by=ADA))}

    await world.answering("approvals", "ask.approvals.tenant", answer)


async def start(world: World, log: JetStreamLog, key: str = "k-1") -> Any:
    """What the gateway does when somebody starts the ticket that they have before them."""
    ticket = await world.desk.ticket("acme", "TCK-2004")
    assert ticket is not None
    bus = await connect(world.nats, "gateway")
    world.stack.push_async_callback(bus.close)
    runs = Runs(log, bus, world.desk, None)
    return partial(runs.start, ticket, Tenant(name="Acme", policy_pack="acme"), asker(ALEX), StartRun(), key, 0)


async def log_of(world: World, kind: type[Any]) -> Any:
    bus = await connect(world.nats, "gateway")
    world.stack.push_async_callback(bus.close)
    return kind(bus.nc, keys=bus.keys)


async def waits_for_a_lock(world: World) -> None:
    """Returns once somebody in the database waits for somebody else."""
    async with await psycopg.AsyncConnection.connect(world.superuser, autocommit=True) as connection:
        while True:
            cursor = await connection.execute(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
            )
            if await cursor.fetchone():
                return
            await asyncio.sleep(0.01)


async def test_a_run_that_is_being_started_in_that_very_moment_is_erased_too(world: World) -> None:
    await world.ticket()
    await approvals_agree(world)
    log: Halting = await log_of(world, Halting)
    starting = asyncio.create_task((await start(world, log))())
    await log.reached.wait()

    erasing = asyncio.create_task(erase(world.settings, ERASE))
    waiting = asyncio.create_task(waits_for_a_lock(world))
    await asyncio.wait((erasing, waiting), timeout=20, return_when=asyncio.FIRST_COMPLETED)
    log.goes_on.set()
    run, erased = (await starting).run, await erasing
    waiting.cancel()

    history = await world.runs.history("acme", run)
    assert (erased.runs, erased.clear) == ([run], [])
    assert history.last(RunErased) is not None
    assert history.end is not None


async def test_who_meant_to_start_a_ticket_that_was_emptied_meanwhile_starts_nothing(world: World) -> None:
    await world.ticket()
    await approvals_agree(world)
    begin = await start(world, await log_of(world, JetStreamLog))
    await erase(world.settings, ERASE)
    with pytest.raises(Problem, match="The customer was erased"):
        await begin()
    with pytest.raises(Problem, match="No such run"):
        await world.runs.history("acme", "TCK-2004-1")


async def test_a_start_that_nobody_knew_of_says_nothing_of_them_when_it_comes_to_the_log(world: World) -> None:
    await world.ticket()
    await approvals_agree(world)
    log: Losing = await log_of(world, Losing)
    with pytest.raises(Outage):
        await (await start(world, log))()
    erased = await erase(world.settings, ERASE)
    assert erased.runs == ["TCK-2004-1"], "it has a key, which has to be destroyed with the runs' own"
    user, password = world.nats.user(SETUP)
    setup = await nats.connect(world.nats.url, user=user, password=password)
    assert await JetStreamKeys(setup).erase(world.key("TCK-2004-1"))
    await setup.close()
    await log.arrive()
    assert nobodys(await first_fact(world))


async def test_what_begins_behind_an_erasure_says_nothing_of_them(world: World) -> None:
    await world.ticket()
    await approvals_agree(world)
    assert (await erase(world.settings, ERASE)).runs == []
    await world.others.say("TCK-2004-1", started())
    assert nobodys(await first_fact(world))


async def first_fact(world: World) -> Event:
    """As somebody reads it who had nothing of the run in memory."""
    log: JetStreamLog = await log_of(world, JetStreamLog)
    return (await log.read(world.key("TCK-2004-1"))).events[0]


def nobodys(first: Event) -> bool:
    return isinstance(first.fact, RunStarted) and first.fact.ticket.body == first.fact.ticket.customer.email == ERASED


async def test_erasing_again_finds_the_same_and_no_more(world: World) -> None:
    await world.ticket()
    await approvals_agree(world)
    await world.others.say("TCK-2004-1", started())
    first = await erase(world.settings, ERASE)
    assert await erase(world.settings, ERASE) == first
    assert first.runs == ["TCK-2004-1"]


async def test_what_breaks_off_says_so_in_its_last_line(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    await approvals_agree(world)
    async with await psycopg.AsyncConnection.connect(world.superuser, autocommit=True) as connection:
        await connection.execute("alter table desk.tickets rename to elsewhere")
    asked = ERASE.model_dump(mode="json") | {"token": "ada's"}
    assert await answer_erasure(world.settings, json.dumps(asked)) == 1
    [*_, last] = capsys.readouterr().err.splitlines()
    assert 'relation "desk.tickets" does not exist' in last
    assert "erase again" in last
