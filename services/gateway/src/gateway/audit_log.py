"""The audit rows of a tenant, a page at a time, read from the log: from a time on, of a run, of a person."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from contracts.identity import Principal
from contracts.log import JetStreamLog
from contracts.parts import Customer

from gateway import audit, paging
from gateway.audit import Row
from gateway.desk import Desk
from gateway.feed import Feed
from gateway.paging import Place
from gateway.problems import Problem
from gateway.profiles import Tenants
from gateway.redaction import Redaction
from gateway.runs import Runs
from gateway.shown import sees_customers
from gateway.tenant_facts import TenantFacts

# Facts that one page looks through at most, so that a rare name costs many short requests and not a long one.
LOOKS_THROUGH = 5000
# Clocks of services differ by less than this; the log's order is its own.
SKEW = timedelta(minutes=1)
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
Found = tuple[Row, Customer | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: of one run, done (or released) by one person, from a time on, before another."""

    run: str | None = None
    person: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def takes(self, row: Row) -> bool:
        if self.person and self.person != row.who and self.person not in row.released_by:
            return False
        return (self.since is None or row.at >= self.since) and (self.until is None or row.at < self.until)


@dataclass(frozen=True, slots=True)
class Page:
    """`next` is the cursor of the page behind this one, None at the end. A page may be empty and have one."""

    rows: list[Row]
    next: str | None


class AuditLog:
    def __init__(
        self, log: JetStreamLog, feed: Feed, runs: Runs, facts: TenantFacts, desk: Desk, tenants: Tenants
    ) -> None:
        self._log = log
        self._feed = feed
        self._runs = runs
        self._facts = facts
        self._desk = desk
        self._tenants = tenants

    async def page(self, asker: Principal, wanted: Wanted, cursor: str | None, limit: int) -> Page:
        """Raises a 404 for a run that is not there, a 400 for a cursor that is not ours."""
        if wanted.run is not None:
            return await self._of_run(asker, wanted, wanted.run, cursor, limit)
        place = paging.read(cursor) or (BEGINNING, str(await self._before(wanted.since)))
        found, reached = await self._behind(asker.tenant, wanted, place, limit)
        rows = await self._shown(asker, found)
        return Page(rows, paging.write(reached) if reached else None)

    async def pages(self, asker: Principal, wanted: Wanted) -> AsyncIterator[list[Row]]:
        """All of it."""
        cursor: str | None = None
        while True:
            page = await self.page(asker, wanted, cursor, paging.LARGEST)
            yield page.rows
            cursor = page.next
            if cursor is None:
                return

    async def _of_run(self, asker: Principal, wanted: Wanted, run: str, cursor: str | None, limit: int) -> Page:
        rows, customer = audit.of_run((await self._runs.history(asker.tenant, run)).events)
        place = paging.read(cursor)
        start = _sequence(place) if place else 0
        found: list[Found] = [(row, customer) for row in rows if wanted.takes(row)]
        more = paging.write((BEGINNING, str(start + limit))) if start + limit < len(found) else None
        return Page(await self._shown(asker, found[start : start + limit]), more)

    async def _behind(self, tenant: str, wanted: Wanted, place: Place, limit: int) -> tuple[list[Found], Place | None]:
        """The rows behind a place, and how far was looked; None where that is all."""
        known: dict[str, tuple[dict[int, list[Row]], Customer | None]] = {}
        found: list[Found] = []
        reached: Place | None = None
        looked = 0
        async for event in self._log.follow(_sequence(place), tenant, live=False):
            if wanted.until is not None and event.time >= wanted.until + SKEW:
                break
            if event.key.run not in known:
                rows, customer = audit.of_run((await self._runs.history(tenant, event.key.run)).events)
                known[event.key.run] = _by_sequence(rows), customer
            by_sequence, customer = known[event.key.run]
            found += [(row, customer) for row in by_sequence.get(event.sequence, ()) if wanted.takes(row)]
            looked += 1
            if len(found) >= limit or looked >= LOOKS_THROUGH:
                reached = max(event.time, place[0]), str(event.sequence)
                break
        own = await self._own(tenant, wanted, place[0], reached[0] if reached else None)
        return sorted([*found, *own], key=lambda one: one[0].at), reached

    async def _own(self, tenant: str, wanted: Wanted, after: datetime, to: datetime | None) -> list[Found]:
        """What was set for the tenant behind one time, up to another."""
        rows = audit.of_tenant((await self._facts.history(tenant)).events)
        return [(row, None) for row in rows if after < row.at and (to is None or row.at <= to) and wanted.takes(row)]

    async def _before(self, since: datetime | None) -> int:
        """A sequence behind which all facts since then are: times rise with it, but for the skew of clocks."""
        if since is None:
            return 0
        low, high = 0, self._feed.last + 1
        while high - low > 1:
            middle = (low + high) // 2
            event = await self._log.at(middle)  # None: it has left the log by its age
            early = event is None or event.time < since - SKEW
            low, high = (middle, high) if early else (low, middle)
        return low

    async def _shown(self, asker: Principal, found: Iterable[Found]) -> list[Row]:
        """As the asker may see them."""
        found = list(found)
        if sees_customers(asker) or not found:
            return [row for row, _ in found]
        key = await self._desk.pseudonym_key(asker.tenant)
        redaction = Redaction(key, self._tenants.of(asker.tenant).currency)

        def redact() -> list[Row]:
            return [audit.redacted(row, redaction, customer) for row, customer in found]

        return await asyncio.to_thread(redact)


def _sequence(place: Place) -> int:
    if not (place[1].isascii() and place[1].isdigit() and len(place[1]) <= 18):
        raise Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.")
    return int(place[1])


def _by_sequence(rows: list[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.sequence, []).append(row)
    return found
