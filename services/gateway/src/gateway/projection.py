"""Keeps the views of runs in step with the log: in one process at a time, several facts a transaction."""

import asyncio
from collections import OrderedDict, defaultdict
from contextlib import aclosing, suppress

import psycopg
import structlog
from contracts.errors import CorruptLog, Outage
from contracts.events import Event
from contracts.stops import stop
from contracts.subjects import RunKey
from psycopg import AsyncConnection
from psycopg.rows import dict_row

from gateway.database import Connection, work_for
from gateway.desk import Desk
from gateway.feed import Feed, with_pauses
from gateway.folding import evolve
from gateway.metrics import POSITION
from gateway.view_rows import move_position, position_in, store, stored
from gateway.views import RunView

logger = structlog.get_logger()

_LOCK = 0x6465736B  # "desk": whoever holds this advisory lock writes the views
_RUNS_IN_MEMORY = 2000
# Seconds in which facts gather behind a transaction, unless someone waits for them: most of its cost is its own.
_GATHERS = 0.2


class Rewound(Exception):
    """Somebody has set the position back: the views are to be made anew from there."""


class Projection:
    """`position` is the last sequence in the views, as far as this process knows."""

    def __init__(self, dsn: str, desk: Desk, feed: Feed) -> None:
        self.position = 0
        self._dsn = dsn
        self._desk = desk
        self._feed = feed
        self._leads = False
        self._moved = asyncio.Event()
        self._awaited = asyncio.Event()
        self._views: OrderedDict[RunKey, RunView] = OrderedDict()

    async def run(self) -> None:
        """Writes the views whenever no other process does, for ever."""
        while True:
            try:
                await self._try_to_lead()
            except (psycopg.OperationalError, Outage, CorruptLog) as error:
                logger.warning("projection", error=repr(error), position=self.position)
            except Rewound:
                logger.info("views are made anew")
                continue
            except Exception:
                logger.exception("projection failed", position=self.position)
            await asyncio.sleep(1)

    async def reach(self, sequence: int, within: float = 2.0) -> None:
        """Returns once the views hold everything up to `sequence`, or after `within` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while (self.position if self._leads else await self._desk.position()) < sequence:
                    self._moved.clear()
                    self._awaited.set()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._moved.wait(), timeout=0.05)

    async def _try_to_lead(self) -> None:
        # The lock and the writes share one connection: who has lost the one cannot do the other.
        connection = await AsyncConnection.connect(self._dsn, autocommit=True, row_factory=dict_row)
        async with connection:
            cursor = await connection.execute("select pg_try_advisory_lock(%s) as got", [_LOCK])
            row = await cursor.fetchone()
            if not row or not row["got"]:
                return
            self._views.clear()
            self.position = await position_in(connection)
            self._leads = True
            try:
                async with aclosing(with_pauses(self._feed.batches(self.position), every=1)) as batches:
                    async for batch in batches:
                        if batch is not None:
                            await self.take(connection, batch)
                            await self._gather()
                        elif await position_in(connection) != self.position:
                            raise Rewound
            finally:
                self._leads = False

    async def _gather(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._awaited.wait(), _GATHERS)
        self._awaited.clear()

    async def take(self, connection: Connection, batch: list[Event]) -> None:
        """Folds the events into their runs' views and moves the position, in one transaction."""
        by_tenant: dict[str, list[Event]] = defaultdict(list)
        for event in batch:
            by_tenant[event.key.tenant].append(event)
        async with connection.transaction():
            if not await move_position(connection, self.position, batch[-1].sequence):
                raise Rewound
            for tenant, events in by_tenant.items():
                await work_for(connection, tenant)
                await keep(connection, list((await self._fold(connection, events)).values()))
            stop("gateway.before-commit")
        stop("gateway.after-commit")
        self.position = batch[-1].sequence
        POSITION.set(self.position)
        self._moved.set()

    async def _fold(self, connection: Connection, events: list[Event]) -> dict[RunKey, RunView]:
        unknown = {event.key.run for event in events if event.ordinal > 0 and event.key not in self._views}
        known = await stored(connection, unknown) if unknown else {}
        folded: dict[RunKey, RunView] = {}
        for event in events:
            before = folded.get(event.key) or self._views.get(event.key) or known.get(event.key.run)
            try:
                after = evolve(before, event)
            except Exception:  # one run that cannot be folded must not stop the others' views
                logger.exception("fold failed", tenant=event.key.tenant, run=event.key.run, sequence=event.sequence)
                continue
            if after is not None and after is not before:
                folded[event.key] = after
        for key, view in folded.items():
            self._views[key] = view
            self._views.move_to_end(key)
        while len(self._views) > _RUNS_IN_MEMORY:
            self._views.popitem(last=False)
        return folded


async def keep(connection: Connection, views: list[RunView]) -> None:
    """Stores the views; one that no row can hold is passed over, and must not stop the others."""
    try:
        async with connection.transaction():
            await store(connection, views)
    except psycopg.DataError:
        if len(views) > 1:
            for view in views:
                await keep(connection, [view])
        else:
            [view] = views
            logger.exception("view not stored", tenant=view.tenant, run=view.run, sequence=view.sequence)
