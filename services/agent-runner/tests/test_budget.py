"""A tenant's budget of a day: what counts towards it, that it holds whoever asks at once, and how a run ends by it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from agent_runner.answer import Answer
from agent_runner.budgets import Budgets
from agent_runner.endings import DayFull
from agent_runner.ledger import Ledger, Pool
from agent_runner.settings import Settings
from contracts.events import Event
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool
from standin.director import Director
from turngate.setup import in_database
from turngate.testing import Database

from .conftest import Causes
from .house import LOOK, REPLY, House, change, end_of, lines, running
from .test_model import request
from .told import answer, text

Halfway = psycopg.AsyncConnection[Any]
ASKED = replace(request(), at_most_micro_usd=1_000)


@pytest.fixture
async def wide_pool(postgres: Database) -> AsyncIterator[Pool]:
    async with AsyncConnectionPool(postgres.runner, kwargs={"autocommit": True}, max_size=16, open=False) as pool:
        yield pool


@pytest.fixture
async def halfway(postgres: Database) -> AsyncIterator[Halfway]:
    """A process that is in the middle of something."""
    async with await psycopg.AsyncConnection.connect(postgres.runner) as connection:
        yield connection


async def reserves(connection: Halfway, cause: Event) -> None:
    """As a ledger does, but for the commit."""
    line = [cause.key.tenant, cause.key.run, cause.id]
    await connection.execute("select ledger.reserve(%s, %s, %s, '', '', gen_random_uuid(), 1000, 5)", line)


async def somebody_waits(database: Database) -> None:
    """Returns once somebody is kept from going on by another."""
    waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with await psycopg.AsyncConnection.connect(database.superuser, autocommit=True) as connection:
        async with asyncio.timeout(20):
            while not await (await connection.execute(waiting)).fetchone():
                await asyncio.sleep(0.01)


async def test_fifty_who_ask_at_once_never_exceed_the_budget(
    wide_pool: Pool, postgres: Database, tenant: str, another: Causes
) -> None:
    ledgers = [Ledger(wide_pool) for _ in range(50)]
    await ledgers[0].set_budget(tenant, 20_999, 1)

    outcomes = await asyncio.gather(*(ledger.reserve(another(), ASKED) for ledger in ledgers))

    assert [outcome for outcome in outcomes if outcome is not None] == [DayFull(20_999, 20_000, 1_000)] * 30
    assert len(lines(postgres, tenant)) == 20


async def test_who_reserves_waits_for_who_is_reserving_and_counts_what_they_took(
    pool: Pool, halfway: Halfway, postgres: Database, tenant: str, another: Causes
) -> None:
    ledger = Ledger(pool)
    await ledger.set_budget(tenant, 1_999, 1)
    await reserves(halfway, another())
    second = asyncio.create_task(ledger.reserve(another(), ASKED))
    await somebody_waits(postgres)
    await halfway.commit()
    assert await second == DayFull(1_999, 1_000, 1_000)


async def test_a_first_budget_waits_for_who_reserves_and_has_not_seen_it(
    pool: Pool, halfway: Halfway, postgres: Database, tenant: str, another: Causes
) -> None:
    ledger = Ledger(pool)
    await reserves(halfway, another())
    setting = asyncio.create_task(ledger.set_budget(tenant, 1_999, 1))
    await somebody_waits(postgres)
    await halfway.commit()
    await setting
    assert await ledger.reserve(another(), ASKED) == DayFull(1_999, 1_000, 1_000)


async def test_without_a_budget_nothing_is_refused(pool: Pool, tenant: str, another: Causes) -> None:
    ledger = Ledger(pool)
    dear = replace(ASKED, at_most_micro_usd=10**12)
    assert await ledger.reserve(another(), dear) is None
    await ledger.set_budget(tenant, 0, 1)
    assert isinstance(await ledger.reserve(another(), ASKED), DayFull)
    await ledger.set_budget(tenant, None, 2)
    assert await ledger.reserve(another(), dear) is None


async def test_an_older_budget_that_is_heard_late_counts_for_nothing(pool: Pool, tenant: str, another: Causes) -> None:
    ledger = Ledger(pool)
    await ledger.set_budget(tenant, 5_000, 7)
    await ledger.set_budget(tenant, 0, 3)
    assert await ledger.reserve(another(), ASKED) is None


async def test_one_tenants_budget_is_no_others(pool: Pool, tenant: str, another: Causes) -> None:
    ledger = Ledger(pool)
    await ledger.set_budget(f"{tenant}-other", 0, 1)
    assert await ledger.reserve(another(), ASKED) is None


async def test_what_was_spent_counts_and_what_was_reserved_and_not_used_does_not(
    pool: Pool, tenant: str, another: Causes
) -> None:
    ledger, first = Ledger(pool), another()
    await ledger.set_budget(tenant, 1_400, 1)
    assert await ledger.reserve(first, ASKED) is None
    assert await ledger.reserve(another(), ASKED) == DayFull(1_400, 1_000, 1_000)
    await ledger.record(first, answer(text("cheap"), cost=400))
    second = another()
    assert await ledger.reserve(second, ASKED) is None
    await ledger.release(second)  # nothing came of it
    assert await ledger.reserve(another(), ASKED) is None
    assert await ledger.reserve(another(), ASKED) == DayFull(1_400, 1_400, 1_000)


async def test_what_a_process_that_died_may_have_spent_counts(
    pool: Pool, tenant: str, another: Causes, postgres: Database
) -> None:
    ledger, cause = Ledger(pool), another()
    await ledger.set_budget(tenant, 2_500, 1)
    assert await Ledger(pool).reserve(cause, ASKED) is None
    change(postgres, tenant, "held_until = now() - interval '1 second'")
    assert await ledger.reserve(cause, ASKED) is None  # taken over
    change(postgres, tenant, "held_until = now() - interval '1 second'")
    assert await Ledger(pool).reserve(cause, ASKED) == DayFull(2_500, 2_000, 1_000)


async def test_a_recorded_answer_is_used_again_though_the_day_is_full(pool: Pool, tenant: str, another: Causes) -> None:
    ledger, cause, said = Ledger(pool), another(), answer(text("paid for"), cost=1_000)
    await ledger.set_budget(tenant, 1_000, 1)
    await ledger.reserve(cause, ASKED)
    await ledger.record(cause, said)
    assert isinstance(await ledger.reserve(another(), ASKED), DayFull)
    assert await ledger.reserve(cause, ASKED) == said


async def test_who_waits_for_anothers_answer_is_not_refused(pool: Pool, tenant: str, another: Causes) -> None:
    holder, cause = Ledger(pool), another()
    await holder.set_budget(tenant, 1_000, 1)
    await holder.reserve(cause, ASKED)
    asked = pool.get_stats()["requests_num"]
    waiting = asyncio.create_task(Ledger(pool).reserve(cause, ASKED))
    async with asyncio.timeout(20):
        while pool.get_stats()["requests_num"] < asked + 2 and not waiting.done():  # the first was told to wait
            await asyncio.sleep(0.01)
    assert not waiting.done()
    await holder.record(cause, answer(text("one for both")))
    assert isinstance(await waiting, Answer)


async def test_yesterday_counts_for_nothing_but_for_a_call_that_is_made_again_today(
    pool: Pool, tenant: str, another: Causes, postgres: Database
) -> None:
    ledger, old = Ledger(pool), another()
    await ledger.reserve(old, ASKED)
    change(postgres, tenant, "reserved_at = %s, held_until = now()", datetime.now(UTC) - timedelta(days=1))
    await ledger.set_budget(tenant, 1_999, 1)
    assert await ledger.reserve(old, ASKED) == DayFull(1_999, 1_000, 1_000)
    assert await ledger.reserve(another(), ASKED) is None
    assert await ledger.reserve(another(), ASKED) == DayFull(1_999, 1_000, 1_000)


async def test_a_tenant_sees_its_own_budget_only(postgres: Database, pool: Pool, tenant: str) -> None:
    await Ledger(pool).set_budget(tenant, 1, 1)
    with psycopg.connect(postgres.runner) as connection:
        for table in ("budgets", "erased_runs"):
            assert connection.execute(f"select count(*) from ledger.{table}".encode()).fetchone() == (0,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(f"delete from ledger.{table}".encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("insert into ledger.budgets values ('acme', null, 9)")


# The service


async def test_a_run_beyond_the_days_budget_ends_and_says_what_to_do(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-60", [LOOK], repeat=True)
    async with running(told):
        await home.sets_budget(100_000)
        await home.nothing_in_hand("TENANTS")
        end = end_of(await home.ended(await home.starts("TCK-60-1")))
        assert (end.status, end.steps > 0) == ("budget_exhausted", True)
        assert "may cost $0.1000 a day (UTC)" in end.reason
        assert "the model was not asked" in end.reason
        assert "turngate budget" in end.reason
        # Nor is the next one begun, until there is more to spend.
        await director.script("TCK-61", [REPLY])
        await home.sets_budget(end.cost_micro_usd + 1)
        await home.nothing_in_hand("TENANTS")
        assert end_of(await home.ended(await home.starts("TCK-61-1"))).steps == 0
        await home.sets_budget(None)
        await home.nothing_in_hand("TENANTS")
        assert end_of(await home.ended(await home.starts("TCK-61-2"))).status == "resolved"
    assert sum(line["spent_micro_usd"] for line in lines(fresh_database)) > 0
    assert await director.asked("TCK-61") == {0: 1}


async def test_fifty_runs_at_once_stay_within_the_days_budget_of_their_tenant(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    budget = 200_000  # much less than what 50 runs of two calls cost
    for n in range(50):
        await director.script(f"TCK-7{n:02}", [LOOK, REPLY])
    async with running(told), running(told):
        await home.sets_budget(budget)
        await home.nothing_in_hand("TENANTS")
        keys = [await home.starts(f"TCK-7{n:02}-1") for n in range(50)]
        ends = [end_of(await home.ended(key)) for key in keys]
    assert "budget_exhausted" in {end.status for end in ends} <= {"resolved", "budget_exhausted"}
    assert 0 < sum(end.cost_micro_usd for end in ends) <= budget
    assert sum(line["spent_micro_usd"] for line in lines(fresh_database)) <= budget


async def test_a_runner_that_starts_while_the_database_is_away_waits_for_it(
    home: House, fresh_database: Database
) -> None:
    await home.sets_budget(0)
    name = conninfo_to_dict(fresh_database.superuser)["dbname"]
    with psycopg.connect(in_database(fresh_database.superuser, "postgres"), autocommit=True) as superuser:
        superuser.execute(f"alter database {name} allow_connections false".encode())
        async with AsyncConnectionPool(
            fresh_database.runner, min_size=0, max_size=1, timeout=0.1, reconnect_timeout=0.1, open=False
        ) as pool:
            catching_up = asyncio.create_task(Budgets(Ledger(pool)).catch_up(home.line))
            async with asyncio.timeout(20):
                while not (pool.get_stats().get("requests_errors") or catching_up.done()):
                    await asyncio.sleep(0.01)
            assert not catching_up.done()
            superuser.execute(f"alter database {name} allow_connections true".encode())
            async with asyncio.timeout(20):
                await catching_up
    with psycopg.connect(fresh_database.superuser) as superuser:
        assert superuser.execute("select day_micro_usd from ledger.budgets").fetchall() == [(0,)]


async def test_a_ledger_that_has_forgotten_the_budget_learns_it_when_a_runner_starts(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    async with running(told):
        await home.sets_budget(7)
        await home.sets_budget(0)
        await home.nothing_in_hand("TENANTS")
    with psycopg.connect(fresh_database.superuser) as connection:
        connection.execute("delete from ledger.budgets")  # as an older backup has it
    await director.script("TCK-62", [REPLY])
    async with running(told):
        end = end_of(await home.ended(await home.starts("TCK-62-1")))
    assert (end.status, end.steps) == ("budget_exhausted", 0)
