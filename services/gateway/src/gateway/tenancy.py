"""What people set for their tenant: stops, the policy, the budget. Approvals checks who they are and says it."""

import hashlib
from pathlib import Path

from contracts.asks import (
    OF_TENANT,
    AskLiftStop,
    AskPromote,
    AskSetBudget,
    AskSetStop,
    LiftStop,
    Promote,
    SayOfTenant,
    SetBudget,
    SetStop,
)
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.identity import Principal
from contracts.parts import Json
from contracts.subjects import token
from contracts.tenant_facts import PolicyPromoted
from contracts.validation import repeated
from pydantic import SecretStr

from gateway.asking import ask
from gateway.problems import Problem, not_found
from gateway.tenant_facts import Stop, TenantFacts, TenantView
from gateway.writes import Writes

LONGEST_STOP_ID = 64


class Tenancy:
    def __init__(self, bus: Bus, facts: TenantFacts, writes: Writes, tenants_dir: Path) -> None:
        self._bus = bus
        self._facts = facts
        self._writes = writes
        self._folder = tenants_dir

    async def stops(self, tenant: str) -> tuple[Stop, ...]:
        return (await self._facts.reach(tenant)).stops

    async def stoppable(self, tenant: str) -> list[str]:
        """The tools that a stop can name; none where the tools service cannot be asked."""
        try:
            return await self._writes.of(tenant)
        except Outage:
            return []

    async def set_stop(self, asker: Principal, bearer: str, wanted: SetStop, key: str) -> Json:
        """The recorded fact. The same request sent again is the same stop. Raises a 422 for a tool that is none, or
        that changes nothing: its stop would stop nothing. A stop of everything waits for no other service."""
        if wanted.tool is not None:
            await self._is_a_write(asker.tenant, wanted.tool)
        named = hashlib.sha256(f"{asker.issuer} {asker.subject} {key}".encode()).hexdigest()[:12]
        return await self._say(
            asker, AskSetStop(token=SecretStr(bearer), request=key, stop_id=f"stop-{named}", **dict(wanted))
        )

    async def lift_stop(self, asker: Principal, bearer: str, stop_id: str, wanted: LiftStop, key: str) -> Json:
        if len(stop_id) > LONGEST_STOP_ID:
            raise not_found("stop")
        return await self._say(
            asker, AskLiftStop(token=SecretStr(bearer), request=key, stop_id=stop_id, **dict(wanted))
        )

    async def promote(self, asker: Principal, bearer: str, wanted: Promote, key: str) -> Json:
        return await self._say(asker, AskPromote(token=SecretStr(bearer), request=key, **dict(wanted)))

    async def set_budget(self, asker: Principal, bearer: str, wanted: SetBudget, key: str) -> Json:
        return await self._say(asker, AskSetBudget(token=SecretStr(bearer), request=key, **dict(wanted)))

    async def budget(self, tenant: str) -> int | None:
        """What its model calls may cost a day (UTC), in micro-dollars; None: no limit."""
        return (await self._facts.reach(tenant)).day_micro_usd

    async def policy(self, tenant: str) -> tuple[str, TenantView]:
        """The text of the pack in force: the one promoted last, else the one that the tenant was set up with."""
        view = await self._facts.reach(tenant)
        for event in reversed((await self._facts.history(tenant)).events):
            if isinstance(event.fact, PolicyPromoted):
                return event.fact.text, view
        file = self._folder / token(tenant) / "policy.yaml"
        return (file.read_text() if file.is_file() else ""), view

    async def _is_a_write(self, tenant: str, tool: str) -> None:
        try:
            writes = await self._writes.of(tenant)
        except Outage as error:
            raise Problem(
                503,
                "Not now",
                "Nothing was stopped: the tools service does not answer, so nobody can say whether there is such a "
                "tool. Name no tool to stop every one that changes something, or try again in a few seconds.",
                {"Retry-After": "2"},
            ) from error
        if tool not in writes:
            raise Problem(
                422,
                "No such tool to stop",
                f"Nothing was stopped: no tool {repeated(tool)} changes something here. "
                f"There is: {', '.join(writes) or 'none'}. Name no tool to stop every one.",
            )

    async def _say(self, asker: Principal, asked: SayOfTenant) -> Json:
        """The recorded fact: the same request is the same fact."""
        event: Json = (await ask(self._bus, OF_TENANT, asked))["event"]
        await self._facts.reach(asker.tenant)
        return event
