"""A model that is away: waited for while that costs nothing and the run goes on, and no longer; and said so."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from agent_runner import calls
from agent_runner.endings import RunFull, TooOften
from agent_runner.ledger import MOST_UNKNOWN, Ledger, Pool
from agent_runner.settings import Settings
from contracts.facts import RunCancelled
from contracts.model_wait import ModelWait, in_words, utc
from contracts.subjects import RunKey
from standin.director import Director
from turngate.testing import Database

from .conftest import Causes
from .house import REPLY, House, lines, running
from .test_model import request
from .told import ALEX

BUSY = {"fault": {"status": 529}}


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await true():
            await asyncio.sleep(0.02)


def waits(home: House, key: RunKey) -> list[Any]:
    """What was said of the run's wait, the last last."""
    return [body for subject, body in home.live if subject == f"live.{key.tenant}.{key.run}.model"]


async def test_a_model_that_is_silent_is_not_waited_for_once_its_run_has_ended(
    home: House, told: Settings, director: Director, monkeypatch: pytest.MonkeyPatch, fresh_database: Database
) -> None:
    monkeypatch.setattr(calls, "SILENT_AFTER", 0.1)
    monkeypatch.setattr(calls, "LOOKS_EVERY", 0.1)
    await director.script("TCK-62", [{**REPLY, "gate": "never"}])
    async with running(told.model_copy(update={"model_timeout_s": 600})):
        key = await home.starts("TCK-62-1")
        await director.asked("TCK-62", at_least=1)
        await home.says(key, RunCancelled(by=ALEX))
        await home.nothing_in_hand()
    assert await director.asked("TCK-62") == {0: 1}
    [line] = lines(fresh_database)
    assert line["uncertain_micro_usd"] == line["reserved_micro_usd"]


async def test_the_five_are_counted_over_processes_and_over_those_that_died(pool: Pool, another: Causes) -> None:
    cause, asking = another(), request()
    for _ in range(3):
        ledger = Ledger(pool)
        assert await ledger.reserve(cause, asking) is None
        await ledger.lose(cause)
    for _ in range(2):
        assert await Ledger(pool, lease=0.0).reserve(cause, asking) is None  # and dies
    assert await Ledger(pool).reserve(cause, asking) == TooOften(MOST_UNKNOWN)


async def test_a_runs_limit_counts_what_other_steps_may_have_cost_and_more_than_an_older_ledger_knows(
    pool: Pool, another: Causes
) -> None:
    first, asking = another(), request()
    second = replace(another(), key=first.key)
    most = asking.at_most_micro_usd
    ledger = Ledger(pool)
    assert await ledger.reserve(first, asking, 0, most) is None
    await ledger.lose(first)
    assert await ledger.reserve(second, asking, 0, 2 * most - 1) == RunFull(most)
    assert await ledger.reserve(second, asking, 5, 2 * most) == RunFull(most + 5)
    assert await ledger.reserve(second, asking, 0, 2 * most) is None
    assert await ledger.uncertain(first.key, 5, most) == most - 5


def test_the_pause_between_two_calls_grows_and_is_bounded() -> None:
    assert calls.pause_before(1) < 0.2
    assert all(calls.pause_before(n) <= calls.LONGEST_PAUSE for n in (9, 20, 10_000))
    assert calls.pause_before(12) >= 0.7 * calls.LONGEST_PAUSE


# It is said


async def test_a_model_that_is_away_is_said_to_be_at_once_until_it_answers(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-80", [[BUSY, BUSY, {**REPLY, "gate": "back"}]])
    async with running(told) as bus:
        key = await home.starts("TCK-80-1")
        await director.asked("TCK-80", at_least=3)
        heard = [ModelWait.model_validate(body) for body in waits(home, key)]
        assert [(wait.state, wait.status, wait.attempt) for wait in heard] == [("away", "529", 1), ("away", "529", 2)]
        assert len({wait.since for wait in heard}) == 1
        [condition] = [line for condition in bus.conditions for line in condition()]
        assert condition == f"The model is away (529) since {utc(heard[0].since)}, attempt 2: 1 run"
        await director.open("back")
        await home.ended(key)
        await home.nothing_in_hand()
        assert waits(home, key)[-1] is None
        assert [line for condition in bus.conditions for line in condition()] == []


async def test_a_model_that_says_nothing_is_said_to_be_waited_for_again_and_again(
    home: House, told: Settings, director: Director, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "SILENT_AFTER", 0.2)
    await director.script("TCK-81", [{**REPLY, "gate": "awake"}])
    async with running(told) as bus:
        key = await home.starts("TCK-81-1")

        async def said_again() -> bool:
            return len(waits(home, key)) >= 2

        await until(said_again)
        wait = ModelWait.model_validate(waits(home, key)[0])
        assert (wait.state, wait.attempt, wait.status) == ("waiting", 1, None)
        assert in_words(wait, "14:02:11") == "Waiting for the model since 14:02:11, attempt 1"
        assert [line for condition in bus.conditions for line in condition()] != []
        await director.open("awake")
        await home.ended(key)
        await home.nothing_in_hand()
    assert waits(home, key)[-1] is None


async def test_a_model_that_answers_is_not_said_to_be_waited_for(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-82", [REPLY])
    async with running(told):
        key = await home.starts("TCK-82-1")
        await home.ended(key)
    assert waits(home, key) == []
