"""The audit rows of a tenant, read from the log: pages with the newest first, or all of them with the oldest first."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.events import Event
from contracts.identity import Principal
from contracts.log import JetStreamLog
from contracts.parts import Customer
from contracts.subjects import RunKey

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
# Facts of all tenants that are read at a time on the way back; more of them where few are the tenant's.
WINDOW = 512
LARGEST_WINDOW = 8192
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
        """The newest first. Raises a 404 for a run that is not there, a 400 for a cursor that is not ours."""
        reading, place = _Reading(asker), paging.read(cursor)
        if wanted.run is not None:
            return await self._of_run(reading, wanted, wanted.run, place, limit)
        found, reached = await self._before_place(reading, wanted, place, limit)
        return Page(await self._shown(reading, found), paging.write(reached) if reached else None)

    async def pages(self, asker: Principal, wanted: Wanted, limit: int = paging.LARGEST) -> AsyncIterator[list[Row]]:
        """All of it, the oldest first: each fact is read once, and a run's facts after what led to them."""
        reading = _Reading(asker)
        if wanted.run is not None:
            yield await self._shown(reading, await self._all_of_run(reading, wanted, wanted.run))
            return
        place: Place | None = (paging.EARLIEST, str(await self._first(wanted.since)))
        while place is not None:
            found, place = await self._behind(reading, wanted, place, limit)
            yield await self._shown(reading, found)

    async def _of_run(self, reading: "_Reading", wanted: Wanted, run: str, place: Place | None, limit: int) -> Page:
        before = _sequence(place) if place else None
        rows = reversed(await self._all_of_run(reading, wanted, run))
        found = [one for one in rows if before is None or one[0].sequence < before]
        page = found[:limit]
        while len(page) < len(found) and found[len(page)][0].sequence == page[-1][0].sequence:
            page.append(found[len(page)])  # of a fact all rows are on one page
        more = paging.write((paging.EARLIEST, str(page[-1][0].sequence))) if len(page) < len(found) else None
        return Page(await self._shown(reading, page), more)

    async def _all_of_run(self, reading: "_Reading", wanted: Wanted, run: str) -> list[Found]:
        rows, customer = of_run((await self._runs.history(reading.asker.tenant, run)).events)
        return [(row, customer) for row in rows if wanted.takes(row)]

    async def _before_place(
        self, reading: "_Reading", wanted: Wanted, place: Place | None, limit: int
    ) -> tuple[list[Found], Place | None]:
        """The rows before a place (None: all), the newest first, and how far was looked; None where that is all."""
        first, width = await self._first(wanted.since), WINDOW
        # No further than the log goes, whatever a cursor names: what is read goes back from there in windows.
        end = min(_sequence(place), self._feed.last + 1) if place else await self._end(wanted.until)
        until = place[0] if place else paging.LATEST
        after = max(first, (self._feed.last + 1 if end is None else end) - width)
        found: list[Found] = []
        reached: Place | None = None
        looked = 0
        while reached is None:
            window = await self._window(reading, after, end)
            for event, rows in reversed(window):
                found += [one for one in reversed(rows) if wanted.takes(one[0])]
                looked += 1
                if len(found) >= limit or looked >= LOOKS_THROUGH:
                    reached = min(event.time, until), str(event.sequence)
                    break
            if after <= first:
                break
            if len(window) < width // 2:  # the other tenants' facts are between ours
                width = min(width * 2, LARGEST_WINDOW)
            end, after = after + 1, max(first, after - width)
        own = await self._own(reading, wanted, reached[0] if reached else paging.EARLIEST, until)
        return sorted([*reversed(found), *own], key=lambda one: one[0].at)[::-1], reached

    async def _window(self, reading: "_Reading", after: int, end: int | None) -> list[tuple[Event, list[Found]]]:
        """The facts behind a sequence and before another, in order, each with its rows."""
        window: list[tuple[Event, list[Found]]] = []
        cases = _Cases()
        async for event in self._log.follow(after, reading.asker.tenant, live=False):
            if end is not None and event.sequence >= end:
                break
            case = await self._case(cases, event)
            window.append((event, [(row, case.customer) for row in await self._rows(case, event)]))
        return window

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
            case = await self._case(reading.cases, event)
            found += [(row, case.customer) for row in await self._rows(case, event) if wanted.takes(row)]
            looked += 1
            if len(found) >= limit or looked >= LOOKS_THROUGH:
                reached = max(event.time, place[0]), str(event.sequence)
                break
        own = await self._own(reading, wanted, place[0], reached[0] if reached else paging.LATEST)
        return sorted([*found, *own], key=lambda one: one[0].at), reached

    async def _case(self, cases: "_Cases", event: Event) -> Case:
        """The run of a fact, up to before it. The log is asked for the beginnings that have not been met only."""
        if event.ordinal == 0:
            return cases.keep(event.key, Case())
        if (known := cases.of(event.key)) is not None:
            return known
        case = Case()
        for earlier in (await self._runs.history(event.key.tenant, event.key.run)).events:
            if earlier.ordinal < event.ordinal:
                case.see(earlier)
        return cases.keep(event.key, case)

    async def _rows(self, case: Case, event: Event) -> list[Row]:
        if not changes_something(event):
            return case.see(event)
        later = (await self._runs.history(event.key.tenant, event.key.run)).events
        return case.see(event, came_to(later, event))

    async def _own(self, reading: "_Reading", wanted: Wanted, since: datetime, until: datetime) -> list[Found]:
        """What was set for the tenant from one time on, before another."""
        if reading.own is None:
            reading.own = of_tenant((await self._facts.history(reading.asker.tenant)).events)
        return [(row, None) for row in reading.own if since <= row.at < until and wanted.takes(row)]

    async def _end(self, until: datetime | None) -> int | None:
        """A sequence before which all facts until then are; None where that is the log's end."""
        if until is None:
            return None
        last = await self._first(until + 2 * SKEW)
        return last + 1 if last < self._feed.last else None

    async def _first(self, since: datetime | None) -> int:
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
        self.cases = _Cases()


class _Cases:
    """Runs as far as they were read, one behind the other."""

    def __init__(self) -> None:
        self._cases: OrderedDict[RunKey, Case] = OrderedDict()

    def of(self, key: RunKey) -> Case | None:
        return self._cases.get(key)

    def keep(self, key: RunKey, case: Case) -> Case:
        """The latest to begin are kept: what is met again of an older run is rare, and read anew then."""
        self._cases[key] = case
        while len(self._cases) > CASES_IN_MEMORY:
            self._cases.popitem(last=False)
        return case


def _sequence(place: Place) -> int:
    if not (place[1].isascii() and place[1].isdigit() and len(place[1]) <= 18):
        raise Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.")
    return int(place[1])
