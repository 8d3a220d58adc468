"""What the desk keeps: tickets, and the views of runs for the lists. Every reader names its tenant."""

import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, get_args

from contracts.facts import Status
from psycopg_pool import AsyncConnectionPool

from gateway import histories, tickets
from gateway.database import Connection, one, work_for
from gateway.histories import History
from gateway.tickets import KeyTaken, NewTicket, TicketView
from gateway.view_rows import position_in
from gateway.views import RunView, holds_something, waits_since, without_texts

# More changes than this since the last overview: all that waits is read anew.
MOST_CHANGED = 1000


@dataclass(frozen=True, slots=True)
class Overview:
    """How many tickets stand in each status, and all runs that wait for a person, the longest wait first and without
    their texts, with all facts up to `position`."""

    position: int
    counts: dict[str, int]
    held: list[RunView]


class Desk:
    def __init__(self, pool: AsyncConnectionPool[Connection]) -> None:
        self._pool = pool

    @asynccontextmanager
    async def of(self, tenant: str) -> AsyncIterator[Connection]:
        """A transaction that sees one tenant's rows and no other's."""
        async with self._pool.connection() as connection, connection.transaction():
            await work_for(connection, tenant)
            yield connection

    async def tickets(
        self,
        tenant: str,
        statuses: Sequence[str] = tickets.TICKET_STATUSES,
        before: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[TicketView]:
        """The newest first; `before` is the opening time and reference of the last one of the page before."""
        async with self.of(tenant) as connection:
            return await tickets.newest(connection, statuses, before, limit)

    async def ticket(self, tenant: str, reference: str) -> TicketView | None:
        async with self.of(tenant) as connection:
            return await tickets.named(connection, reference)

    async def open_ticket(
        self, tenant: str, new: NewTicket, key: str | None = None, digest: str | None = None
    ) -> TicketView | KeyTaken:
        """The ticket under its own reference or the tenant's next; the one that the same request opened before."""
        async with self.of(tenant) as connection:
            return await tickets.opened(connection, tenant, new, key, digest)

    # Views of runs

    async def runs(
        self,
        tenant: str,
        statuses: Sequence[str] | None = None,
        before: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[RunView]:
        """The newest first."""
        return await self._views(
            tenant,
            "where (%s::text[] is null or status = any(%s))"
            " and (%s::timestamptz is null or (started_at, run) < (%s, %s))"
            " order by started_at desc, run desc limit %s",
            [statuses and list(statuses)] * 2 + [*((before[0], *before) if before else (None, None, None)), limit],
        )

    async def runs_of(self, tenant: str, ticket: str) -> list[RunView]:
        """A ticket's runs, the first one first."""
        return await self._views(tenant, "where ticket = %s order by n", [ticket])

    async def held(self, tenant: str) -> list[RunView]:
        """All runs that wait for a person, the one that has waited longest first."""
        return await self._views(tenant, "where status = 'awaiting_approval' order by held_at, run", [])

    async def waiting(self, tenant: str, runs: Sequence[str]) -> list[RunView]:
        """Those of these runs that still wait for a person, the one that has waited longest first."""
        found = await self._views(tenant, "where run = any(%s)", [list(runs)])
        return sorted(filter(holds_something, found), key=waits_since)

    async def held_lately(self, tenant: str, since: datetime, limit: int = 50) -> list[RunView]:
        """Runs that a person was asked about since then and that wait no longer, the latest first."""
        return await self._views(
            tenant,
            "where held_at > %s and status <> 'awaiting_approval' order by sequence desc limit %s",
            [since, limit],
        )

    async def changed(self, tenant: str, after: int, limit: int = 200) -> list[RunView]:
        """Runs that have a fact behind sequence `after`, the one that changed last at the end."""
        return await self._views(tenant, "where sequence > %s order by sequence limit %s", [after, limit])

    async def histories(self, tenant: str, views: Sequence[RunView]) -> dict[str, History]:
        """By run: what its customer's other runs come to, all of them."""
        if not views:
            return {}
        async with self.of(tenant) as connection:
            return await histories.of_runs(connection, views)

    async def run_started_by(self, tenant: str, events: Iterable[str]) -> str | None:
        """The run whose first event has one of these ids."""
        async with self.of(tenant) as connection:
            cursor = await connection.execute("select run from desk.runs where started_event = any(%s)", [list(events)])
            row = await cursor.fetchone()
            return row["run"] if row else None

    async def runs_so_far(self, tenant: str, ticket: str) -> int:
        """How many runs of the ticket the views know. The log may know of more."""
        async with self.of(tenant) as connection:
            cursor = await connection.execute(
                "select coalesce(max(n), 0) as n from desk.runs where ticket = %s", [ticket]
            )
            return int((await one(cursor))["n"])

    async def run_count(self, tenant: str, statuses: Sequence[str] | None = None) -> int:
        """How many runs there are of these statuses."""
        async with self.of(tenant) as connection:
            of_them = "select count(*) as n from desk.runs where status = any(%s)"
            cursor = await connection.execute(of_them, [list(statuses or get_args(Status))])
            return int((await one(cursor))["n"])

    async def counts(self, tenant: str) -> dict[str, int]:
        """How many tickets stand in each status."""
        async with self.of(tenant) as connection:
            cursor = await connection.execute("select status, count(*) as n from desk.tickets group by status")
            return {row["status"]: row["n"] for row in await cursor.fetchall()}

    async def overview(self, tenant: str, known: Overview | None = None) -> Overview:
        """`known` is the last one, where there is one: then only the runs that have changed since are read."""
        # The position first: what comes meanwhile may be in the rest already, but nothing before it is missing.
        position = await self.position()
        return Overview(position, await self.counts(tenant), await self._waiting(tenant, known, position))

    async def _waiting(self, tenant: str, known: Overview | None, position: int) -> list[RunView]:
        if known is not None and known.position <= position:
            changed = await self.changed(tenant, known.position, MOST_CHANGED + 1)
            if len(changed) <= MOST_CHANGED:
                waits = {view.run: view for view in known.held} | {view.run: without_texts(view) for view in changed}
                return sorted((view for view in waits.values() if view.holds), key=waits_since)
        return sorted(map(without_texts, filter(holds_something, await self.held(tenant))), key=waits_since)

    async def _views(self, tenant: str, condition: LiteralString, values: list[Any]) -> list[RunView]:
        async with self.of(tenant) as connection:
            query = "select state::text as state from desk.runs " + condition  # noqa: S608 - literals of this file
            cursor = await connection.execute(query, values)
            return [RunView.model_validate_json(row["state"]) for row in await cursor.fetchall()]

    # What customers are called where they may not be named

    async def pseudonym_key(self, tenant: str) -> bytes:
        """The tenant's own, made when it is first asked for."""
        async with self.of(tenant) as connection:
            await connection.execute(
                "insert into desk.pseudonym_keys (tenant, key) values (%s, %s) on conflict do nothing",
                [tenant, secrets.token_bytes(32)],
            )
            cursor = await connection.execute("select key from desk.pseudonym_keys")
            return bytes((await one(cursor))["key"])

    # The place in the log that the views have reached

    async def position(self) -> int:
        async with self._pool.connection() as connection:
            return await position_in(connection)

    async def forget_views(self) -> None:
        """Empties the views, and sends whoever keeps them back to the start of the log."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("update desk.projection set position = 0 where name = 'runs'")
            await connection.execute("truncate desk.runs")
