"""A run has one data key for ever, whoever makes it first; an erased one is gone from everywhere within seconds."""

import asyncio
from contextlib import aclosing

import pytest
from contracts.datakeys import JetStreamKeys, KeyRing, KeyStore, MemoryKeys, Missing
from contracts.errors import Forbidden, Outage
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid, RunErased, RunStarted
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.sealing import ERASED, KEY_BYTES, DataKey
from contracts.subjects import RunKey
from contracts.verify import verify_run
from nats.aio.msg import Msg
from turngate.embedded.nats import READER, SETUP

from .servers import House

ONE, OTHER = bytes(KEY_BYTES), bytes(range(KEY_BYTES))


async def store_of(house: House, user: str = SETUP) -> JetStreamKeys:
    bus = await house.bus(user)
    store = JetStreamKeys(bus.nc, timeout=2)
    bus.on_error.append(store.on_error)
    return store


@pytest.fixture(params=["memory", "jetstream"])
async def store(request: pytest.FixtureRequest, house: House) -> KeyStore:
    return MemoryKeys() if request.param == "memory" else await store_of(house)


# Both stores


async def test_a_key_that_was_made_is_found(store: KeyStore, key: RunKey) -> None:
    assert await store.get(key) is None
    assert await store.create(key, ONE)
    assert await store.get(key) == ONE


async def test_a_run_gets_no_second_key(store: KeyStore, key: RunKey) -> None:
    assert await store.create(key, ONE)
    assert not await store.create(key, OTHER)
    assert await store.get(key) == ONE


async def test_an_erased_key_is_gone(store: KeyStore, key: RunKey) -> None:
    await store.create(key, ONE)
    assert await store.erase(key)
    assert await store.get(key) == b""
    assert not await store.erase(key)
    assert not await store.create(key, OTHER)


async def test_of_many_who_begin_a_run_at_once_all_get_one_key(store: KeyStore, key: RunKey) -> None:
    made = await asyncio.gather(*(KeyRing(store).make(key) for _ in range(20)))
    assert {one.secret for one in made if isinstance(one, DataKey)} == {await store.get(key)}


async def test_a_key_that_never_was_is_no_erased_one(store: KeyStore, key: RunKey) -> None:
    with pytest.raises(Missing):
        await KeyRing(store).of(key)
    await store.create(key, ONE)
    assert isinstance(await KeyRing(store).of(key), DataKey)


# In a process


async def test_a_key_is_fetched_once_and_let_go_after_a_while(key: RunKey) -> None:
    store, now = MemoryKeys(), 0.0
    ring = KeyRing(store, kept=5, clock=lambda: now)
    await store.create(key, ONE)
    found = await ring.of(key)
    await store.erase(key)
    assert await ring.of(key) is found
    now = 5.1
    assert ring.known(key) is None
    assert await ring.of(key) is ERASED
    assert ring.known(key) is ERASED


async def test_a_process_keeps_only_so_many_keys() -> None:
    store = MemoryKeys()
    ring = KeyRing(store, most=2)
    keys = [RunKey("acme", f"TCK-{n}-1") for n in range(3)]
    for key in keys:
        await ring.make(key)
    assert [ring.known(key) is None for key in keys] == [True, False, False]


async def test_who_erases_a_key_uses_it_no_more(key: RunKey) -> None:
    ring = KeyRing(MemoryKeys())
    await ring.make(key)
    assert await ring.erase(key)
    assert ring.known(key) is ERASED


# On the broker


async def test_nobody_but_the_services_that_need_them_gets_a_key(house: House, key: RunKey) -> None:
    gateway = await store_of(house, "gateway")
    assert await gateway.create(key, ONE)
    for service in ("agent-runner", "tools-shop", "approvals"):
        assert await (await store_of(house, service)).get(key) == ONE
    for user in ("policy", READER):
        with pytest.raises(Forbidden):
            await (await store_of(house, user)).get(key)


async def test_no_service_but_the_gateway_makes_keys_and_none_erases_or_replaces_one(house: House, key: RunKey) -> None:
    gateway = await store_of(house, "gateway")
    assert await gateway.create(key, ONE)
    bus = await house.bus("gateway")
    answer = await bus.nc.request(f"keys.{key.tenant}.{key.run}", OTHER, timeout=2)
    assert b"error" in answer.data
    for service in ("agent-runner", "tools-shop", "approvals", "policy"):
        with pytest.raises(Forbidden):
            await (await store_of(house, service)).create(RunKey(key.tenant, f"{key.run}x"), ONE)
    for service in ("gateway", "agent-runner", "tools-shop", "approvals", "policy"):
        with pytest.raises(Forbidden):
            await (await store_of(house, service)).erase(key)
    assert await gateway.get(key) == ONE


async def test_nobody_sees_keys_go_by(house: House, key: RunKey) -> None:
    seen: list[str] = []

    async def see(message: Msg) -> None:
        seen.append(message.subject)

    clients = [await house.client(user) for user in (READER, "policy", "gateway")]
    for client in clients:
        for subject in ("keys.>", "log.>"):
            await client.subscribe(subject, cb=see)
        await client.flush()
    await (await store_of(house)).create(key, ONE)
    for client in clients:
        await client.flush()
    assert [subject for subject in seen if key.run in subject] == []


# The log


async def sealed_log(house: House, user: str) -> JetStreamLog:
    bus = await house.bus(user)
    log = JetStreamLog(bus.nc, keys=bus.keys)
    bus.on_error.append(log.on_error)
    return log


async def begin(log: JetStreamLog, key: RunKey) -> Event:
    return await log.append(History(key), Draft(EXAMPLES[RunStarted.kind], None))


async def test_a_run_that_begins_is_sealed_for_all_but_who_has_its_key(house: House, key: RunKey) -> None:
    gateway = await sealed_log(house, "gateway")
    first = await begin(gateway, key)
    said = CustomerSaid(text="I live at 1 High Street", message_id="m-1")
    await gateway.append(await gateway.read(key), Draft(said, first))
    for service in ("gateway", "agent-runner", "tools-shop", "approvals"):
        history = await (await sealed_log(house, service)).read(key)
        assert history.last(CustomerSaid) == said
        assert history.started == EXAMPLES[RunStarted.kind]
    for user in ("policy", READER, SETUP):
        history = await (await sealed_log(house, user)).read(key)
        assert history.last(CustomerSaid) == CustomerSaid(text="[sealed]", message_id="m-1")
        assert b"High Street" not in b"".join(event.payload for event in history.events)
        assert verify_run(list(history.events)) == []


async def test_a_run_that_began_in_clear_text_goes_on_so(house: House, key: RunKey) -> None:
    plain = await house.log()
    first = await begin(plain, key)
    gateway = await sealed_log(house, "gateway")
    event = await gateway.append(await gateway.read(key), Draft(CustomerSaid(text="hello", message_id="m"), first))
    assert event.personal == "clear"
    assert (await plain.read(key)).last(CustomerSaid) == event.fact


async def test_a_service_hears_what_is_sealed(fresh_house: House, key: RunKey) -> None:
    heard: asyncio.Queue[Event] = asyncio.Queue()
    runner = await fresh_house.bus("agent-runner")
    await runner.hear(heard.put)
    await begin(await sealed_log(fresh_house, "gateway"), key)
    event = await asyncio.wait_for(heard.get(), timeout=20)
    assert (event.personal, event.fact) == ("opened", EXAMPLES[RunStarted.kind])


async def test_who_follows_the_log_reads_what_is_sealed(house: House, key: RunKey) -> None:
    writer, reader = await sealed_log(house, "gateway"), await sealed_log(house, "gateway")
    first = await begin(writer, key)
    async with asyncio.timeout(20), aclosing(reader.follow(tenant=key.tenant)) as follower:
        async for event in follower:
            if event.key == key and event.kind == RunStarted.kind:
                assert event.fact == EXAMPLES[RunStarted.kind]
                await writer.append(await writer.read(key), Draft(CustomerSaid(text="hello", message_id="m"), first))
            elif event.key == key:
                assert event.fact == CustomerSaid(text="hello", message_id="m")
                break


async def test_who_has_a_run_in_memory_forgets_it_when_it_is_erased(house: House, key: RunKey) -> None:
    gateway, other = await sealed_log(house, "gateway"), await sealed_log(house, "gateway")
    first = await begin(gateway, key)
    await gateway.append(await gateway.read(key), Draft(CustomerSaid(text="hello", message_id="m"), first))
    assert (await gateway.read(key)).last(CustomerSaid) == CustomerSaid(text="hello", message_id="m")
    assert await KeyRing(await store_of(house)).erase(key)
    await other.append(await other.read(key), Draft(EXAMPLES[RunErased.kind], None))
    for _ in range(2):
        history = await gateway.read(key)
        assert history.last(CustomerSaid) == CustomerSaid(text="[erased]", message_id="m")


async def test_a_run_whose_key_is_missing_is_neither_read_nor_added_to_and_stops_nobody_else(
    house: House, key: RunKey
) -> None:
    gateway = await sealed_log(house, "gateway")
    first = await begin(gateway, key)
    setup = await house.client(SETUP)
    found = await setup.jetstream().get_last_msg("KEYS", f"keys.{key.tenant}.{key.run}")
    await setup.jetstream().delete_msg("KEYS", found.seq or 0)
    fresh = await sealed_log(house, "gateway")
    with pytest.raises(Outage):
        await fresh.read(key)
    with pytest.raises(Outage):
        await fresh.append(History(key, (first,), first), Draft(CustomerSaid(text="lost?", message_id="m"), first))
    followed = [event async for event in fresh.follow(tenant=key.tenant, live=False) if event.key == key]
    assert [event.personal for event in followed] == ["sealed"]


async def test_an_erased_run_is_read_without_its_personal_data_and_can_be_added_to(house: House, key: RunKey) -> None:
    gateway = await sealed_log(house, "gateway")
    first = await begin(gateway, key)
    assert await KeyRing(await store_of(house)).erase(key)
    fresh = await sealed_log(house, "gateway")
    history = await fresh.read(key)
    assert history.started is not None
    assert history.started.ticket.customer.email == "[erased]"
    said = await fresh.append(history, Draft(CustomerSaid(text="still here", message_id="m"), first))
    assert (said.personal, b"still here" in said.payload) == ("erased", False)
    assert verify_run(list((await (await house.log()).read(key)).events)) == []
