"""Which tools change something, as the tools service says it: what a stop can name."""

from contracts.asks import CATALOGUE
from contracts.bus import Bus
from contracts.errors import Outage

from gateway.profiles import Tenants


class Writes:
    """Whoever stops something does not wait long: where the tools service is away, what it said last counts."""

    def __init__(self, bus: Bus, tenants: Tenants) -> None:
        self._bus = bus
        self._tenants = tenants
        self._known: dict[str, list[str]] = {}

    async def of(self, tenant: str) -> list[str]:
        """By name. Raises Outage where the tools service is away and was never asked before."""
        toolsets = sorted({profile.toolset for profile in self._tenants.of(tenant).profiles.values()})
        return sorted({tool for toolset in toolsets for tool in await self._in(tenant, toolset)})

    async def _in(self, tenant: str, toolset: str) -> list[str]:
        try:
            answer = await self._bus.ask(CATALOGUE, {"tenant": tenant, "toolset": toolset}, timeout=2)
            if answer.get("status", 200) >= 500:
                raise Outage(f"The tools service could not say what it offers: {answer.get('title')}")
        except Outage:
            if toolset not in self._known:
                raise
        else:
            self._known[toolset] = [tool["name"] for tool in answer.get("tools", ()) if tool["kind"] == "write"]
        return self._known[toolset]
