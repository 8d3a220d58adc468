"""One run's line of facts: one winner an append, and every reader sees the same, whatever it remembers."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Self

import pytest
from contracts import events
from contracts.errors import Conflict
from contracts.events import TRAIL_LENGTH, Draft, Event, Link
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid, RunEnded, RunStarted
from contracts.handler import respond, say
from contracts.history import History
from contracts.log import JetStreamLog, Log
from contracts.memory import MemoryLog
from contracts.subjects import RunKey
from contracts.verify import verify_run
from nats.aio.client import Client

from .lines import ENDED, STARTED, grow, said
from .servers import SOON, House


@pytest.fixture(params=["memory", "jetstream"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def log(kind: str, house: House) -> Log:
    return MemoryLog() if kind == "memory" else await house.log()


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


class Asked:
    """How often the broker was asked over a connection, or told, in the block."""

    def __init__(self, nc: Client) -> None:
        self.times = 0
        self._nc = nc

    def __enter__(self) -> Self:
        self.times = -self._nc.stats["out_msgs"]
        return self

    def __exit__(self, *_: object) -> None:
        self.times += self._nc.stats["out_msgs"]


async def test_a_run_longer_than_the_trail_is_read_whole_by_who_has_read_nothing(
    nc: Client, key: RunKey, long_run: list[Event]
) -> None:
    with Asked(nc) as asked:
        history = await JetStreamLog(nc).read(key)
    assert list(history.events) == long_run
    assert asked.times == 100  # each event once, the head included


async def test_a_reader_of_few_kinds_fetches_those_and_the_ends_of_trails(
    nc: Client, key: RunKey, long_run: list[Event]
) -> None:
    with Asked(nc) as asked:
        history = await JetStreamLog(nc, ["desk.run-started", "tools.turn-quoted"]).read(key)
    assert [event.ordinal for event in history.events] == [*range(0, 100, 10)]
    assert history.head == long_run[-1]
    assert asked.times <= 1 + 10 + 100 // TRAIL_LENGTH


async def test_a_reader_that_lags_fetches_just_what_is_new(nc: Client, key: RunKey, long_run: list[Event]) -> None:
    log = JetStreamLog(nc)
    await log.read(key, at=long_run[40])

    with Asked(nc) as asked:
        history = await log.read(key, at=long_run[44])

    assert list(history.events) == long_run[:45]
    assert asked.times == 3  # 41, 42 and 43; 44 was in hand


async def test_on_the_hot_path_nothing_is_fetched(nc: Client, key: RunKey, long_run: list[Event]) -> None:
    log = JetStreamLog(nc)
    history = await log.read(key)
    with Asked(nc) as asked:
        event = await log.append(history, said("next"))
        assert (await log.read(key, at=event)).head == event
        assert (await log.read(key, at=long_run[50])).head == event  # an old one, heard again
    assert asked.times == 1  # the fact itself


async def test_a_cold_read_costs_the_same_in_a_full_stream(nc: Client, key: RunKey) -> None:
    busy = JetStreamLog(nc)
    await grow(busy, key, 20)

    async def cost() -> int:
        with Asked(nc) as asked:
            assert len((await JetStreamLog(nc).read(key)).events) == 20
        return asked.times

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


def test_a_run_started_is_what_a_history_begins_with(key: RunKey) -> None:
    log = MemoryLog()
    log.say(History(key), Draft(STARTED, None))
    assert isinstance(log.history(key).started, RunStarted)
