"""A message may come twice, late, to another worker, or to one that fails: it is dealt with, or given up aloud."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from contracts import hearing, setup
from contracts.errors import CorruptLog, Outage
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES, TENANT_EXAMPLES
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.settings import ACK_WAIT
from contracts.subjects import TENANTS, RunKey, TenantKey
from turngate.testing import Server

from .ears import QUOTED, DatabaseAway, Ear, api, quote, until_settled
from .servers import SOON, House, own_server

# Hearing


async def test_a_fact_that_a_service_hears_is_handled_once_and_acknowledged(fresh_house: House, key: RunKey) -> None:
    ear = Ear()
    await (await fresh_house.bus("policy")).hear(ear)
    event = await quote(fresh_house, key)

    assert await ear.has_heard(1) == [event]
    assert (await until_settled(fresh_house))["num_redelivered"] == 0


async def test_a_fact_is_heard_by_one_of_many_workers(fresh_house: House) -> None:
    ear = Ear()
    for _ in range(4):
        await (await fresh_house.bus("policy")).hear(ear)
    await asyncio.gather(*(quote(fresh_house, RunKey("acme", f"TCK-{n}-1")) for n in range(40)))
    await until_settled(fresh_house)
    assert len(ear.heard) == 40


async def test_a_service_hears_its_own_kinds_and_no_others(fresh_house: House, key: RunKey) -> None:
    ear = Ear()
    await (await fresh_house.bus("approvals")).hear(ear)
    log = await fresh_house.log()
    for fact in EXAMPLES.values():
        await log.append(await log.read(key), Draft(fact, None))
    [heard] = await ear.has_heard(1)
    await until_settled(fresh_house, service="approvals")
    assert heard.kind == "policy.turn-held"
    assert len(ear.heard) == 1


@own_server
async def test_a_message_in_a_living_workers_hands_is_not_heard_twice_and_a_dead_ones_is(
    fresh_house: House, key: RunKey
) -> None:
    await fresh_house.wait_for_acks(2.0)
    user, password = fresh_house.access.user("policy")
    worker = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).with_name("worker.py")),
        env=os.environ
        | {
            "SERVICE": "policy",
            "TURNGATE_NATS_URL": fresh_house.url,
            "TURNGATE_NATS_USER": user,
            "TURNGATE_NATS_PASSWORD": password,
            "TURNGATE_ACK_WAIT": "2",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert worker.stdout is not None
    try:
        async with asyncio.timeout(SOON):
            assert await worker.stdout.readline() == b"ready\n"
            event = await quote(fresh_house, key)
            assert (await worker.stdout.readline()).decode().strip() == event.id
        another = Ear()
        await (await fresh_house.bus("policy")).hear(another)

        await asyncio.sleep(3)  # longer than the broker waits for a worker that says nothing
        assert another.heard == []

        worker.kill()
        assert await another.has_heard(1) == [event]
    finally:
        if worker.returncode is None:
            worker.kill()
        await worker.wait()


def test_a_worker_says_that_it_lives_long_before_the_broker_stops_waiting() -> None:
    for _, consumer in setup._consumers():
        assert consumer["ack_wait"] / 1e9 >= 2 * (hearing.IN_PROGRESS_EVERY + 0.1) * ACK_WAIT
        assert consumer["max_deliver"] == -1
        assert consumer["max_ack_pending"] >= 10 * hearing.TAKEN_AT_ONCE


async def test_a_message_that_is_delivered_again_while_it_is_in_hand_is_handled_once(
    fresh_house: House, key: RunKey
) -> None:
    bus, setup_user = await fresh_house.bus("policy"), await fresh_house.client("setup")
    may_finish, ear = asyncio.Event(), Ear()

    async def slowly(event: Event) -> None:
        await ear(event)
        await may_finish.wait()

    await bus.hear(slowly)
    await quote(fresh_house, key)
    await ear.has_heard(1)
    [in_hand] = bus._hearing._in_hand.values()
    first = in_hand.message
    await setup_user.publish(first.reply, b"-NAK")  # now the broker believes that nobody has it
    async with asyncio.timeout(SOON):
        while in_hand.message is first:
            await asyncio.sleep(0.01)
    may_finish.set()

    info = await until_settled(fresh_house)
    assert len(ear.heard) == 1
    assert info["ack_floor"]["stream_seq"] == 1


@own_server
async def test_a_message_in_hand_survives_a_restart_of_the_server(
    server: Server, server_house: House, key: RunKey
) -> None:
    ear, may_finish = Ear(), asyncio.Event()

    async def slowly(event: Event) -> None:
        await ear(event)
        await may_finish.wait()

    bus = await server_house.bus("policy")
    await bus.hear(slowly)
    await quote(server_house, key)
    await ear.has_heard(1)
    server.restart()
    async with asyncio.timeout(SOON):
        while not (bus.nc.stats["reconnects"] and bus.connected):
            await asyncio.sleep(0.02)
    may_finish.set()
    await until_settled(server_house)
    assert len(ear.heard) == 1


async def test_closing_gives_what_is_in_hand_a_moment(fresh_house: House, key: RunKey) -> None:
    bus, ear, done = await fresh_house.bus("policy"), Ear(), []

    async def slowly(event: Event) -> None:
        await ear(event)
        await asyncio.sleep(0.2)
        done.append(event)

    await bus.hear(slowly)
    event = await quote(fresh_house, key)
    await ear.has_heard(1)
    await bus.close(grace=SOON)
    assert done == [event]
    await until_settled(fresh_house)


async def test_a_line_that_is_full_keeps_none_of_the_others_waiting(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "TAKEN_AT_ONCE", 1)
    bus = await fresh_house.bus("tools-shop", outages=(DatabaseAway,))
    facts, tenants = Ear(DatabaseAway("away")), Ear()
    await bus.hear(facts)
    await bus.hear_tenants(tenants)

    log = await fresh_house.log()
    for fact in ("desk.run-started", "agent.turn-proposed"):
        await log.append(await log.read(key), Draft(EXAMPLES[fact], None))
    await facts.has_heard(2)  # and so it goes on: what it needs is away

    line = JetStreamLog((await fresh_house.bus("approvals")).nc, stream=TENANTS)
    tenant = TenantKey("acme")
    stop = Draft(TENANT_EXAMPLES["approvals.stop-set"], None)
    await line.append(await line.read(tenant), stop)

    assert [event.kind for event in await tenants.has_heard(1)] == ["approvals.stop-set"]


# Giving back, giving up


async def test_a_failing_handler_is_asked_again_later_and_later_and_then_the_letter_is_dead(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "GIVE_UP_AFTER", 3)
    failing, dead = Ear(ZeroDivisionError("a bug of ours")), Ear()
    await (await fresh_house.bus("policy")).hear(failing)
    await (await fresh_house.bus("agent-runner")).hear_dead(dead)
    event = await quote(fresh_house, key)

    [letter] = await dead.has_heard(1)

    assert letter["service"] == "policy"
    assert letter["subject"] == f"run.acme.{key.run}.tools.turn-quoted"
    assert letter["sequence"] == event.sequence
    assert letter["error"] == "ZeroDivisionError: a bug of ours"
    assert json.loads(letter["event"]) == event.document()
    await until_settled(fresh_house)
    first, second = failing.pauses
    assert len(failing.heard) == 3
    assert 0.3 < first < second


def test_a_handler_gives_up_after_eight_deliveries() -> None:
    assert hearing.GIVE_UP_AFTER == 8


async def test_a_handler_that_fails_once_goes_on(fresh_house: House, key: RunKey) -> None:
    ear = Ear(RuntimeError("once"), None)
    await (await fresh_house.bus("policy")).hear(ear)
    event = await quote(fresh_house, key)
    assert await ear.has_heard(2) == [event, event]
    await until_settled(fresh_house)
    assert (await api(fresh_house, "STREAM.INFO.DEAD"))["state"]["messages"] == 0


async def test_what_can_never_be_read_is_given_up_at_once(fresh_house: House, key: RunKey) -> None:
    ear, dead = Ear(), Ear()
    await (await fresh_house.bus("policy")).hear(ear)
    await (await fresh_house.bus("gateway")).hear_dead(dead)
    await (await fresh_house.client("setup")).request(key.subject("tools.turn-quoted"), b"{", timeout=SOON)
    [letter] = await dead.has_heard(1)
    assert letter["event"] == "{"
    assert letter["error"].startswith("CorruptLog")
    assert ear.heard == []
    assert (await until_settled(fresh_house))["num_redelivered"] == 0


async def test_a_handler_that_finds_the_log_corrupt_gives_up_at_once(fresh_house: House, key: RunKey) -> None:
    ear, dead = Ear(CorruptLog("the trail lies")), Ear()
    await (await fresh_house.bus("policy")).hear(ear)
    await (await fresh_house.bus("gateway")).hear_dead(dead)
    await quote(fresh_house, key)
    [letter] = await dead.has_heard(1)
    assert letter["error"] == "CorruptLog: the trail lies"
    await until_settled(fresh_house)
    assert len(ear.heard) == 1


async def test_the_largest_fact_fits_into_a_dead_letter(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "GIVE_UP_AFTER", 1)
    dead = Ear()
    await (await fresh_house.bus("policy")).hear(Ear(RuntimeError("x" * 100_000)))
    await (await fresh_house.bus("gateway")).hear_dead(dead)
    log = await fresh_house.log()
    noise = [
        QUOTED.model_dump()["quotes"][0] | {"arguments": {"a": '"' * 7_000}, "call_id": f"c-{n}"} for n in range(60)
    ]
    await log.append(History(key), Draft(type(QUOTED).model_validate(QUOTED.model_dump() | {"quotes": noise}), None))
    [letter] = await dead.has_heard(1)
    assert letter["subject"] == key.subject("tools.turn-quoted")
    assert len(letter["error"]) <= 2000


async def test_a_dead_letter_that_its_hearer_cannot_handle_is_passed_on_once(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "GIVE_UP_AFTER", 1)
    runner, gateway = Ear(RuntimeError("nor can I")), Ear(RuntimeError("nor I"))
    await (await fresh_house.bus("agent-runner")).hear_dead(runner)
    await (await fresh_house.bus("gateway")).hear_dead(gateway)
    await (await fresh_house.bus("policy")).hear(Ear(RuntimeError("I cannot")))

    event = await quote(fresh_house, key)
    letters = await gateway.has_heard(3)
    await until_settled(fresh_house, "DEAD", "agent-runner")
    await until_settled(fresh_house, "DEAD", "gateway")

    # Policy gives up on the fact; so do both that hear of it; and about that nobody writes again.
    assert sorted(letter["service"] for letter in letters) == ["agent-runner", "gateway", "policy"]
    assert {(letter["subject"], letter["sequence"]) for letter in letters} == {
        (key.subject("tools.turn-quoted"), event.sequence)
    }
    assert (await api(fresh_house, "STREAM.INFO.DEAD"))["state"]["messages"] == 3


async def test_many_that_wait_to_be_heard_again_do_not_stop_the_rest(fresh_house: House) -> None:
    ear = Ear()

    async def hear(event: Event) -> None:
        if event.key.tenant == "globex":
            raise RuntimeError("always")
        await ear(event)

    await (await fresh_house.bus("policy")).hear(hear)
    await asyncio.gather(*(quote(fresh_house, RunKey("globex", f"TCK-{n}-1")) for n in range(100)))
    async with asyncio.timeout(SOON):
        while (await api(fresh_house, "CONSUMER.INFO.RUNS.policy"))["num_redelivered"] < 50:
            await asyncio.sleep(0.05)
    event = await quote(fresh_house, RunKey("acme", "TCK-1-1"))
    assert await ear.has_heard(1) == [event]


@pytest.mark.parametrize("outage", [Outage("no broker"), DatabaseAway("no database")])
async def test_an_outage_is_waited_out_with_the_message_in_hand_and_counts_for_nothing(
    fresh_house: House, key: RunKey, outage: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "GIVE_UP_AFTER", 1)
    ear = Ear(*[outage] * 4, None)
    await (await fresh_house.bus("policy", outages=(DatabaseAway,))).hear(ear)
    event = await quote(fresh_house, key)

    assert await ear.has_heard(5) == [event] * 5

    info = await until_settled(fresh_house)
    assert info["num_redelivered"] == 0
    assert info["delivered"]["consumer_seq"] == 1
    assert (await api(fresh_house, "STREAM.INFO.DEAD"))["state"]["messages"] == 0


@pytest.mark.parametrize("first", [Outage("no broker"), RuntimeError("a bug")], ids=["an outage", "a bug"])
async def test_what_is_handled_again_is_decided_over_the_run_as_it_is_by_then(
    fresh_house: House, key: RunKey, first: Exception
) -> None:
    log, memory = await fresh_house.log(), await fresh_house.log("policy")
    ended: list[bool] = []
    may_go_on = asyncio.Event()

    async def handle(event: Event) -> None:
        history = await memory.read(event.key, at=event)
        ended.append(history.end is not None)
        await may_go_on.wait()
        if len(ended) == 1:
            raise first

    await (await fresh_house.bus("policy")).hear(handle)
    event = await quote(fresh_house, key)
    async with asyncio.timeout(SOON):
        while not ended:
            await asyncio.sleep(0.01)
    await log.append(await log.read(key, at=event), Draft(EXAMPLES["desk.run-cancelled"], None))
    may_go_on.set()

    await until_settled(fresh_house)
    assert ended == [False, True]


async def test_what_waited_for_a_worker_is_decided_over_the_run_as_it_is_by_then(
    fresh_house: House, key: RunKey
) -> None:
    log, memory = await fresh_house.log(), await fresh_house.log("policy")
    event = await quote(fresh_house, key)
    await log.append(await log.read(key, at=event), Draft(EXAMPLES["desk.run-cancelled"], None))
    ended: list[bool] = []

    async def handle(event: Event) -> None:
        ended.append((await memory.read(event.key, at=event)).end is not None)

    await asyncio.sleep(1.1)
    await fresh_house.wait_for_acks(1.0)
    await (await fresh_house.bus("policy")).hear(handle)
    await until_settled(fresh_house)
    assert ended == [True]
