"""The tools that an agent may call: asked of the tools service, remembered for a while."""

import asyncio
import json
import time

from contracts.asks import CATALOGUE
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.facts import RunStarted

from agent_runner.request import Tools

FRESH_FOR = 30.0  # seconds
Which = tuple[str, str, str | None, str | None]  # tenant, toolset, currency, locale


class NoToolset(LookupError):
    """The tools service does not offer this toolset to this tenant."""


class Catalogue:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._known: dict[Which, tuple[float, Tools]] = {}
        self._asking: dict[Which, asyncio.Lock] = {}

    async def tools(self, tenant: str, started: RunStarted) -> Tools:
        """The tools of a run, described in its own currency. Raises NoToolset; Outage where nobody answers and nothing
        is remembered."""
        which = (tenant, started.toolset, started.currency, started.locale)
        async with self._asking.setdefault(which, asyncio.Lock()):
            known = self._known.get(which)
            if known and time.monotonic() - known[0] < FRESH_FOR:
                return known[1]
            try:
                tools = await self._ask(which)
            except Outage:
                if known is None:
                    raise
                tools = known[1]
            self._known[which] = (time.monotonic(), tools)
            return tools

    async def _ask(self, which: Which) -> Tools:
        tenant, toolset, currency, locale = which
        asked = {"tenant": tenant, "toolset": toolset, "currency": currency, "locale": locale}
        answer = await self._bus.ask(CATALOGUE, asked, timeout=5)
        if answer.get("status", 200) >= 500:
            raise Outage(f"The tools service could not say what it offers: {answer.get('title')}")
        if "tools" not in answer:
            raise NoToolset(f"There is no toolset {toolset!r} for the tenant {tenant!r}.")
        offered = [{name: tool[name] for name in ("name", "description", "input_schema")} for tool in answer["tools"]]
        return Tools(json.dumps(offered, ensure_ascii=False, separators=(",", ":")).encode(), answer["digest"])
