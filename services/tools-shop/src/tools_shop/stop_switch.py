"""The stop switch: which calls are not done for now, whoever approved them."""

from dataclasses import dataclass

from contracts.events import Event
from contracts.facts import Effect, StopLifted, StopSet
from contracts.money import Money
from psycopg import AsyncConnection
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop that stands: of one tool or (None) of all, and of what moves more than `above_minor` or of anything."""

    tool: str | None
    above_minor: int | None

    def covers(self, tool: str, effect: Effect, *, harmless: bool) -> bool:
        """Whether it stops this tool's effect. What is `harmless` is stopped by its name only."""
        if self.tool != tool and (self.tool is not None or harmless):
            return False
        return self.above_minor is None or (effect.amount_minor or 0) > self.above_minor

    def text(self, currency: str) -> str:
        what = self.tool or "Everything that changes something"
        above = "" if self.above_minor is None else f" above {Money(self.above_minor, currency).text()}"
        return f"{what}{above} is stopped for now."


class StopSwitch:
    """Keeps the tenants' stops where executions find them."""

    def __init__(self, pool: AsyncConnectionPool[AsyncConnection[DictRow]]) -> None:
        self._pool = pool

    async def hear(self, event: Event) -> None:
        """A stop that was set or lifted. Once this returns, nothing that it covers is done any more."""
        match event.fact:
            case StopSet() as stop:
                statement, values = _SET, [stop.stop_id, stop.tool, stop.above_minor, event.sequence]
            case StopLifted() as lifted:
                statement, values = _LIFT, [lifted.stop_id, event.sequence]
            case _:
                return
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("select set_config('turngate.tenant', %s, true)", [event.key.tenant])
            await connection.execute(_ALONE, [event.key.tenant])
            await connection.execute(statement, [event.key.tenant, *values])


# Executions hold the same key together, from before they look until they are committed: a stop waits for those.
_KEY = "hashtextextended('turngate.stops ' || %s, 0)"
_ALONE = f"select pg_advisory_xact_lock({_KEY})".encode()
TOGETHER = f"select pg_advisory_xact_lock_shared({_KEY})".encode()
STANDING = b"select tool, above_minor from shop.stops where set_in > lifted_in order by set_in"
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
