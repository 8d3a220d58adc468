"""A message may come twice, late, to another worker, or to one that fails: it is dealt with, or given up aloud."""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from contracts import bus as bus_module
from contracts import setup
from contracts.bus import Bus
from contracts.errors import CorruptLog, Forbidden, Outage
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import PersonSaid
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Json
from contracts.settings import ACK_WAIT
from contracts.subjects import TENANTS, RunKey

from .servers import SOON, House, Server, own_server

QUOTED = EXAMPLES["tools.turn-quoted"]


async def quote(house: House, key: RunKey) -> Event:
    """A fact that policy hears."""
    return await (await house.log()).append(History(key), Draft(QUOTED, None))


async def api(house: House, subject: str) -> Any:
    reply = await (await house.client("setup")).request(f"$JS.API.{subject}", timeout=SOON)
    return json.loads(reply.data)


async def until_settled(house: House, stream: str = "RUNS", service: str = "policy") -> Any:
    """The consumer's state once nothing of it is under way."""
    async with asyncio.timeout(SOON):
        while True:
            info = await api(house, f"CONSUMER.INFO.{stream}.{service}")
            if info["num_pending"] == info["num_ack_pending"] == 0:
                return info
            await asyncio.sleep(0.02)


class Ear:
    """A handler that remembers what it heard and when, and does what the test says."""

    def __init__(self, *deeds: Exception | None) -> None:
        self.heard: list[tuple[float, Any]] = []
        self._deeds = list(deeds)
        self._more = asyncio.Condition()

    async def __call__(self, heard: Any) -> None:
        async with self._more:
            self.heard.append((time.monotonic(), heard))
            self._more.notify_all()
        deed = self._deeds.pop(0) if len(self._deeds) > 1 else self._deeds[0] if self._deeds else None
        if deed is not None:
            raise deed

    async def has_heard(self, count: int) -> list[Any]:
        async with asyncio.timeout(SOON), self._more:
            await self._more.wait_for(lambda: len(self.heard) >= count)
        return [heard for _, heard in self.heard]

    @property
    def pauses(self) -> list[float]:
        times = [at for at, _ in self.heard]
        return [later - earlier for earlier, later in pairwise(times)]


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
        assert consumer["ack_wait"] / 1e9 >= 2 * (bus_module.IN_PROGRESS_EVERY + 0.1) * ACK_WAIT
        assert consumer["max_deliver"] == -1
        assert consumer["max_ack_pending"] >= 10 * bus_module.TAKEN_AT_ONCE


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
    [in_hand] = bus._in_hand.values()
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


# Giving back, giving up


async def test_a_failing_handler_is_asked_again_later_and_later_and_then_the_letter_is_dead(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "GIVE_UP_AFTER", 3)
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
    assert bus_module.GIVE_UP_AFTER == 8


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
    monkeypatch.setattr(bus_module, "GIVE_UP_AFTER", 1)
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
    monkeypatch.setattr(bus_module, "GIVE_UP_AFTER", 1)
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


class DatabaseAway(Exception):
    pass


@pytest.mark.parametrize("outage", [Outage("no broker"), DatabaseAway("no database")])
async def test_an_outage_is_waited_out_with_the_message_in_hand_and_counts_for_nothing(
    fresh_house: House, key: RunKey, outage: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "GIVE_UP_AFTER", 1)
    ear = Ear(*[outage] * 4, None)
    await (await fresh_house.bus("policy", outages=(DatabaseAway,))).hear(ear)
    event = await quote(fresh_house, key)

    assert await ear.has_heard(5) == [event] * 5

    info = await until_settled(fresh_house)
    assert info["num_redelivered"] == 0
    assert info["delivered"]["consumer_seq"] == 1
    assert (await api(fresh_house, "STREAM.INFO.DEAD"))["state"]["messages"] == 0


# What the broker refuses


@own_server
async def test_a_fact_of_another_author_is_refused_at_once_and_not_stored(house: House, key: RunKey) -> None:
    log = await house.log("policy")
    began = time.monotonic()
    with pytest.raises(Forbidden, match=r"tools\.turn-quoted"):
        await log.append(History(key), Draft(QUOTED, None))
    assert time.monotonic() - began < 1
    assert await log.head(key) is None
    assert await log.append(History(key), Draft(EXAMPLES["policy.turn-forwarded"], None))


@own_server
async def test_each_of_many_refused_at_once_hears_of_it(house: House, key: RunKey) -> None:
    log = await house.log("policy")
    other = RunKey(key.tenant, f"{key.run}-2")
    began = time.monotonic()
    refused = await asyncio.gather(
        *(log.append(History(run), Draft(QUOTED, None, key=str(n))) for n in range(10) for run in (key, other)),
        return_exceptions=True,
    )
    assert {type(outcome) for outcome in refused} == {Forbidden}
    assert time.monotonic() - began < 2


@own_server
async def test_a_refusal_does_not_hide_that_its_task_was_cancelled(house: House, key: RunKey) -> None:
    log = await house.log("policy")
    appending = asyncio.create_task(log.append(History(key), Draft(QUOTED, None)))
    await asyncio.sleep(0)
    appending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await appending


@own_server
async def test_asking_what_one_may_not_is_refused_at_once(house: House) -> None:
    bus = await house.bus("policy")
    began = time.monotonic()
    with pytest.raises(Forbidden, match=r"ask\.approvals\.decide"):
        await bus.ask("ask.approvals.decide", {})
    with pytest.raises(Forbidden, match=r"timer\.set\.policy"):
        await bus.set_timer("x", datetime.now(UTC), {})
    assert time.monotonic() - began < 2


@own_server
async def test_following_what_one_may_not_read_is_refused_at_once(house: House) -> None:
    bus = await house.bus("agent-runner")
    log = JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(log.on_error)
    with pytest.raises(Forbidden, match=r"\$JS\.API\.DIRECT\.GET\.TENANTS"):
        await asyncio.wait_for(anext(log.follow(live=False)), 4)  # a read that nobody answers takes 5 s


@own_server
async def test_a_service_that_may_not_listen_is_told_so_before_it_is_ready(house: House) -> None:
    bus = await house.bus("policy")
    await bus.settled()

    async def nothing(_: Json) -> Json:
        return {}

    await bus.answer("ask.tools.quote", nothing)
    with pytest.raises(Forbidden, match=r"listen on ask\.tools\.quote"):
        await bus.settled()


@own_server
async def test_words_that_nobody_waits_for_are_refused_aloud_too(house: House, key: RunKey) -> None:
    bus = await house.bus("policy")
    await bus.live(key, {"text": "I am not the model"})
    await bus.settled()
    (refused,) = bus.refused
    assert f"does not let this service publish live.{key.tenant}.{key.run}".lower() in str(refused).lower()


@own_server
async def test_a_handler_that_may_not_say_its_fact_ends_in_a_dead_letter(
    fresh_house: House, key: RunKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "GIVE_UP_AFTER", 2)
    log, dead = await fresh_house.log("policy"), Ear()

    async def overstep(event: Event) -> None:
        history = await log.read(event.key, at=event)
        await log.append(history, Draft(PersonSaid.model_validate(EXAMPLES["desk.person-said"].model_dump()), event))

    await (await fresh_house.bus("policy")).hear(overstep)
    await (await fresh_house.bus("agent-runner")).hear_dead(dead)
    await quote(fresh_house, key)
    [letter] = await dead.has_heard(1)
    assert letter["error"].startswith("Forbidden")


# Asking and answering


async def test_a_request_is_answered(house: House) -> None:
    async def double(body: Json) -> Json:
        return {"twice": 2 * body["number"]}

    await (await house.bus("tools-shop")).answer("ask.tools.quote", double)
    assert await (await house.bus("gateway")).ask("ask.tools.quote", {"number": 21}) == {"twice": 42}


async def test_a_slow_answer_does_not_hold_up_the_others(house: House) -> None:
    first_may_end = asyncio.Event()

    async def answer(body: Json) -> Json:
        if body["first"]:
            await first_may_end.wait()
        return body

    await (await house.bus("tools-shop")).answer("ask.tools.quote", answer)
    bus = await house.bus("gateway")
    slow = asyncio.create_task(bus.ask("ask.tools.quote", {"first": True}, timeout=SOON))
    assert await bus.ask("ask.tools.quote", {"first": False}, timeout=SOON) == {"first": False}
    first_may_end.set()
    assert await slow == {"first": True}


async def test_an_exception_becomes_an_answer_that_names_no_internals(house: House) -> None:
    async def fail(body: Json) -> Json:
        raise RuntimeError("postgresql://secret@10.0.0.1 is unhappy")

    await (await house.bus("tools-shop")).answer("ask.tools.quote", fail)
    answer = await (await house.bus("gateway")).ask("ask.tools.quote", {})
    assert answer["status"] == 500
    assert "secret" not in json.dumps(answer)
    assert "RuntimeError" not in json.dumps(answer)


async def test_a_request_that_is_no_json_gets_an_answer_too(house: House) -> None:
    async def never(body: Json) -> Json:
        raise AssertionError("was asked")

    await (await house.bus("tools-shop")).answer("ask.tools.quote", never)
    client = await house.client("gateway")
    async with asyncio.timeout(SOON):
        while True:
            with suppress(nats.errors.NoRespondersError):  # the broker does not know yet who answers
                reply = await client.request("ask.tools.quote", b"{", timeout=SOON)
                break
            await asyncio.sleep(0.01)
    assert json.loads(reply.data)["status"] == 500


async def test_a_dependency_that_is_away_is_said_to_be(house: House) -> None:
    async def away(body: Json) -> Json:
        raise DatabaseAway("secret")

    await (await house.bus("tools-shop", outages=(DatabaseAway,))).answer("ask.tools.quote", away)
    answer = await (await house.bus("gateway")).ask("ask.tools.quote", {})
    assert answer["status"] == 503
    assert "secret" not in json.dumps(answer)


async def test_who_is_asked_while_they_start_answers_once_they_have(house: House) -> None:
    async def answer(body: Json) -> Json:
        return body

    asked = asyncio.create_task((await house.bus("gateway")).ask("ask.approvals.tenant", {"a": 1}))
    await asyncio.sleep(0.3)
    await (await house.bus("approvals")).answer("ask.approvals.tenant", answer)
    assert await asked == {"a": 1}


async def test_nobody_there_to_answer_is_an_outage(house: House) -> None:
    with pytest.raises(Outage, match=r"ask\.approvals\.decide"):
        await (await house.bus("gateway")).ask("ask.approvals.decide", {})


async def test_a_running_models_words_reach_who_listens_to_that_run_while_they_listen(
    house: House, key: RunKey
) -> None:
    heard: asyncio.Queue[Json] = asyncio.Queue()
    gateway, runner = await house.bus("gateway"), await house.bus("agent-runner")
    async with gateway.hear_live(key, heard.put_nowait), asyncio.timeout(SOON):
        # Across accounts the broker needs a moment to know who listens: the first words may be missed.
        while heard.empty():
            await runner.live(RunKey(key.tenant, f"{key.run}9"), {"step": 1, "text": "another run"})
            await runner.live(key, {"step": 1, "text": "Hel"})
            await gateway.nc.flush()
    assert {heard.get_nowait()["text"] for _ in range(heard.qsize())} == {"Hel"}
    await runner.live(key, {"step": 1, "text": "lo"})
    await runner.nc.flush()
    await gateway.nc.flush()
    assert heard.empty()


# Timers


async def set_timer(bus: Bus, name: str, seconds: float, body: Json) -> datetime:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    await bus.set_timer(name, at, body)
    return at


async def test_a_timer_fires_at_its_time_and_a_later_one_of_the_same_name_replaces_it(fresh_house: House) -> None:
    approvals, ear = await fresh_house.bus("approvals"), Ear()
    await approvals.hear_timers(ear)
    await set_timer(approvals, "acme.TCK-1-1.hold", 0.6, {"which": "replaced"})
    due = await set_timer(approvals, "acme.TCK-1-1.hold", 1.0, {"which": "the one"})
    await set_timer(approvals, "acme.TCK-2-1.hold", -60, {"which": "overdue"})
    await set_timer(approvals, "acme.TCK-3-1.hold", 3600, {"which": "much later"})

    heard = await ear.has_heard(2)

    assert [body["which"] for body in heard] == ["overdue", "the one"]
    assert datetime.now(UTC) >= due
    info = await until_settled(fresh_house, "TIMERS", "approvals")
    assert info["num_redelivered"] == 0
    assert (await api(fresh_house, "STREAM.INFO.TIMERS"))["state"]["messages"] == 1  # what has fired is gone


async def test_a_timer_is_its_own_services(fresh_house: House) -> None:
    approvals, runner, ear = await fresh_house.bus("approvals"), await fresh_house.bus("agent-runner"), Ear()
    await approvals.hear_timers(Ear(AssertionError("not mine")))
    await runner.hear_timers(ear)
    await set_timer(runner, "acme.TCK-1-1", 0, {"of": "runner"})
    assert await ear.has_heard(1) == [{"of": "runner"}]


@own_server
async def test_a_timer_survives_a_restart_of_the_server(server: Server, server_house: House) -> None:
    approvals, ear = await server_house.bus("approvals"), Ear()
    await approvals.hear_timers(ear)
    due = await set_timer(approvals, "acme.TCK-1-1.hold", 1.5, {"which": "before the restart"})
    server.restart()
    assert await ear.has_heard(1) == [{"which": "before the restart"}]
    assert datetime.now(UTC) >= due


async def test_a_timer_without_a_zone_is_refused_aloud(house: House) -> None:
    with pytest.raises(RuntimeError, match="not set"):
        await (await house.bus("approvals")).set_timer("acme.x", datetime.now(), {})
