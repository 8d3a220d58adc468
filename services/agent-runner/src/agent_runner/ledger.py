"""The spend ledger: what is reserved for a model call, and its answer, kept so that none is paid for twice."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import date
from typing import Any, TypeVar

import psycopg
import structlog
from contracts.events import Event
from contracts.settings import ACK_WAIT
from psycopg.types.json import Json as AsJson
from psycopg_pool import AsyncConnectionPool

from agent_runner.answer import Answer
from agent_runner.domain import DayFull
from agent_runner.request import Request
from agent_runner.spending import Day

logger = structlog.get_logger()
T = TypeVar("T")
Pool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]

LOOKED_AT_EVERY = 0.25
TRIED_EVERY = 0.5  # seconds, while the database is away
Away = psycopg.OperationalError


class AboveRowSecurity(Exception):
    """The database role that was given sees every tenant's rows."""


async def until_back(do: Callable[[], Awaitable[T]], waiting: str) -> T:
    """What `do` gives; while the database is away it is tried again. `waiting` says in the log file what waits."""
    while True:
        try:
            return await do()
        except Away as error:
            logger.warning("outage", error=repr(error), waiting=waiting)
            await asyncio.sleep(TRIED_EVERY)


async def must_be_bound_by_row_security(pool: Pool) -> None:
    """Raises AboveRowSecurity unless the role is one that row-level security binds."""
    async with pool.connection() as connection:
        found = await connection.execute("select rolsuper or rolbypassrls from pg_roles where rolname = current_user")
        row = await found.fetchone()
    if row is None or row[0]:
        raise AboveRowSecurity(
            "TURNGATE_POSTGRES_DSN names a role that is above row-level security, so tenants would not be kept apart. "
            "Give it the role turngate_runner."
        )


class Ledger:
    """One line a model call, by the event that led to it. `holder` names this process among all that ask.

    lease: seconds that a reservation outlives its holder; as long as the broker waits before it asks another.

    The request's digest is kept beside and is not part of the key: an event has one answer, and one that was paid for
    is used even if the tools or the prompt have changed since.
    """

    def __init__(self, pool: Pool, lease: float = ACK_WAIT) -> None:
        self._pool = pool
        self._lease = lease
        self._holder = uuid.uuid4()

    async def reserve(self, cause: Event, request: Request) -> Answer | DayFull | None:
        """None: the call is ours to make. Else the answer that was recorded for it, or why the tenant's day has no room
        for it: what its calls of today have cost, or may yet have cost, counts towards its budget.

        While another living process makes the same call, waits for its answer; once that process has gone, takes over.
        """
        while True:
            mine, answer, budget, taken = await self._call(
                "select mine, answer, budget_micro_usd, taken_micro_usd"
                " from ledger.reserve(%s, %s, %s, %s, %s, %s, %s, %s)",
                *self._line(cause),
                request.digest,
                request.model,
                self._holder,
                request.at_most_micro_usd,
                self._lease,
            )
            if mine:
                return None
            if budget is not None:
                return DayFull(budget, taken, request.at_most_micro_usd)
            if answer is not None:
                return Answer.model_validate(answer)
            await asyncio.sleep(LOOKED_AT_EVERY)

    async def reused(self, cause: Event, answer: Answer) -> bool:
        """Counts what a recorded answer would have cost again: once, however often it is used. Whether it was now."""
        (first,) = await self._call("select ledger.reused(%s, %s, %s, %s)", *self._line(cause), answer.cost_micro_usd)
        return bool(first)

    async def record(self, cause: Event, answer: Answer) -> Answer:
        """Keeps the answer and what it cost; gives the one that holds, which is the first that was recorded."""
        document = AsJson(answer.model_dump(mode="json"))
        (held,) = await self._call(
            "select ledger.record(%s, %s, %s, %s, %s, %s)",
            *self._line(cause),
            self._holder,
            document,
            answer.cost_micro_usd,
        )
        return answer if held is None else Answer.model_validate(held)

    async def release(self, cause: Event) -> None:
        """Gives a reservation back: the call was not made, or nothing came of it."""
        await self._hold(cause, None)

    async def lose(self, cause: Event) -> None:
        """Gives a reservation up as uncertain: the call was made, and what came of it is not known."""
        await self._call("select ledger.lose(%s, %s, %s, %s)", *self._line(cause), self._holder)

    async def set_budget(self, tenant: str, day_micro_usd: int | None, sequence: int) -> None:
        """What the tenant's calls may cost a day from now on, as the fact of that sequence says; an older one counts
        for nothing."""
        await self._call("select ledger.set_budget(%s, %s, %s)", tenant, day_micro_usd, sequence)

    async def days(self, tenant: str, since: date) -> list[Day]:
        """What the tenant's calls cost a day (UTC), of the days with calls. A call counts on the day on which it was
        last reserved."""
        async with self._pool.connection() as connection:
            found = await connection.execute("select * from ledger.days(%s, %s)", (tenant, since))
            return [Day(tenant, *row) for row in await found.fetchall()]

    @asynccontextmanager
    async def holding(self, cause: Event) -> AsyncIterator[None]:
        """Keeps a reservation ours for as long as the call takes."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease / 3)
                with suppress(Away):
                    await self._hold(cause, self._lease)

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()

    async def _hold(self, cause: Event, lease: float | None) -> None:
        await self._call("select ledger.hold(%s, %s, %s, %s, %s)", *self._line(cause), self._holder, lease)

    @staticmethod
    def _line(cause: Event) -> tuple[str, str, str]:
        return cause.key.tenant, cause.key.run, cause.id

    async def _call(self, query: str, *parameters: Any) -> tuple[Any, ...]:
        """One statement. Raises Away where the database cannot be reached."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(query, parameters)).fetchone()
        return row or (None,)
