"""A tenant's own line of facts: said behind what was read, followed live, never taken for a run's."""

import asyncio
import uuid
from contextlib import aclosing

import pytest
from contracts import events
from contracts.errors import Conflict, CorruptLog, Forbidden
from contracts.events import Draft, Event
from contracts.examples import TENANT_EXAMPLES
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.subjects import TENANTS, RunKey, TenantKey
from contracts.topology import AUTHORS
from contracts.verify import verify_run

from .servers import SOON, House, own_server

STOP, LIFT = TENANT_EXAMPLES["approvals.stop-set"], TENANT_EXAMPLES["approvals.stop-lifted"]


@pytest.fixture
def tenant() -> TenantKey:
    return TenantKey(f"t-{uuid.uuid4().hex[:12]}")


async def line(house: House, user: str) -> JetStreamLog:
    bus = await house.bus(user)
    log = JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(log.on_error)
    return log


async def test_what_was_said_of_a_tenant_is_read_back_in_one_line(house: House, tenant: TenantKey) -> None:
    log = await line(house, "approvals")
    stopped = await log.append(await log.read(tenant), Draft(STOP, None, "s-1"))
    stale = await log.read(tenant)
    await log.append(stale, Draft(LIFT, stopped, "s-1"))

    with pytest.raises(Conflict):
        await log.append(stale, Draft(STOP, stopped, "s-2"))

    found = list((await (await line(house, "policy")).read(tenant)).events)
    assert [event.fact for event in found] == [STOP, LIFT]
    assert {event.key for event in found} == {tenant}
    assert verify_run(found) == []
    assert [event.key for event in map(events.from_document, (e.document() for e in found))] == [tenant, tenant]


async def test_who_reads_along_hears_a_tenants_facts_as_they_are_accepted(house: House, tenant: TenantKey) -> None:
    log, reader = await line(house, "approvals"), await line(house, "gateway")
    first = await log.append(History(tenant), Draft(STOP, None))
    heard: list[Event] = []
    async with asyncio.timeout(SOON), aclosing(reader.follow(tenant=tenant.tenant)) as following:
        async for event in following:
            heard.append(event)
            if len(heard) == 1:
                await log.append(await log.read(tenant), Draft(LIFT, event))
            else:
                break

    assert heard == [first, (await log.read(tenant)).head]


async def test_the_shop_is_given_each_stop_until_it_has_dealt_with_it(house: House, tenant: TenantKey) -> None:
    heard: asyncio.Queue[Event] = asyncio.Queue()

    async def hear(event: Event) -> None:
        if event.key == tenant:
            await heard.put(event)

    log = await line(house, "approvals")
    stopped = await log.append(History(tenant), Draft(STOP, None))
    await (await house.bus("tools-shop")).hear_tenants(hear)

    async with asyncio.timeout(SOON):
        assert await heard.get() == stopped


@own_server
@pytest.mark.parametrize("service", sorted(set(AUTHORS) - {"approvals"}))
async def test_nobody_but_approvals_says_anything_of_a_tenant(house: House, tenant: TenantKey, service: str) -> None:
    log = await line(house, service)

    for fact in TENANT_EXAMPLES.values():
        with pytest.raises(Forbidden):
            await log.append(History(tenant), Draft(fact, None))


def test_a_runs_fact_in_a_tenants_line_and_a_tenants_in_a_runs_are_nobodys_word(tenant: TenantKey) -> None:
    run = RunKey(tenant.tenant, tenant.tenant)
    stop = events.write(tenant, Draft(STOP, None), None, events.datetime.now(events.UTC))

    assert (run == tenant, run.every == tenant.every) == (False, False)
    assert events.read(tenant.subject(stop.kind), 1, stop.payload).fact == STOP
    with pytest.raises(CorruptLog):
        events.read("tenant.another.approvals.stop-set", 1, stop.payload)
    forged = events.read(run.subject(stop.kind), 1, stop.payload)
    assert (forged.key, forged.fact) == (run, None)
