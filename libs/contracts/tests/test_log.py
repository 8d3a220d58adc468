"""One run's line of facts: one winner an append, and every reader sees the same, whatever it remembers."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from contracts import events
from contracts.canonical import canonical
from contracts.errors import Conflict, CorruptLog, Outage
from contracts.events import TRAIL_LENGTH, Draft, Event, Link
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid, RunEnded, RunStarted
from contracts.handler import respond, say
from contracts.history import History
from contracts.log import JetStreamLog, Log
from contracts.memory import MemoryLog
from contracts.parts import Json
from contracts.subjects import RunKey
from contracts.verify import verify_run
from nats.aio.client import Client

from .servers import SOON, House, Server, Wire, own_server

STARTED = EXAMPLES["desk.run-started"]
ENDED = EXAMPLES["agent.run-ended"]


def said(text: str, cause: Event | None = None) -> Draft:
    return Draft(CustomerSaid(text=text, message_id=text), cause, key=text)


@pytest.fixture(params=["memory", "jetstream"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def log(kind: str, house: House) -> Log:
    return MemoryLog() if kind == "memory" else await house.log()


async def grow(log: Log, key: RunKey, length: int, draft: Callable[[int], Draft] | None = None) -> list[Event]:
    """Makes the run `length` events long."""
    history = await log.read(key)
    grown: list[Event] = []
    for number in range(len(grown) if history.head is None else history.head.ordinal + 1, length):
        fact = Draft(STARTED, None) if number == 0 else (draft or (lambda n: said(f"m-{n}")))(number)
        grown.append(await log.append(history, fact))
        history = await log.read(key)
    return grown


# What both implementations promise


async def test_a_run_that_nobody_has_started_is_empty(log: Log, key: RunKey) -> None:
    assert await log.read(key) == History(key)


async def test_what_was_appended_is_read_back_as_it_was_said(log: Log, key: RunKey) -> None:
    started = await log.append(History(key), Draft(STARTED, None, key="once"))
    answered = await log.append(await log.read(key), Draft(EXAMPLES["agent.turn-proposed"], started))

    history = await log.read(key)

    assert history.events == (started, answered)
    assert history.head == answered
    assert (answered.ordinal, answered.cause, answered.author) == (1, started.id, "agent")
    assert answered.trail == (Link(started.sequence, "desk.run-started"),)
    assert answered.sequence > started.sequence
    assert verify_run(list(history.events)) == []


async def test_who_has_not_read_the_last_fact_may_not_add_one(log: Log, key: RunKey) -> None:
    await log.append(History(key), Draft(STARTED, None))
    stale = await log.read(key)
    await log.append(stale, said("first"))

    with pytest.raises(Conflict):
        await log.append(stale, said("second"))
    with pytest.raises(Conflict):
        await log.append(History(key), Draft(STARTED, None))

    assert [fact.text for fact in (await log.read(key)).all(CustomerSaid)] == ["first"]


async def test_runs_do_not_stand_in_each_others_way(log: Log, key: RunKey) -> None:
    other = RunKey("globex", key.run)
    one, two = await asyncio.gather(*(log.append(History(run), Draft(STARTED, None)) for run in (key, other)))
    assert (await log.read(key)).events == (one,)
    assert (await log.read(other)).events == (two,)


async def test_the_same_fact_of_the_same_cause_bears_the_same_id(log: Log, key: RunKey) -> None:
    started = await log.append(History(key), Draft(STARTED, None))
    history = await log.read(key)
    event = await log.append(history, said("hello", started))
    assert event.id == events.event_id(key, started.id, "desk.customer-said", "hello")


async def test_a_handler_that_is_heard_twice_says_it_once(log: Log, key: RunKey) -> None:
    started = await log.append(History(key), Draft(STARTED, None))

    def react(history: History, event: Event) -> Draft | None:
        return None if history.last(RunEnded) else Draft(ENDED, event)

    first = await respond(log, started, react)
    second = await respond(log, started, react)

    assert first is not None
    assert second is None
    assert [event.kind for event in (await log.read(key)).events] == ["desk.run-started", "agent.run-ended"]


async def test_after_a_conflict_the_decision_is_made_again_with_what_is_new(log: Log, key: RunKey) -> None:
    started = await log.append(History(key), Draft(STARTED, None))
    seen: list[int] = []

    async def react(history: History, event: Event) -> Draft | None:
        seen.append(len(history.events))
        if len(seen) == 1:  # somebody else is faster, once
            await log.append(await log.read(key), said("faster"))
        return said("slower", event)

    event = await respond(log, started, react)

    assert seen == [1, 2]
    assert event is not None
    assert event.ordinal == 2


async def test_fifty_writers_leave_one_winner_a_round_and_an_unbroken_line(
    kind: str, key: RunKey, house: House
) -> None:
    # Each writer remembers for itself, as in fifty processes; five connections carry them.
    if kind == "memory":
        writers: list[Log] = [MemoryLog()] * 50
    else:
        connections = [await house.client("setup") for _ in range(5)]
        writers = [JetStreamLog(connections[n % 5], timeout=SOON) for n in range(50)]
    await writers[0].append(History(key), Draft(STARTED, None))

    for round_ in range(4):
        histories = [await writer.read(key) for writer in writers]
        outcomes = await asyncio.gather(
            *(
                writer.append(history, said(f"{round_}-{n}"))
                for n, (writer, history) in enumerate(zip(writers, histories, strict=True))
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Event) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 49

    history = await writers[7].read(key)
    assert [event.ordinal for event in history.events] == [0, 1, 2, 3, 4]
    assert verify_run(list(history.events)) == []


async def test_fifty_writers_that_answer_conflicts_all_get_their_word_in(log: Log, key: RunKey) -> None:
    started = await log.append(History(key), Draft(STARTED, None))

    await asyncio.gather(*(respond(log, started, lambda _, event, n=n: said(f"m-{n}", event)) for n in range(50)))

    history = await log.read(key)
    assert len(history.events) == 51
    assert verify_run(list(history.events)) == []


async def test_two_who_were_asked_at_once_both_have_their_say_and_a_repetition_adds_nothing(
    log: Log, key: RunKey
) -> None:
    await log.append(History(key), Draft(STARTED, None))

    def decide(text: str) -> Callable[[History], Draft | None]:
        return lambda history: None if text in {fact.text for fact in history.all(CustomerSaid)} else said(text)

    first = await asyncio.gather(say(log, key, decide("approve")), say(log, key, decide("decline")))
    again = await asyncio.gather(say(log, key, decide("approve")), say(log, key, decide("decline")))

    assert sorted(event.ordinal for event in first if event) == [1, 2]
    assert again == [None, None]


# Reading by the trail


class Counting(JetStreamLog):
    """A log that counts what it asks the broker for."""

    asked = 0

    async def _get(self, query: dict[str, object]) -> Event | None:
        self.asked += 1
        return await super()._get(query)


@pytest.fixture
async def nc(house: House) -> Client:
    return await house.client("setup")


@pytest.fixture
async def long_run(house: House, key: RunKey) -> list[Event]:
    """A hundred events: three times what a trail reaches. Every tenth is one of another kind."""

    def draft(number: int) -> Draft:
        return Draft(EXAMPLES["tools.turn-quoted"], None, key=str(number)) if number % 10 == 0 else said(f"m-{number}")

    return await grow(await house.log(), key, 100, draft)


async def test_a_run_longer_than_the_trail_is_read_whole_by_who_has_read_nothing(
    nc: Client, key: RunKey, long_run: list[Event]
) -> None:
    log = Counting(nc)
    history = await log.read(key)
    assert list(history.events) == long_run
    assert log.asked == 100  # each event once, the head included


async def test_a_reader_of_few_kinds_fetches_those_and_the_ends_of_trails(
    nc: Client, key: RunKey, long_run: list[Event]
) -> None:
    log = Counting(nc, ["desk.run-started", "tools.turn-quoted"])
    history = await log.read(key)
    assert [event.ordinal for event in history.events] == [*range(0, 100, 10)]
    assert history.head == long_run[-1]
    assert log.asked <= 1 + 10 + 100 // TRAIL_LENGTH


async def test_a_reader_that_lags_fetches_just_what_is_new(nc: Client, key: RunKey, long_run: list[Event]) -> None:
    log = Counting(nc)
    await log.read(key, at=long_run[40])
    log.asked = 0

    history = await log.read(key, at=long_run[44])

    assert list(history.events) == long_run[:45]
    assert log.asked == 3  # 41, 42 and 43; 44 was in hand


async def test_on_the_hot_path_nothing_is_fetched(nc: Client, key: RunKey, long_run: list[Event]) -> None:
    log = Counting(nc)
    history = await log.read(key)
    log.asked = 0
    event = await log.append(history, said("next"))
    assert (await log.read(key, at=event)).head == event
    assert (await log.read(key, at=long_run[50])).head == event  # an old one, heard again
    assert log.asked == 0


async def test_a_cold_read_costs_the_same_in_a_full_stream(nc: Client, key: RunKey) -> None:
    busy = JetStreamLog(nc)
    await grow(busy, key, 20)

    async def cost() -> int:
        log = Counting(nc)
        assert len((await log.read(key)).events) == 20
        return log.asked

    alone = await cost()
    others = [RunKey("acme", f"{key.run}-{n}") for n in range(50)]
    await asyncio.gather(*(grow(busy, other, 10) for other in others))
    assert await cost() == alone == 20


async def test_what_another_process_added_is_found_behind_a_stale_memory(house: House, key: RunKey) -> None:
    mine, theirs = await house.log(), await house.log()
    await grow(mine, key, 2)
    grown = await grow(theirs, key, 6)

    with pytest.raises(Conflict):
        await mine.append(await mine.read(key, at=grown[-4]), said("unaware"))

    assert [event.ordinal for event in (await mine.read(key)).events] == [*range(6)]


async def test_a_slower_read_does_not_make_a_reader_forget(house: House, key: RunKey) -> None:
    writer, reader = await house.log(), await house.log()
    grown = await grow(writer, key, 60)
    await asyncio.gather(*(reader.read(key, at=event) for event in reversed(grown)))
    assert (await reader.read(key, at=grown[0])).head == grown[-1]


async def test_a_history_that_its_caller_made_up_does_not_become_anyones_memory(house: House, key: RunKey) -> None:
    # As a gateway might that knows the head and nothing else.
    log = await house.log()
    await grow(await house.log(), key, 3)
    await log.append(History(key, (), await log.head(key)), said("short"))
    assert [event.ordinal for event in (await log.read(key)).events] == [0, 1, 2, 3]


async def test_an_event_without_a_sequence_is_no_head_to_read_up_to(house: House, key: RunKey) -> None:
    # As one that came in an answer or a letter, not from the stream.
    grown = await grow(await house.log(), key, 3)
    loose = replace(grown[1], sequence=0)
    assert (await (await house.log()).read(key, at=loose)).head == grown[-1]


async def test_facts_that_end_a_run_are_read_by_everyone(house: House, key: RunKey) -> None:
    writer = await house.log()
    await grow(writer, key, 2)
    await writer.append(await writer.read(key), Draft(EXAMPLES["desk.run-cancelled"], None))
    await writer.append(await writer.read(key), Draft(EXAMPLES["tools.turn-executed"], None))

    history = await (await house.log(reads=frozenset({"tools.turn-quoted"}))).read(key)

    assert history.end is not None
    assert history.end.kind == "desk.run-cancelled"


async def test_facts_are_found_by_their_exact_subject(house: House, key: RunKey, long_run: list[Event]) -> None:
    log = await house.log()
    quoted = [event for event in long_run if event.kind == "tools.turn-quoted"]
    assert await log.every_of(key, "tools.turn-quoted") == quoted
    assert await log.last_of(key, "tools.turn-quoted") == quoted[-1]
    assert await log.last_of(key, "policy.turn-forwarded") is None
    assert await log.at(long_run[3].sequence) == long_run[3]


# What liars write


async def publish(nc: Client, event: Event, payload: bytes | None = None, subject: str | None = None) -> int:
    """Stores an event as a service would that keeps to no rule, behind whatever is there."""
    reply = await nc.request(subject or event.key.subject(event.kind), payload or event.payload, timeout=SOON)
    return int(json.loads(reply.data)["seq"])


def rewritten(event: Event, **changes: object) -> bytes:
    return json.dumps(event.document() | changes).encode()


def sealed(document: Json, before: Event) -> Json:
    body = {name: value for name, value in document.items() if name != "chain"}
    return body | {"chain": hashlib.sha256(before.chain.encode() + canonical(body)).hexdigest()}


def after(event: Event, draft: Draft) -> Event:
    return events.write(event.key, draft, event, datetime.now(UTC))


@pytest.mark.parametrize(
    "trail",
    [
        lambda run: f"{run[1].sequence}:{run[0].kind} {run[1].sequence}:{run[1].kind}",  # the same for another
        lambda run: f"{run[0].sequence}:{run[0].kind} {run[0].sequence}:{run[0].kind}",  # another kind's number
        lambda run: f"{run[0].sequence}:{run[0].kind} 999999999:{run[1].kind}",  # what is not there
        lambda run: f"{run[1].sequence}:{run[1].kind} {run[0].sequence}:{run[0].kind}",  # swapped
        lambda run: "",
        lambda run: f"{run[0].sequence}:{run[0].kind}",
        lambda run: "not a trail",
        lambda run: ":",
    ],
)
async def test_a_trail_that_lies_is_found_out(
    house: House, nc: Client, key: RunKey, trail: Callable[[list[Event]], str]
) -> None:
    run = await grow(await house.log(), key, 2)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), trail=trail(run)))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_trail_into_another_run_is_found_out(house: House, nc: Client, key: RunKey) -> None:
    log = await house.log()
    run = await grow(log, key, 2)
    other = await grow(log, RunKey("globex", key.run), 2)
    trail = " ".join(f"{event.sequence}:{event.kind}" for event in other)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), trail=trail))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_trail_that_goes_round_in_a_circle_ends(house: House, nc: Client, key: RunKey) -> None:
    run = await grow(await house.log(), key, 40)
    lie = after(run[-1], said("lie"))
    own = run[-1].sequence + 1
    circle = " ".join(f"{own}:{lie.kind}" for _ in range(TRAIL_LENGTH))
    sequence = await publish(nc, lie, rewritten(lie, trail=circle))
    if sequence == own:  # nobody else wrote in between
        with pytest.raises(CorruptLog):
            await asyncio.wait_for((await house.log()).read(key), SOON)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "TCK-1-1"},
        {"tenant": "globex"},
        {"type": "turngate.policy.turn-forwarded.v1"},
        {"type": "turngate.desk.customer-said.v2"},
        {"type": "somebody.elses"},
        {"ordinal": "2"},
        {"ordinal": -1},
        {"ordinal": 2.5},
        {"ordinal": True},
        {"ordinal": 7},
        {"chain": "0" * 63},
        {"chain": None},
        {"chain": "\ud800" * 64},
        {"time": "yesterday"},
        {"time": "2026-11-30T12:00:00"},
        {"id": 7},
        {"cause": ["x"]},
        {"cause": "x" * 129},
        {"traceparent": "x" * 800_000},
        {"data": {"text": "no message id"}},
        {"data": None},
        {"trail": 3},
    ],
    ids=lambda change: json.dumps(change)[:40],
)
async def test_a_body_that_is_not_what_its_subject_says_is_not_read(
    house: House, nc: Client, key: RunKey, change: dict[str, object]
) -> None:
    run = await grow(await house.log(), key, 2)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), **change))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 20_000, b'{"type": {}}'])
async def test_a_body_that_is_no_event_is_not_read(house: House, nc: Client, key: RunKey, payload: bytes) -> None:
    [event] = await grow(await house.log(), key, 1)
    await nc.request(key.subject(event.kind), payload, timeout=SOON)
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


@pytest.mark.parametrize("tail", ["tools", "tools.turn-executed.more", "tools.turn-executed"])
async def test_a_subject_that_is_no_facts_is_not_read(house: House, nc: Client, key: RunKey, tail: str) -> None:
    [event] = await grow(await house.log(), key, 1)
    await publish(nc, event, subject=f"run.acme.{key.run}.{tail}")
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_seal_that_does_not_fit_is_found_by_who_reads_both(house: House, nc: Client, key: RunKey) -> None:
    run = await grow(await house.log(), key, 2)
    lie = after(run[1], said("lie"))
    await publish(nc, lie, lie.payload.replace(b'"text":"lie"', b'"text":"LIE"'))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_who_claims_an_old_number_is_found_out_and_nobody_waits_for_ever(
    house: House, nc: Client, key: RunKey
) -> None:
    log = await house.log()
    run = await grow(log, key, 3)
    await publish(nc, after(run[0], said("I was second")))
    with pytest.raises(CorruptLog):
        await asyncio.wait_for(respond(log, run[2], lambda _, event: said("next", event)), SOON)


async def test_a_reader_meets_kinds_that_it_does_not_know(house: House, nc: Client, key: RunKey) -> None:
    [started] = await grow(await house.log(), key, 1)
    newer = sealed(after(started, said("hello")).document() | {"type": "turngate.desk.weather-changed.v1"}, started)
    sequence = await publish(nc, started, json.dumps(newer).encode(), key.subject("desk.weather-changed"))

    log = await house.log()
    history = await log.read(key)
    assert history.head is not None
    assert (history.head.sequence, history.head.fact) == (sequence, None)
    assert (await log.append(history, said("onwards"))).ordinal == 2


# Outages


@own_server
async def test_a_fact_whose_confirmation_was_lost_is_not_said_twice(server: Server, key: RunKey) -> None:
    port = int(server.access.url.rsplit(":", 1)[1])
    async with Wire(port) as wire, House(server.access, wire.url) as far, House(server.access) as near:
        log = await far.log(timeout=1.0)
        started = await log.append(History(key), Draft(STARTED, None))
        decisions = 0

        def react(history: History, event: Event) -> Draft | None:
            nonlocal decisions
            decisions += 1
            if history.last(RunEnded):
                return None
            if decisions == 1:
                wire.hold_answers()
            return Draft(ENDED, event)

        with pytest.raises(Outage, match="confirm"):
            await respond(log, started, react)
        wire.let_answers_through()
        assert await respond(log, started, react) is None

        assert decisions == 3  # before the outage, after it with a stale memory, and once more behind the conflict
        kinds = [event.kind for event in (await (await near.log()).read(key)).events]
        assert kinds == ["desk.run-started", "agent.run-ended"]


@own_server
async def test_a_server_that_dies_with_the_message_in_hand_is_an_outage_and_the_fact_is_said_once(
    server: Server, key: RunKey
) -> None:
    port = int(server.access.url.rsplit(":", 1)[1])
    async with Wire(port) as wire, House(server.access, wire.url) as house:
        log = await house.log(timeout=1.0)
        started = await log.append(History(key), Draft(STARTED, None))
        wire.hold_answers()
        with pytest.raises(Outage):
            await log.append(await log.read(key, at=started), Draft(ENDED, started))
        server.restart()
        wire.cut()
        wire.let_answers_through()

        def react(history: History, event: Event) -> Draft | None:
            return None if history.last(RunEnded) else Draft(ENDED, event)

        async with asyncio.timeout(SOON):
            while True:
                with suppress(Outage):
                    await respond(log, started, react)
                    break
        assert [event.kind for event in (await log.read(key)).events] == ["desk.run-started", "agent.run-ended"]


@own_server
async def test_no_server_is_an_outage_for_readers_too(server: Server, key: RunKey) -> None:
    async with House(server.access) as house:
        log = await house.log(timeout=0.5)
        await grow(log, key, 1)
        server.kill()
        with pytest.raises(Outage):
            await log.read(key)
        with pytest.raises(Outage):
            async for _ in log.follow(live=False):
                pass


# Following


async def take(follower: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(SOON):
        return [await anext(follower) for _ in range(count)]


async def test_a_follower_gets_what_was_there_and_what_comes(fresh_house: House, key: RunKey) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    before = await grow(writer, key, 600)  # more than one batch
    async with aclosing(reader.follow()) as follower:
        assert await take(follower, 600) == before
        behind = await grow(writer, key, 620)
        assert await take(follower, 20) == behind
    async with aclosing(reader.follow(after=before[-1].sequence, live=False)) as follower:
        assert [event async for event in follower] == behind


async def test_nothing_is_lost_or_doubled_between_what_was_there_and_what_comes(
    fresh_house: House, key: RunKey
) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    writing = asyncio.create_task(grow(writer, key, 400))
    async with aclosing(reader.follow()) as follower:
        followed = await take(follower, 400)
    assert followed == await writing


async def test_a_follower_of_one_tenant_gets_that_tenants(fresh_house: House) -> None:
    writer, reader = await fresh_house.log(), await fresh_house.log()
    runs = [RunKey(tenant, f"TCK-{n}-1") for n in range(5) for tenant in ("acme", "globex")]
    async with aclosing(reader.follow(tenant="acme")) as follower:
        writing = asyncio.gather(*(grow(writer, run, 20) for run in runs))
        followed = await take(follower, 100)
        await writing
    assert {event.key.tenant for event in followed} == {"acme"}
    assert len({event.sequence for event in followed}) == 100
    assert [event.sequence for event in followed] == sorted(event.sequence for event in followed)


async def test_what_lost_with_a_conflict_is_followed_by_nobody(fresh_house: House, key: RunKey) -> None:
    log = await fresh_house.log()
    async with aclosing(log.follow()) as follower:
        first = await log.append(History(key), Draft(STARTED, None))
        with pytest.raises(Conflict):
            await log.append(History(key), Draft(STARTED, None, key="another"))
        second = await log.append(await log.read(key), said("hello"))
        assert await take(follower, 2) == [first, second]


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_one_unreadable_event_does_not_blind_a_follower(
    fresh_house: House, key: RunKey, tenant: str | None
) -> None:
    log, nc = await fresh_house.log(), await fresh_house.client("setup")
    [started] = await grow(log, key, 1)
    await publish(nc, started, b"{")
    other = RunKey("acme", f"{key.run}-2")
    async with aclosing(log.follow(tenant=tenant)) as follower:
        assert await take(follower, 1) == [started]
        await publish(nc, started, subject="run.acme.x.tools.turn-executed.more")
        [behind] = await grow(log, other, 1)
        assert await take(follower, 1) == [behind]


@own_server
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_a_follower_lives_through_a_restart_of_the_server(
    server: Server, server_house: House, key: RunKey, tenant: str | None
) -> None:
    writer, reader = await server_house.log(timeout=1.0), await server_house.log()
    globex = RunKey("globex", key.run)
    async with aclosing(reader.follow(tenant=tenant)) as follower:
        expected = await grow(writer, key, 5)
        assert await take(follower, 5) == expected
        server.restart()
        # The writer may be back before the reader is: what is said meanwhile nobody pushes to the reader.
        for length in range(6, 40):
            expected += await eventually(writer, key, length)
            await eventually(writer, globex, length - 5)
        followed: list[Event] = []
        while len(followed) < 34:
            followed += [event for event in await take(follower, 1) if event.key == key]
        assert followed == expected[5:]


@own_server
@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_what_was_said_while_a_follower_was_cut_off_comes_before_what_is_said_behind_it(
    server: Server, server_house: House, key: RunKey, tenant: str | None
) -> None:
    writer = await server_house.log()
    async with Wire(int(server.access.url.rsplit(":", 1)[1])) as wire, House(server.access, wire.url) as far:
        bus = await far.bus("setup")
        async with aclosing(JetStreamLog(bus.nc).follow(tenant=tenant)) as follower:
            grown = await grow(writer, key, 1)
            assert await take(follower, 1) == grown
            waiting = asyncio.create_task(take(follower, 1))
            await asyncio.sleep(0.2)  # it has caught up, and takes the next one as it comes
            grown = await grow(writer, key, 2)
            assert await waiting == grown
            wire.cut()
            missed = await grow(writer, key, 4)
            async with asyncio.timeout(SOON):
                while not (bus.nc.stats["reconnects"] and bus.connected):
                    await asyncio.sleep(0.01)
            behind = await grow(writer, key, 5)
            assert await take(follower, 3) == [*missed, *behind]


async def eventually(log: Log, key: RunKey, length: int) -> list[Event]:
    """`grow`, over an outage. Returns what this run has got beyond `length` - 1."""
    async with asyncio.timeout(SOON):
        while True:
            try:
                await grow(log, key, length)
                return list((await log.read(key)).events[length - 1 :])
            except (Outage, Conflict):
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("tenant", [None, "acme"])
async def test_a_follower_that_is_too_slow_is_waited_for_by_nobody_and_misses_nothing(
    fresh_house: House, key: RunKey, tenant: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contracts.log._WAITING", 8)
    writer, reader = await fresh_house.log(), await fresh_house.log()
    async with aclosing(reader.follow(tenant=tenant)) as follower:
        first = await grow(writer, key, 1)
        assert await take(follower, 1) == first
        behind = await grow(writer, key, 100)  # the follower does not look
        assert await take(follower, 99) == behind


def test_a_run_started_is_what_a_history_begins_with(key: RunKey) -> None:
    log = MemoryLog()
    log.say(History(key), Draft(STARTED, None))
    assert isinstance(log.history(key).started, RunStarted)
