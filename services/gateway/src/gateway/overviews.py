"""What a tenant's tickets and holds come to, read once for all who watch them."""

import asyncio
from collections import defaultdict

from gateway.desk import Desk, Overview


class Overviews:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._reading: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known: dict[str, Overview] = {}

    async def fresh(self, tenant: str) -> Overview:
        """As it is now."""
        async with self._reading[tenant]:
            return await self._read(tenant)

    async def behind(self, tenant: str, sequence: int) -> Overview:
        """One that has the facts up to `sequence` in it, as far as the views have them: the last that anyone read, if
        that is one."""
        async with self._reading[tenant]:
            known = self._known.get(tenant)
            return known if known and known.position >= sequence else await self._read(tenant)

    async def _read(self, tenant: str) -> Overview:
        self._known[tenant] = overview = await self._desk.overview(tenant)
        return overview
