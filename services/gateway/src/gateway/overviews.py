"""What a tenant's tickets and holds come to, read once for all who watch them."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from gateway.desk import Desk, Overview
from gateway.ticket_changes import TicketChanges


@dataclass(frozen=True, slots=True)
class Known:
    """An overview, and the revision of the tickets that are at least in it."""

    overview: Overview
    tickets: int


class Overviews:
    def __init__(self, desk: Desk, changes: TicketChanges) -> None:
        self._desk = desk
        self._changes = changes
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known: dict[str, Known] = {}

    async def fresh(self, tenant: str) -> Known:
        """As it is now."""
        async with self._reading[tenant]:
            return await self._read(tenant)

    async def behind(self, tenant: str, sequence: int) -> Known:
        """One that has the facts up to `sequence` in it, as far as the views have them, and every ticket that was heard
        of: the last that anyone read, if that is one."""
        async with self._reading[tenant]:
            known = self._known.get(tenant)
            if known and known.overview.position >= sequence and known.tickets == self._changes.revision(tenant):
                return known
            return await self._read(tenant)

    async def _read(self, tenant: str) -> Known:
        revision = self._changes.revision(tenant)
        before = self._known.get(tenant)
        overview = await self._desk.overview(tenant, before.overview if before else None)
        self._known[tenant] = known = Known(overview, revision)
        return known
