"""What a service may not say is refused at once; who is asked answers, whatever happens; timers fire at their time."""

import asyncio
import json
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import nats.errors
import pytest
from contracts import hearing
from contracts.bus import Bus
from contracts.datakeys import JetStreamKeys
from contracts.errors import Forbidden, Outage
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import PersonSaid
from contracts.history import History
from contracts.model_wait import ModelWait
from contracts.parts import Json
from contracts.subjects import RunKey
from turngate.testing import Server

from .ears import QUOTED, DatabaseAway, Ear, api, quote, until_settled
from .servers import SOON, House, own_server

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
async def test_reading_what_one_may_not_is_refused_at_once(house: House, key: RunKey) -> None:
    bus = await house.bus("policy")
    keys = JetStreamKeys(bus.nc)
    bus.on_error.append(keys.on_error)
    with pytest.raises(Forbidden, match=r"\$JS\.API\.DIRECT\.GET\.KEYS"):
        await asyncio.wait_for(keys.get(key), 4)  # a read that nobody answers takes 5 s


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
    monkeypatch.setattr(hearing, "GIVE_UP_AFTER", 2)
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


async def test_a_request_that_says_a_thing_twice_is_refused_and_nobody_answers_it(house: House) -> None:
    async def never(body: Json) -> Json:
        raise AssertionError("was asked")

    await (await house.bus("tools-shop")).answer("ask.tools.quote", never)
    await (await house.bus("gateway")).nc.flush()
    client = await house.client("gateway")
    body = b'{"turn": 1, "edited": {"amount_pence": 1, "amount_pence": 18000}}'
    async with asyncio.timeout(SOON):
        while True:
            with suppress(nats.errors.NoRespondersError):  # the broker does not know yet who answers
                reply = await client.request("ask.tools.quote", body, timeout=SOON)
                break
            await asyncio.sleep(0.01)
    answer = json.loads(reply.data)
    assert (answer["status"], "'amount_pence' stands twice" in answer["detail"]) == (400, True)


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

    gateway = await house.bus("gateway")
    before = gateway.nc.stats["out_msgs"]
    asked = asyncio.create_task(gateway.ask("ask.approvals.tenant", {"a": 1}))
    async with asyncio.timeout(SOON):
        while gateway.nc.stats["out_msgs"] < before + 2:  # asked again, so it had been told that nobody is there
            await asyncio.sleep(0.005)
    await (await house.bus("approvals")).answer("ask.approvals.tenant", answer)
    assert await asked == {"a": 1}


async def test_who_stops_taking_answers_what_is_in_hand_hears_nothing_more_and_may_still_ask(house: House) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def slowly(body: Json) -> Json:
        asked.set()
        await may_answer.wait()
        return body

    async def at_once(body: Json) -> Json:
        return {"status": 200}

    tools, gateway = await house.bus("tools-shop"), await house.bus("gateway")
    await tools.answer("ask.tools.quote", slowly)
    await (await house.bus("approvals")).answer("ask.approvals.tenant", at_once)
    waiting = asyncio.create_task(gateway.ask("ask.tools.quote", {"a": 1}))
    await asyncio.wait_for(asked.wait(), SOON)

    stopping = asyncio.create_task(tools.stop_taking(grace=SOON))
    stopping_too = asyncio.create_task(gateway.stop_taking())
    may_answer.set()
    await asyncio.gather(stopping, stopping_too)

    assert await waiting == {"a": 1}
    assert await gateway.ask("ask.approvals.tenant", {}) == {"status": 200}
    with pytest.raises(Outage):
        await gateway.ask("ask.tools.quote", {})


async def test_nobody_there_to_answer_is_an_outage(house: House) -> None:
    with pytest.raises(Outage, match=r"ask\.approvals\.decide"):
        await (await house.bus("gateway")).ask("ask.approvals.decide", {})


async def test_that_runs_wait_for_their_model_reaches_who_listens_and_no_text_does(house: House, key: RunKey) -> None:
    heard: asyncio.Queue[tuple[RunKey, ModelWait | None]] = asyncio.Queue()
    gateway, runner = await house.bus("gateway"), await house.bus("agent-runner")
    wait = ModelWait(state="away", since=datetime(2026, 11, 30, 9, tzinfo=UTC), attempt=2, status="529")
    await gateway.hear_model_waits(lambda key, wait: heard.put_nowait((key, wait)))
    async with asyncio.timeout(SOON):
        while heard.empty():  # until the broker knows across accounts who listens
            await runner.live(key, {"step": 1, "text": "Hel"})
            await runner.nc.publish(f"live.{key.tenant}.{key.run}.model", b'{"state":"asleep"}')
            await runner.send_model_wait(key, wait)
            await runner.nc.flush()
            await gateway.nc.flush()
        await runner.send_model_wait(key, None)
        said = [await heard.get()]
        while said[-1][1] is not None:
            said.append(await heard.get())
    assert said == [(key, wait)] * (len(said) - 1) + [(key, None)]


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
