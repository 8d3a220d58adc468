"""A run that has ended, or that a model has cost enough for nothing, asks a failing model no more."""

import asyncio
import itertools
from typing import Any

import pytest
from agent_runner.settings import Settings
from contracts.facts import Fact, RunCancelled, RunTakenOver
from contracts.parts import Limits
from contracts.subjects import RunKey
from standin.director import Director
from turngate.testing import Database

from .house import REPLY, House, end_of, lines, running
from .told import ALEX

BUSY = {"fault": {"status": 529}}
BROKEN = {"text": "Half of it.", "fault": {"error": "overloaded_error"}}


async def asked(director: Director, ticket: str) -> int:
    return sum((await director.asked(ticket)).values())


# A run that has ended asks for nothing more


@pytest.mark.parametrize("end", [RunCancelled(by=ALEX), RunTakenOver(by=ALEX)], ids=["cancelled", "taken over"])
@pytest.mark.parametrize("away", [BUSY, BROKEN], ids=["overloaded", "broken inside a 200"])
async def test_a_run_that_a_person_ended_asks_a_failing_model_nothing_more(
    home: House, told: Settings, director: Director, end: Fact, away: Any
) -> None:
    await director.script("TCK-60", [away], repeat=True)
    async with running(told):
        key = await home.starts("TCK-60-1")
        await director.asked("TCK-60", at_least=2)
        await home.says(key, end)
        before = await asked(director, "TCK-60")
        await home.nothing_in_hand()
        assert await asked(director, "TCK-60") <= before + 1, "the one that was under way"


async def test_a_run_that_ended_while_no_runner_was_there_asks_nothing(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-61", [BUSY], repeat=True)
    async with running(told):
        key = await home.starts("TCK-61-1")
        await director.asked("TCK-61", at_least=1)
    await home.says(key, RunCancelled(by=ALEX))
    before = await asked(director, "TCK-61")
    async with running(told):
        await home.nothing_in_hand()
    assert await asked(director, "TCK-61") == before


async def test_a_call_that_waited_for_another_of_its_tenants_is_not_made_once_its_run_has_ended(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-63", [{**REPLY, "gate": "first"}])
    async with running(told.model_copy(update={"calls_per_tenant": 1})):
        first = await home.starts("TCK-63-1")
        await director.asked("TCK-63", at_least=1)
        second = await home.starts("TCK-64-1")
        await asyncio.sleep(1.1)  # so that what is known of the second is old by the time that it may go on
        await home.says(second, RunCancelled(by=ALEX))
        await director.open("first")
        await home.ended(first)
        await home.nothing_in_hand()
    assert await asked(director, "TCK-64") == 0


# What may have to be paid


async def test_requests_that_may_have_to_be_paid_are_five_a_step_and_then_a_person_has_the_ticket(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-65", [BROKEN], repeat=True)
    async with running(told):
        events = await home.ended(await home.starts("TCK-65-1"))
    end = end_of(events)
    assert await asked(director, "TCK-65") == 5
    assert (end.status, end.steps, end.cost_micro_usd) == ("failed", 0, 0)
    [line] = lines(fresh_database)
    assert end.uncertain_micro_usd == line["uncertain_micro_usd"] > 0
    assert "asked 5 times" in end.reason
    assert "overloaded_error" in end.reason


async def test_what_may_be_owed_counts_towards_the_runs_limit(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    limits = Limits(max_steps=12, max_cost_micro_usd=100_000)
    await director.script("TCK-66", [BROKEN], repeat=True)
    async with running(told):
        events = await home.ended(await home.starts("TCK-66-1", limits=limits))
    end = end_of(events)
    assert end.status == "budget_exhausted"
    assert "may have to be paid" in end.reason
    assert await asked(director, "TCK-66") < 5
    [line] = lines(fresh_database)
    assert 0 < line["uncertain_micro_usd"] <= 100_000
    assert end.uncertain_micro_usd == line["uncertain_micro_usd"]


async def test_the_five_are_counted_over_restarts(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-67", [{**REPLY, "gate": "never"}], repeat=True)
    key: RunKey | None = None
    for times in itertools.count(1):
        async with running(told.model_copy(update={"model_timeout_s": 1})):
            key = key or await home.starts("TCK-67-1")
            await director.asked("TCK-67", at_least=min(times, 5))
            if times >= 3:
                break
    async with running(told.model_copy(update={"model_timeout_s": 1})):
        end = end_of(await home.ended(key))
    assert end.status == "failed"
    assert await asked(director, "TCK-67") == 5


# What costs nothing


async def test_an_overloaded_model_is_waited_for_until_the_deadline_and_then_the_run_fails(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-68", [BUSY], repeat=True)
    async with running(told.model_copy(update={"model_deadline_s": 2})):
        events = await home.ended(await home.starts("TCK-68-1"))
    end = end_of(events)
    assert (end.status, end.steps, end.cost_micro_usd, end.uncertain_micro_usd) == ("failed", 0, 0, None)
    assert "529" in end.reason
    assert (events[-1].time - events[0].time).total_seconds() >= 2
    assert 2 <= await asked(director, "TCK-68") <= 10
    assert [line["uncertain_micro_usd"] for line in lines(fresh_database)] == [0]


async def test_no_connection_is_waited_for_and_costs_no_try(home: House, told: Settings) -> None:
    away = told.model_copy(update={"model_base_url": "http://127.0.0.1:9", "model_deadline_s": 1})
    async with running(away):
        end = end_of(await home.ended(await home.starts("TCK-69-1")))
    assert end.status == "failed"
    assert "no connection" in end.reason
