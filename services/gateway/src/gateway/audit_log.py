"""The audit rows of a tenant, a page at a time, read from the log: from a time on, of a run, of a person."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.events import Event
from contracts.identity import Principal
from contracts.log import JetStreamLog
from contracts.parts import Customer

from gateway import audit, paging
from gateway.audit import Row
from gateway.audit_run import Case, came_to, changes_something, of_run
from gateway.audit_tenant import of_tenant
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
# Runs that one reading remembers; each is what its rows need of its last turn.
CASES_IN_MEMORY = 5000
Found = tuple[Row, Customer | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which rows: of one run, done (or released) by one person, from a time on, before another."""

    run: str | None = None
    person: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def __post_init__(self) -> None:
        for name in ("since", "until"):
            if (time := getattr(self, name)) is not None:
                object.__setattr__(self, name, paging.within_range(time))

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
        return await self._page(_Reading(asker), wanted, cursor, limit)

    async def pages(self, asker: Principal, wanted: Wanted, limit: int = paging.LARGEST) -> AsyncIterator[list[Row]]:
        """All of it, each fact read once."""
        reading, cursor = _Reading(asker), None
        while True:
            page = await self._page(reading, wanted, cursor, limit)
            yield page.rows
            cursor = page.next
            if cursor is None:
                return

    async def _page(self, reading: "_Reading", wanted: Wanted, cursor: str | None, limit: int) -> Page:
        if wanted.run is not None:
            return await self._of_run(reading, wanted, wanted.run, cursor, limit)
        place = paging.read(cursor) or (paging.EARLIEST, str(await self._before(wanted.since)))
        found, reached = await self._behind(reading, wanted, place, limit)
        return Page(await self._shown(reading, found), paging.write(reached) if reached else None)

    async def _of_run(self, reading: "_Reading", wanted: Wanted, run: str, cursor: str | None, limit: int) -> Page:
        rows, customer = of_run((await self._runs.history(reading.asker.tenant, run)).events)
        place = paging.read(cursor)
        start = _sequence(place) if place else 0
        found: list[Found] = [(row, customer) for row in rows if wanted.takes(row)]
        more = paging.write((paging.EARLIEST, str(start + limit))) if start + limit < len(found) else None
        return Page(await self._shown(reading, found[start : start + limit]), more)

    async def _behind(
        self, reading: "_Reading", wanted: Wanted, place: Place, limit: int
    ) -> tuple[list[Found], Place | None]:
        """The rows behind a place, and how far was looked; None where that is all."""
        found: list[Found] = []
        reached: Place | None = None
        looked = 0
        async for event in self._log.follow(_sequence(place), reading.asker.tenant, live=False):
            if wanted.until is not None and event.time >= wanted.until + SKEW:
                break
            case = await self._case(reading, event)
            found += [(row, case.customer) for row in await self._rows(case, event) if wanted.takes(row)]
            looked += 1
            if len(found) >= limit or looked >= LOOKS_THROUGH:
                reached = max(event.time, place[0]), str(event.sequence)
                break
        own = await self._own(reading, wanted, place[0], reached[0] if reached else None)
        return sorted([*found, *own], key=lambda one: one[0].at), reached

    async def _case(self, reading: "_Reading", event: Event) -> Case:
        """The run of a fact, up to before it. The log is asked for the beginnings that the reading has not met only."""
        if event.ordinal == 0:
            return reading.keep(event.key.run, Case())
        if (known := reading.case(event.key.run)) is not None:
            return known
        case = Case()
        for earlier in (await self._runs.history(reading.asker.tenant, event.key.run)).events:
            if earlier.ordinal < event.ordinal:
                case.see(earlier)
        return reading.keep(event.key.run, case)

    async def _rows(self, case: Case, event: Event) -> list[Row]:
        if not changes_something(event):
            return case.see(event)
        later = (await self._runs.history(event.key.tenant, event.key.run)).events
        return case.see(event, came_to(later, event))

    async def _own(self, reading: "_Reading", wanted: Wanted, after: datetime, to: datetime | None) -> list[Found]:
        """What was set for the tenant behind one time, up to another."""
        if reading.own is None:
            reading.own = of_tenant((await self._facts.history(reading.asker.tenant)).events)
        return [
            (row, None) for row in reading.own if after < row.at and (to is None or row.at <= to) and wanted.takes(row)
        ]

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

    async def _shown(self, reading: "_Reading", found: list[Found]) -> list[Row]:
        """As the asker may see them."""
        if sees_customers(reading.asker) or not found:
            return [audit.cut(row) for row, _ in found]
        redaction = reading.redaction or await self._redaction(reading.asker.tenant)
        reading.redaction = redaction
        return await asyncio.to_thread(lambda: [audit.redacted(row, redaction, customer) for row, customer in found])

    async def _redaction(self, tenant: str) -> Redaction:
        return Redaction(await self._desk.pseudonym_key(tenant), self._tenants.of(tenant).currency)


class _Reading:
    """What one reading of the audit, over all its pages, knows of what it has met."""

    def __init__(self, asker: Principal) -> None:
        self.asker = asker
        self.own: list[Row] | None = None
        self.redaction: Redaction | None = None
        self._cases: OrderedDict[str, Case] = OrderedDict()

    def case(self, run: str) -> Case | None:
        return self._cases.get(run)

    def keep(self, run: str, case: Case) -> Case:
        """The latest to begin are kept: what is met again of an older run is rare, and read anew then."""
        self._cases[run] = case
        while len(self._cases) > CASES_IN_MEMORY:
            self._cases.popitem(last=False)
        return case


def _sequence(place: Place) -> int:
    if not (place[1].isascii() and place[1].isdigit() and len(place[1]) <= 18):
        raise Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.")
    return int(place[1])
