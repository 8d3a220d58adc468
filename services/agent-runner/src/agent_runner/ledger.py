"""The spend ledger: what is reserved for a model call, and its answer, kept so that none is paid for twice."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TypeVar

import psycopg
import structlog
from contracts.events import Event
from contracts.settings import ACK_WAIT
from contracts.subjects import RunKey
from psycopg.types.json import Json as AsJson
from psycopg_pool import AsyncConnectionPool

from agent_runner.answer import Answer
from agent_runner.endings import DayFull, RunFull, TooOften
from agent_runner.request import Request
from agent_runner.spending import Day

logger = structlog.get_logger()
T = TypeVar("T")
Pool = AsyncConnectionPool[psycopg.AsyncConnection[tuple[Any, ...]]]

LOOKED_AT_EVERY = 0.25
TRIED_EVERY = 0.5  # seconds, while the database is away
MOST_UNKNOWN = 5  # requests of one step that may have to be paid, and brought no answer
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


@dataclass(frozen=True, slots=True)
class Tries:
    """How often a call was made, by whichever process; how many of these requests may have to be paid though no answer
    came of them; since when, and for how many seconds, an answer has been waited for."""

    requests: int
    unknown: int
    since: datetime
    seconds: float


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

    async def reserve(
        self, cause: Event, request: Request, spent: int = 0, limit: int | None = None
    ) -> Answer | DayFull | RunFull | TooOften | None:
        """None: the call is ours to make. Else the answer that was recorded for it, or why it is not made: the tenant's
        day has no room for it, or its run has none (`limit`, of which the log tells that `spent` is spent); what calls
        have cost, or may yet have cost, counts. Or it was made too often, and no answer came.

        While another living process makes the same call, waits for its answer; once that process has gone, takes over.
        """
        while True:
            mine, answer, budget, taken, of_run, unknown = await self._call(
                "select mine, answer, budget_micro_usd, taken_micro_usd, run_taken_micro_usd, unknown"
                " from ledger.reserve(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                *self._line(cause),
                request.digest,
                request.model,
                self._holder,
                request.at_most_micro_usd,
                self._lease,
                limit,
                spent,
                MOST_UNKNOWN,
            )
            if mine:
                return None
            if unknown is not None:
                return TooOften(unknown)
            if of_run is not None:
                return RunFull(of_run)
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

    async def release(self, cause: Event) -> Tries:
        """Gives a reservation back: the call was not made, or nothing came of it."""
        return await self._give_back(cause, is_unknown=False)

    async def lose(self, cause: Event) -> Tries:
        """Gives a reservation up as uncertain: the call was made, and what came of it is not known."""
        return await self._give_back(cause, is_unknown=True)

    async def tries(self, cause: Event) -> Tries:
        """What has become so far of a call that was reserved."""
        return Tries(*await self._call("select * from ledger.tries(%s, %s, %s)", *self._line(cause)))

    async def uncertain(self, key: RunKey, spent: int, limit: int) -> int:
        """What a run's calls may have cost beside the `spent` that its log tells of, in micro-dollars; no more than
        what is left of its limit, as no more than that was ever reserved."""
        (taken,) = await self._call("select ledger.taken_of_run(%s, %s, %s)", key.tenant, key.run, spent)
        return max(0, min(int(taken), limit) - spent)

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

    async def _give_back(self, cause: Event, *, is_unknown: bool) -> Tries:
        line = (*self._line(cause), self._holder, is_unknown)
        return Tries(*await self._call("select * from ledger.give_back(%s, %s, %s, %s, %s)", *line))

    async def _hold(self, cause: Event, lease: float) -> None:
        await self._call("select ledger.hold(%s, %s, %s, %s, %s)", *self._line(cause), self._holder, lease)

    @staticmethod
    def _line(cause: Event) -> tuple[str, str, str]:
        return cause.key.tenant, cause.key.run, cause.id

    async def _call(self, query: str, *parameters: Any) -> tuple[Any, ...]:
        """One statement. Raises Away where the database cannot be reached."""
        async with self._pool.connection() as connection:
            row = await (await connection.execute(query, parameters)).fetchone()
        return row or (None,)
