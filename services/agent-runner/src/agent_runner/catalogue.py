"""The tools that an agent may call: asked of the tools service, remembered for a while."""

import asyncio
import json
import time

from contracts.asks import CATALOGUE
from contracts.bus import Bus
from contracts.errors import Outage

from agent_runner.request import Tools

FRESH_FOR = 30.0  # seconds


class NoToolset(LookupError):
    """The tools service does not offer this toolset to this tenant."""


class Catalogue:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[tuple[str, str], tuple[float, Tools]] = {}
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}

    async def tools(self, tenant: str, toolset: str) -> Tools:
        """Raises NoToolset; Outage where nobody answers and nothing is remembered."""
        which = (tenant, toolset)
        async with self._asking.setdefault(which, asyncio.Lock()):
            known = self._known.get(which)
            if known and time.monotonic() - known[0] < FRESH_FOR:
                return known[1]
            try:
                tools = await self._ask(tenant, toolset)
            except Outage:
                if known is None:
                    raise
                tools = known[1]
            self._known[which] = (time.monotonic(), tools)
            return tools

    async def _ask(self, tenant: str, toolset: str) -> Tools:
        answer = await self._bus.ask(CATALOGUE, {"tenant": tenant, "toolset": toolset}, timeout=5)
        if answer.get("status", 200) >= 500:
            raise Outage(f"The tools service could not say what it offers: {answer.get('title')}")
        if "tools" not in answer:
            raise NoToolset(f"There is no toolset {toolset!r} for the tenant {tenant!r}.")
        offered = [{name: tool[name] for name in ("name", "description", "input_schema")} for tool in answer["tools"]]
        return Tools(json.dumps(offered, ensure_ascii=False, separators=(",", ":")).encode(), answer["digest"])
