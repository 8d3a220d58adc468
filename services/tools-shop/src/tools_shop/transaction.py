"""The one transaction of a turn that writes: its locks in one order, or none, and what stood in the rows before it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

from contracts.kill_switch import Stop
from contracts.parts import Json
from psycopg import AsyncConnection
from psycopg.rows import DictRow

from tools_shop.caller import Caller
from tools_shop.stop_switch import STANDING, TOGETHER, standing

Connection = AsyncConnection[DictRow]

LOCK_TIMEOUT = "3s"
Locks = Literal["all", "customer", "none"]


@dataclass(frozen=True, slots=True, order=True)
class Lock:
    """A row that a write changes."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class Table:
    """How rows of one table are locked, and what of them a digest covers.

    Both statements take the keys and the caller's e-mail address as it is compared; `state` answers rows of `key` and
    `state`.
    """

    lock: str
    state: str


@dataclass(frozen=True, slots=True)
class Tables:
    """What a toolset's writes change: the customer behind the e-mail address (answering `id`), then rows by table."""

    customer: str
    rows: Mapping[str, Table]


@dataclass(slots=True)
class Transaction:
    """An open transaction in which nothing changes but by itself: all is locked, or one snapshot is looked at.

    `states` are the rows as they were before the turn's first call.
    """

    connection: Connection
    tenant: Mapping[str, Any]
    customer: str | None
    states: Mapping[Lock, Json]
    stops: Sequence[Stop] = ()
    released_by: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def today(self) -> date:
        """The day (UTC) that totals are counted over."""
        day: date = self.tenant["today"]
        return day

    async def row(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> DictRow | None:
        """The first row of a statement's answer."""
        cursor = await self.connection.execute(sql.encode(), parameters)
        return await cursor.fetchone()


class UnknownTenant(Exception):
    """The tenant has no shop here: set-up has not seeded it."""


async def begin(
    connection: Connection, tables: Tables, caller: Caller, rows: Iterable[Lock], *, counts: bool, locks: Locks = "all"
) -> Transaction:
    """Takes every lock that the turn needs, then reads what stands, in one round trip.

    What is rolled back in the end looks at one snapshot instead, and waits for nobody ("none"). Where it writes several
    rows, others who write the same ones may have begun at the other end, so it waits for its customer's ("customer").
    """
    by_table: dict[str, list[str]] = {}
    for row in sorted(set(rows)):
        by_table.setdefault(row.table, []).append(row.key)
    async with connection.pipeline():
        if locks != "all":
            await connection.execute(_SNAPSHOT)
        await bind(connection, caller.tenant)
        await connection.execute("select set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT])
        if locks != "none":
            await connection.execute(f"{tables.customer} for no key update".encode(), [caller.email])
        if locks == "all":
            await _lock(connection, tables, caller, by_table, counts=counts)
        customer = await connection.execute(tables.customer.encode(), [caller.email])
        stops = await connection.execute(STANDING)
        tenant = await connection.execute(_TENANT)
        states = {
            table: await connection.execute(tables.rows[table].state.encode(), [keys, caller.email])
            for table, keys in by_table.items()
        }
    settings = await tenant.fetchone()
    if settings is None:
        raise UnknownTenant(f"Tenant {caller.tenant} has no shop here. Seed it, then retry the dead letter.")
    owner = await customer.fetchone()
    return Transaction(
        connection,
        settings,
        owner["id"] if owner else None,
        {Lock(table, row["key"]): row["state"] for table, found in states.items() for row in await found.fetchall()},
        standing(await stops.fetchall()),
    )


async def _lock(
    connection: Connection, tables: Tables, caller: Caller, by_table: Mapping[str, list[str]], *, counts: bool
) -> None:
    """Behind the customer: rows by table and key, then the tenant's counter of the day, then the stops. Whoever locks
    in this order deadlocks with nobody. Stops come last, so that who sets one waits for nobody who waits.

    Nobody changes keys here, so a quote may refer to what is locked.
    """
    for table, keys in by_table.items():
        await connection.execute(tables.rows[table].lock.encode(), [keys, caller.email])
    if counts:
        await connection.execute(_COUNTER, [caller.tenant])
        await connection.execute(_LOCK_COUNTER)
    await connection.execute(TOGETHER, [caller.tenant])


async def bind(connection: Connection, tenant: str) -> None:
    """Row-level security shows this transaction the tenant's rows, and no others."""
    await connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])


_SNAPSHOT = "set transaction isolation level repeatable read"
_COUNTER = """
insert into shop.day_counters (tenant, day) values (%s, (now() at time zone 'utc')::date) on conflict do nothing
"""
_LOCK_COUNTER = "select 1 from shop.day_counters where day = (now() at time zone 'utc')::date for no key update"
_TENANT = """
select currency, floor_minor, refund_window_days, (now() at time zone 'utc')::date as today from shop.tenants
"""
