"""What people set for their tenant: stops and the policy. Approvals checks who they are and says it; see there."""

import hashlib
from pathlib import Path

from contracts.bus import Bus
from contracts.errors import Outage
from contracts.identity import Principal
from contracts.parts import Json
from contracts.subjects import token
from contracts.tenant_facts import PolicyPromoted
from pydantic import BaseModel, ConfigDict, Field

from gateway.problems import Problem
from gateway.tenant_facts import Stop, TenantFacts, TenantView
from gateway.writes import Writes

LONGEST_PACK = 64_000


class SetStop(BaseModel):
    """Which writes are stopped: those of one tool, those that move more than an amount, both, or, with neither, all."""

    model_config = ConfigDict(extra="forbid")

    tool: str | None = Field(None, min_length=1, max_length=64)
    above_minor: int | None = Field(None, ge=0, le=2**53 - 1)
    reason: str = Field(min_length=1, max_length=2000)


class LiftStop(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: str = Field("", max_length=2000)


class Promote(BaseModel):
    """A policy pack as text, and what its promoter was shown of its effect."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=LONGEST_PACK)
    report: Json = {}


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
        return await self._say(asker, bearer, "stop-set", key, {"stop_id": f"stop-{named}", **wanted.model_dump()})

    async def lift_stop(self, asker: Principal, bearer: str, stop_id: str, wanted: LiftStop, key: str) -> Json:
        return await self._say(asker, bearer, "stop-lifted", key, {"stop_id": stop_id, **wanted.model_dump()})

    async def promote(self, asker: Principal, bearer: str, wanted: Promote, key: str) -> Json:
        return await self._say(asker, bearer, "policy-promoted", key, wanted.model_dump())

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
                "Nothing was stopped: no tool of that name changes something here. "
                f"There is: {', '.join(writes) or 'none'}. Name no tool to stop every one.",
            )

    async def _say(self, asker: Principal, bearer: str, what: str, key: str, fields: Json) -> Json:
        asked = {"token": bearer, "say": what, "request": key, **fields}
        try:
            answer = await self._bus.ask("ask.approvals.tenant", asked, timeout=3)
        except Outage:
            answer = await self._bus.ask("ask.approvals.tenant", asked)  # the same request is the same fact
        if answer["status"] != 200:
            raise Problem(answer["status"], answer.get("title", "Refused"), answer.get("detail", ""))
        await self._facts.reach(asker.tenant)
        event: Json = answer["event"]
        return event
