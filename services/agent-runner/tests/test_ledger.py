"""The ledger: one answer a call, whoever asks and whoever dies meanwhile."""

import asyncio
import uuid
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from agent_runner.answer import Answer
from agent_runner.erasure import Runs, erase
from agent_runner.ledger import AboveRowSecurity, Away, Ledger, Pool, must_be_bound_by_row_security
from agent_runner.request import Request
from contracts.events import Event
from contracts.subjects import RunKey
from psycopg_pool import AsyncConnectionPool
from turngate.testing import Database

from .test_model import request
from .told import Told, answer, call, text


@pytest.fixture
def cause() -> Event:
    """An event of a run of the test's own."""
    return replace(Told().last, id=str(uuid.uuid4()), key=RunKey("acme", f"TCK-{uuid.uuid4().hex[:8]}-1"))


@pytest.fixture
def asked() -> Request:
    return request()


async def test_a_recorded_answer_is_given_to_whoever_asks_next(pool: Pool, cause: Event, asked: Request) -> None:
    said = answer(text("half \U0001f600 \x00"), call("a", amount=1.5))
    assert await Ledger(pool).reserve(cause, asked) is None
    assert await Ledger(pool).record(cause, said) == said
    assert await Ledger(pool).reserve(cause, asked) == said


async def test_the_first_recorded_answer_holds_and_both_are_paid(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    ledger = Ledger(pool)
    await ledger.reserve(cause, asked)
    first = await ledger.record(cause, answer(text("first"), cost=3))
    assert await ledger.record(cause, answer(text("second"), cost=4)) == first
    assert line(postgres, cause)["spent_micro_usd"] == 7


@pytest.mark.parametrize("reserved", ["before", "after"])
async def test_an_answer_that_comes_after_its_run_was_erased_is_paid_for_and_not_kept(
    pool: Pool, cause: Event, asked: Request, postgres: Database, reserved: str
) -> None:
    ledger, runs = Ledger(pool), Runs(tenant="acme", runs=[cause.key.run])
    if reserved == "before":
        await ledger.reserve(cause, asked)
    assert await asyncio.to_thread(erase, postgres.runner, runs) == (1 if reserved == "before" else 0)
    if reserved == "after":  # by a runner that had read the run before it ended
        await ledger.reserve(cause, asked)

    late = answer(text("Dear Tom Whitfield"), cost=3)
    assert await ledger.record(cause, late) == late

    kept = line(postgres, cause)
    assert (kept["answer"], kept["spent_micro_usd"]) == (None, 3)


async def test_two_who_ask_at_once_get_one_answer(pool: Pool, cause: Event, asked: Request) -> None:
    one, two = Ledger(pool), Ledger(pool)
    outcomes = await asyncio.gather(_reserves(one, cause, asked), _reserves(two, cause, asked))
    assert [found.text for found in outcomes] == ["once", "once"]


async def _reserves(ledger: Ledger, cause: Event, asked: Request) -> Answer:
    found = await ledger.reserve(cause, asked)
    return found if isinstance(found, Answer) else await ledger.record(cause, answer(text("once")))


async def test_a_call_whose_holder_has_died_is_taken_over_and_its_money_stays_uncertain(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    await Ledger(pool, lease=0.1).reserve(cause, asked)
    assert await Ledger(pool).reserve(cause, asked) is None
    assert line(postgres, cause)["uncertain_micro_usd"] == asked.at_most_micro_usd


async def test_a_call_that_takes_long_stays_its_holders(pool: Pool, cause: Event, asked: Request) -> None:
    holder = Ledger(pool, lease=0.9)
    await holder.reserve(cause, asked)
    waiting = asyncio.create_task(Ledger(pool).reserve(cause, asked))
    async with holder.holding(cause):
        done, _ = await asyncio.wait({waiting}, timeout=1.9)  # two leases long
        assert not done
    await holder.record(cause, answer(text("at last")))
    found = await waiting
    assert isinstance(found, Answer)
    assert found.text == "at last"


async def test_a_reservation_that_was_given_back_is_free_and_nothing_is_uncertain(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    ledger = Ledger(pool)
    await ledger.reserve(cause, asked)
    await ledger.release(cause)
    assert await Ledger(pool).reserve(cause, asked) is None
    assert line(postgres, cause)["uncertain_micro_usd"] == 0


async def test_a_call_whose_outcome_is_not_known_is_free_and_its_money_stays_uncertain(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    ledger = Ledger(pool)
    await ledger.reserve(cause, asked)
    await ledger.lose(cause)
    assert await Ledger(pool).reserve(cause, asked) is None
    assert line(postgres, cause)["uncertain_micro_usd"] == asked.at_most_micro_usd


async def test_who_comes_late_leaves_the_reservation_of_who_took_over_alone(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    late, after = Ledger(pool, lease=0.01), Ledger(pool)
    await late.reserve(cause, asked)
    await after.reserve(cause, replace(asked, at_most_micro_usd=7_000))
    held = line(postgres, cause)

    await late.record(cause, answer(text("late"), cost=3))
    await late.lose(cause)
    kept = line(postgres, cause)
    assert (kept["holder"], kept["held_until"]) == (held["holder"], held["held_until"])
    assert (kept["reserved_micro_usd"], kept["uncertain_micro_usd"]) == (7_000, asked.at_most_micro_usd)

    assert (await after.record(cause, answer(text("too"), cost=4))).text == "late"
    kept = line(postgres, cause)
    assert (kept["holder"], kept["held_until"], kept["spent_micro_usd"]) == (None, None, 7)


async def test_who_took_over_gives_its_reservation_back_though_the_answer_has_come(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    late, after = Ledger(pool, lease=0.01), Ledger(pool)
    await late.reserve(cause, asked)
    await after.reserve(cause, asked)
    await late.record(cause, answer(text("late")))
    await after.release(cause)
    assert line(postgres, cause)["holder"] is None


async def test_a_run_of_another_tenants_with_the_same_name_keeps_its_answers(
    pool: Pool, cause: Event, asked: Request, postgres: Database
) -> None:
    theirs = replace(cause, key=RunKey("initech", cause.key.run))
    for one in (cause, theirs):
        await Ledger(pool).reserve(one, asked)
        await Ledger(pool).record(one, answer(text("Dear Tom Whitfield")))
    # Even by a role that row-level security does not bind.
    assert await asyncio.to_thread(erase, postgres.superuser, Runs(tenant="acme", runs=[cause.key.run])) == 1
    assert line(postgres, cause)["answer"] is None
    assert line(postgres, theirs)["answer"] is not None


async def test_a_role_above_row_security_is_refused(postgres: Database, pool: Pool) -> None:
    async with AsyncConnectionPool(postgres.superuser, min_size=1, open=False) as above:
        with pytest.raises(AboveRowSecurity, match="turngate_runner"):
            await must_be_bound_by_row_security(above)
    await must_be_bound_by_row_security(pool)


async def test_a_tenant_sees_its_own_lines_only(pool: Pool, cause: Event, asked: Request, postgres: Database) -> None:
    await Ledger(pool).reserve(cause, asked)
    with psycopg.connect(postgres.runner) as connection:
        assert connection.execute("select count(*) from ledger.calls").fetchone() == (0,)
        connection.execute("select set_config('turngate.tenant', 'globex', true)")
        assert connection.execute("select count(*) from ledger.calls").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "insert into ledger.calls (tenant, run, cause, request_digest, model, reserved_micro_usd)"
                " values ('acme', 'x', gen_random_uuid(), '', '', 0)"
            )


async def test_the_runners_role_may_not_erase_a_line(postgres: Database) -> None:
    with psycopg.connect(postgres.runner) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from ledger.calls")


async def test_a_database_that_is_away_is_an_outage(cause: Event, asked: Request) -> None:
    dsn = "postgresql://nobody@127.0.0.1:1/none"
    async with AsyncConnectionPool(dsn, open=False, min_size=0, max_size=1, timeout=0.2) as pool:
        with pytest.raises(Away):
            await Ledger(pool).reserve(cause, asked)


def line(database: Database, cause: Event) -> dict[str, Any]:
    with psycopg.connect(database.runner, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("select set_config('turngate.tenant', %s, true)", [cause.key.tenant])
        [found] = connection.execute("select * from ledger.calls where cause = %s", [cause.id]).fetchall()
    return found
