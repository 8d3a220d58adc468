"""The stop switch: which calls are not done for now, whoever approved them."""

import asyncio
from collections.abc import Iterable

import structlog
from contracts import following
from contracts.events import Event
from contracts.kill_switch import Stop
from contracts.log import JetStreamLog
from contracts.tenant_facts import StopLifted, StopSet
from psycopg import AsyncConnection
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

logger = structlog.get_logger()


class StopSwitch:
    """Keeps the tenants' stops where executions find them.

    Each is heard several times: the durable consumer hands it to one process, which may hang or die with it in hand, so
    every process reads the tenants' lines besides.
    """

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[DictRow]]) -> None:
        self._pool = pool

    async def hear(self, event: Event) -> None:
        """A stop that was set or lifted. Once this returns, nothing that it covers is done any more."""
        match event.fact:
            case StopSet() as stop:
                stop_id, statement, values = stop.stop_id, _SET, [stop.tool, stop.above_minor, event.sequence]
            case StopLifted() as lifted:
                stop_id, statement, values = lifted.stop_id, _LIFT, [event.sequence]
            case _:
                return
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("select set_config('turngate.tenant', %s, true)", [event.key.tenant])
            if await (await connection.execute(_KNOWN, [stop_id, event.sequence])).fetchone():
                return  # whoever kept it has waited for the executions: nobody waits for them twice
            await connection.execute(_ALONE, [event.key.tenant])
            await connection.execute(statement, [event.key.tenant, stop_id, *values])

    async def catch_up(self, line: JetStreamLog) -> int:
        """Hears every stop that the tenants' lines hold by now, an outage waited out; the sequence of the last fact."""
        said: list[Event] = []
        after = await following.catch_up(line, lambda event: said.append(event) if _of_stops(event) else None)
        for event in said:
            await self.hear(event)
        return after

    async def follow(self, line: JetStreamLog, after: int) -> None:
        """Hears the stops behind `after` as they come, for ever: one that cannot be kept now is tried until it is."""
        while True:
            try:
                async for event in line.follow(after):
                    await self.hear(event)
                    after = event.sequence
            except Exception:
                logger.exception("stops are not followed", after=after)
            await asyncio.sleep(1)


def standing(rows: Iterable[DictRow]) -> list[Stop]:
    """The stops that `STANDING` answers."""
    return [Stop(row["tool"], row["above_minor"]) for row in rows]


def _of_stops(event: Event) -> bool:
    return isinstance(event.fact, StopSet | StopLifted)


# Executions hold the same key together, from before they look until they are committed: a stop waits for those.
_KEY = "hashtextextended('turngate.stops ' || %s, 0)"
_ALONE = f"select pg_advisory_xact_lock({_KEY})".encode()
TOGETHER = f"select pg_advisory_xact_lock_shared({_KEY})".encode()
STANDING = b"select tool, above_minor from shop.stops where set_in > lifted_in order by set_in"
_KNOWN = b"select 1 from shop.stops where stop_id = %s and greatest(set_in, lifted_in) >= %s"
_SET = b"""
insert into shop.stops as known (tenant, stop_id, tool, above_minor, set_in) values (%s, %s, %s, %s, %s)
on conflict (tenant, stop_id) do update
set tool = excluded.tool, above_minor = excluded.above_minor, set_in = excluded.set_in
where excluded.set_in > known.set_in
"""
_LIFT = b"""
insert into shop.stops as known (tenant, stop_id, lifted_in) values (%s, %s, %s)
on conflict (tenant, stop_id) do update set lifted_in = greatest(known.lifted_in, excluded.lifted_in)
"""
