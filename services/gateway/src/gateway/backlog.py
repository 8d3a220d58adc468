"""What lies behind in the log, read once for all who catch up at the same time."""

import asyncio
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass

from contracts.events import Event
from contracts.log import JetStreamLog

PAGE_SIZE = 256
# Pages that are kept of a tenant while somebody catches up. Who is slower than that reads again.
MAX_PAGES = 8
MAX_PLACES = 4096


@dataclass(frozen=True, slots=True)
class Page:
    """All facts behind `after`, up to `reached`."""

    after: int
    reached: int
    events: tuple[Event, ...]


class Backlog:
    """Pages are kept for as long as somebody catches up with that tenant, and dropped when a customer is erased."""

    def __init__(self, log: JetStreamLog) -> None:
        self._log = log
        self._pages: defaultdict[str | None, deque[Page]] = defaultdict(lambda: deque(maxlen=MAX_PAGES))
        self._reading: defaultdict[str | None, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._readers: Counter[str | None] = Counter()
        self._erasures = 0
        self._tenants: OrderedDict[int, str] = OrderedDict()
        self._looking = asyncio.Lock()

    async def behind(self, after: int, tenant: str | None, last: Callable[[], int]) -> AsyncGenerator[list[Event]]:
        """The facts behind `after` in order, until all up to `last` are there."""
        with self._reader(tenant):
            while after < last():
                page = await self._page(after, tenant, last)
                fresh = [event for event in page.events if event.sequence > after]
                after = page.reached
                if fresh:
                    yield fresh

    async def tenant_at(self, sequence: int) -> str | None:
        """Whose fact stands at a place of the log; None for nobody's. A place has one fact for ever."""
        async with self._looking:
            if sequence not in self._tenants:
                event = await self._log.at(sequence)
                if event is None:
                    return None
                self._tenants[sequence] = event.key.tenant
                while len(self._tenants) > MAX_PLACES:
                    self._tenants.popitem(last=False)
            return self._tenants[sequence]

    def forget(self) -> None:
        """Drops what was read before a customer was erased."""
        self._erasures += 1
        self._pages.clear()

    @contextmanager
    def _reader(self, tenant: str | None) -> Iterator[None]:
        self._readers[tenant] += 1
        try:
            yield
        finally:
            self._readers[tenant] -= 1
            if not self._readers[tenant]:
                del self._readers[tenant]
                self._pages.pop(tenant, None)

    async def _page(self, after: int, tenant: str | None, last: Callable[[], int]) -> Page:
        async with self._reading[tenant]:
            for page in self._pages[tenant]:
                if page.after <= after < page.reached:
                    return page
            erasures = self._erasures
            # From a round place on, so that those who are a few facts apart share it.
            page = await self._read(after - after % PAGE_SIZE, tenant, last())
            if erasures == self._erasures:
                self._pages[tenant].append(page)
            return page

    async def _read(self, after: int, tenant: str | None, last: int) -> Page:
        events: list[Event] = []
        async with aclosing(self._log.follow(after, tenant, live=False)) as following:
            async for event in following:
                events.append(event)
                if len(events) >= PAGE_SIZE:
                    return Page(after, event.sequence, tuple(events))
        return Page(after, max([last, *(event.sequence for event in events[-1:])]), tuple(events))
