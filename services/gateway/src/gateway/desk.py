"""The desk's own tables: tickets, and the views of runs for the lists. Every reader and writer names its tenant."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from contracts.parts import Customer
from contracts.personal import ERASED
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from gateway.views import TICKET_STATUS, RunView

TICKET_STATUSES = ("open", "in_progress", "awaiting_approval", "awaiting_customer", "resolved", "escalated")
_TICKET = """
    select t.reference as ticket, t.status, t.channel, t.subject, t.body, t.customer_email, t.customer_name,
           t.customer_id, t.opened_at, t.latest_run as run, r.state::text as state
      from desk.tickets t left join desk.runs r on r.tenant = t.tenant and r.run = t.latest_run
"""
Connection = AsyncConnection[dict[str, Any]]


class TicketView(BaseModel):
    """A ticket as lists show it, with the view of its latest run."""

    ticket: str
    status: str
    channel: str
    subject: str
    body: str
    customer: Customer
    opened_at: datetime
    run: str | None = None
    latest: RunView | None = None

    @property
    def erased(self) -> bool:
        """Whether its customer was erased: nobody can be answered any more."""
        return self.customer.email == ERASED


class NewTicket(BaseModel):
    """What is known of a ticket before it has a reference (or with the one that it brings along)."""

    reference: str | None = None
    channel: str = "ticket"
    customer: Customer
    subject: str
    body: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key was used before, for another request."""


@dataclass(frozen=True, slots=True)
class Overview:
    """How many tickets stand in each status, and which runs wait for a person, with all facts up to `position`."""

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

    # Tickets

    async def tickets(
        self,
        tenant: str,
        statuses: Sequence[str] = TICKET_STATUSES,
        before: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> list[TicketView]:
        """The newest first; `before` is the opening time and reference of the last one of the page before."""
        async with self.of(tenant) as connection:
            cursor = await connection.execute(
                _TICKET
                + " where t.status = any(%s) and (%s::timestamptz is null or (t.opened_at, t.reference) < (%s, %s))"
                " order by t.opened_at desc, t.reference desc limit %s",
                [list(statuses), *((before[0], *before) if before else (None, None, None)), limit],
            )
            return [_ticket(row) for row in await cursor.fetchall()]

    async def ticket(self, tenant: str, reference: str) -> TicketView | None:
        async with self.of(tenant) as connection:
            cursor = await connection.execute(_TICKET + " where t.reference = %s", [reference])
            row = await cursor.fetchone()
            return _ticket(row) if row else None

    async def open_ticket(
        self, tenant: str, new: NewTicket, key: str | None = None, digest: str | None = None
    ) -> TicketView | KeyTaken:
        """The ticket under its own reference or the tenant's next; the one that the same request opened before."""
        async with self.of(tenant) as connection:
            await connection.execute("select pg_advisory_xact_lock(hashtext('desk.tickets'), hashtext(%s))", [tenant])
            if key is not None:
                cursor = await connection.execute(
                    "select reference, request_digest from desk.tickets where request_key = %s", [key]
                )
                if known := await cursor.fetchone():
                    if known["request_digest"] != digest:
                        return KeyTaken()
                    cursor = await connection.execute(_TICKET + " where t.reference = %s", [known["reference"]])
                    return _ticket(await _one(cursor))
            reference = new.reference or await next_reference(connection)
            await connection.execute(
                "insert into desk.tickets (tenant, reference, channel, customer_email, customer_name, customer_id,"
                " subject, body, opened_at, request_key, request_digest)"
                " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (tenant, reference) do nothing",
                [
                    tenant,
                    reference,
                    new.channel,
                    new.customer.email,
                    new.customer.name,
                    new.customer.id,
                    new.subject,
                    new.body,
                    new.opened_at,
                    key,
                    digest,
                ],
            )
            cursor = await connection.execute(_TICKET + " where t.reference = %s", [reference])
            return _ticket(await _one(cursor))

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

    async def held(self, tenant: str, limit: int = 200) -> list[RunView]:
        """The runs that wait for a person, the one that has waited longest first."""
        return await self._views(tenant, "where status = 'awaiting_approval' order by held_at, run limit %s", [limit])

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

    async def of_customers(self, tenant: str, emails: Iterable[str], each: int = 20) -> dict[str, list[RunView]]:
        """Each customer's latest runs, the newest first; none of who was erased, for all of those have one name."""
        found: dict[str, list[RunView]] = {email: [] for email in emails}
        latest = await self._views(
            tenant,
            "where run in (select latest.run from unnest(%s::text[]) as customer (email) cross join lateral"
            " (select run from desk.runs where customer_email = email order by started_at desc limit %s) as latest)"
            " order by started_at desc",
            [[email for email in found if email != ERASED], each],
        )
        for view in latest:
            found[view.customer.email].append(view)
        return found

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
            return int((await _one(cursor))["n"])

    async def counts(self, tenant: str) -> dict[str, int]:
        """How many tickets stand in each status."""
        async with self.of(tenant) as connection:
            cursor = await connection.execute("select status, count(*) as n from desk.tickets group by status")
            return {row["status"]: row["n"] for row in await cursor.fetchall()}

    async def overview(self, tenant: str) -> Overview:
        # The position first: what comes meanwhile may be in the rest already, but nothing before it is missing.
        position = await self.position()
        return Overview(position, await self.counts(tenant), await self.held(tenant))

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
            return bytes((await _one(cursor))["key"])

    # The place in the log that the views have reached

    async def position(self) -> int:
        async with self._pool.connection() as connection:
            return await position_in(connection)

    async def forget_views(self) -> None:
        """Empties the views, and sends whoever keeps them back to the start of the log."""
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("update desk.projection set position = 0 where name = 'runs'")
            await connection.execute("truncate desk.runs")


async def work_for(connection: Connection, tenant: str) -> None:
    """From here to the end of the transaction, this tenant's rows are the only ones there are."""
    await connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])


async def position_in(connection: Connection) -> int:
    cursor = await connection.execute("select position from desk.projection where name = 'runs'")
    return int((await _one(cursor))["position"])


async def move_position(connection: Connection, before: int, after: int) -> bool:
    """Whether the position was still `before`; if so it is `after` now."""
    cursor = await connection.execute(
        "update desk.projection set position = %s where name = 'runs' and position = %s", [after, before]
    )
    return cursor.rowcount == 1


async def stored(connection: Connection, runs: Iterable[str]) -> dict[str, RunView]:
    """The views of these runs of the transaction's tenant, as far as there are any."""
    cursor = await connection.execute(
        "select run, state::text as state from desk.runs where run = any(%s)", [list(runs)]
    )
    return {row["run"]: RunView.model_validate_json(row["state"]) for row in await cursor.fetchall()}


async def store(connection: Connection, views: Iterable[RunView]) -> None:
    """Keeps the views, all of the transaction's tenant, and brings their tickets' status in line."""
    views = list(views)
    await connection.cursor().executemany(
        "insert into desk.runs (tenant, run, ticket, n, status, customer_email, started_event, started_at, held_at,"
        " sequence, state) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (tenant, run) do update set"
        " status = excluded.status, held_at = excluded.held_at, sequence = excluded.sequence, state = excluded.state",
        [
            (
                view.tenant,
                view.run,
                view.ticket,
                number(view.run),
                view.status,
                view.customer.email,
                view.started_event,
                view.started_at,
                view.held[0].held_at if view.held else None,
                view.sequence,
                view.model_dump_json(),
            )
            for view in views
        ],
    )
    await connection.cursor().executemany(
        "insert into desk.tickets (tenant, reference, channel, customer_email, customer_name, customer_id, subject,"
        " body, opened_at, status, latest_run, latest_n) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict (tenant, reference) do update set status = excluded.status, latest_run = excluded.latest_run,"
        " latest_n = excluded.latest_n where excluded.latest_n >= tickets.latest_n and"
        " (excluded.status, excluded.latest_run) is distinct from (tickets.status, tickets.latest_run)",
        [
            (
                view.tenant,
                view.ticket,
                view.channel,
                view.customer.email,
                view.customer.name,
                view.customer.id,
                view.subject,
                view.body,
                view.started_at,
                TICKET_STATUS[view.status],
                view.run,
                number(view.run),
            )
            for view in views
        ],
    )


def number(run: str) -> int:
    """Which run of its ticket: the last part of `TCK-2004-1`."""
    last = run.rpartition("-")[2]
    return int(last) if last.isdigit() else 0


async def next_reference(connection: Connection) -> str:
    """One more than the highest number so far, found at the top of an index. Whoever asks holds the tenant's lock."""
    cursor = await connection.execute(
        r"select substring(reference from '^TCK-(\d{1,9})$')::integer as n from desk.tickets"
        r" order by substring(reference from '^TCK-(\d{1,9})$')::integer desc nulls last limit 1"
    )
    row = await cursor.fetchone()
    return f"TCK-{1 + ((row and row['n']) or 1000)}"


async def _one(cursor: Any) -> dict[str, Any]:
    row: dict[str, Any] | None = await cursor.fetchone()
    if row is None:
        raise LookupError("The row that was just written, or that migrations bring, is not there.")
    return row


def _ticket(row: dict[str, Any]) -> TicketView:
    customer = Customer(email=row["customer_email"], name=row["customer_name"], id=row["customer_id"])
    latest = RunView.model_validate_json(row["state"]) if row["state"] else None
    return TicketView(**{k: row[k] for k in TicketView.model_fields if k in row}, customer=customer, latest=latest)


def open_pool(
    dsn: str, size: int = 10, configure: Callable[[Connection], Awaitable[None]] | None = None
) -> AsyncConnectionPool[Connection]:
    """Connections of the gateway's role. Not open yet. One that the database has dropped is never handed out."""
    return AsyncConnectionPool(
        dsn,
        min_size=1,
        max_size=size,
        open=False,
        check=AsyncConnectionPool.check_connection,
        kwargs={"row_factory": dict_row},
        configure=configure,
    )
