"""What is set for a whole tenant: stops, the policy in force, the budget. A fold of the tenant's own line of facts.

The lines are short, so each process folds all of them when it starts and follows them from there: nothing is stored
that would have to be made anew.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from contracts import kill_switch
from contracts.events import Event
from contracts.following import catch_up, keep_up
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Pack, Person, Text
from contracts.subjects import TenantKey
from contracts.tenant_facts import BudgetSet, PolicyPromoted, StopLifted, StopSet
from pydantic import BaseModel


class Stop(BaseModel):
    """While it stands, no write of this tool (None: of any) is done that takes what its customer is refunded that day
    above this (None: or anything at all)."""

    stop_id: str
    tool: str | None
    above_minor: int | None
    reason: Text
    by: Person
    at: datetime

    @property
    def switch(self) -> kill_switch.Stop:
        return kill_switch.Stop(self.tool, self.above_minor, self.stop_id, self.reason, self.by.subject)


class Promoted(BaseModel):
    """The policy pack in force, and who put it there. Its text is in the fact."""

    pack: Pack
    by: Person
    at: datetime


class TenantView(BaseModel):
    sequence: int = 0
    stops: tuple[Stop, ...] = ()
    policy: Promoted | None = None
    day_micro_usd: int | None = None


def evolve(view: TenantView, event: Event) -> TenantView:
    """The view with one more fact. One that is in it already changes nothing."""
    if event.sequence <= view.sequence:
        return view
    changes: dict[str, object] = {"sequence": event.sequence}
    match event.fact:
        case StopSet() as fact:
            others = [stop for stop in view.stops if stop.stop_id != fact.stop_id]
            changes["stops"] = (*others, Stop(**dict(fact), at=event.time))
        case StopLifted() as fact:
            changes["stops"] = tuple(stop for stop in view.stops if stop.stop_id != fact.stop_id)
        case PolicyPromoted() as fact:
            changes["policy"] = Promoted(pack=fact.pack, by=fact.by, at=event.time)
        case BudgetSet() as fact:
            changes["day_micro_usd"] = fact.day_micro_usd
    return view.model_copy(update=changes)


def fold(events: Iterable[Event]) -> TenantView:
    view = TenantView()
    for event in events:
        view = evolve(view, event)
    return view


class TenantFacts:
    def __init__(self, log: JetStreamLog) -> None:
        self._last = 0  # the sequence up to which the log was folded at the start
        self._log = log
        self._views: dict[str, TenantView] = {}
        self._moved = asyncio.Event()

    async def load(self) -> None:
        """Folds what the log holds by now."""
        self._last = await catch_up(self._log, self._take)

    async def run(self) -> None:
        """Follows the log for ever."""
        await keep_up(self._log, self._take, self._last)

    def of(self, tenant: str) -> TenantView:
        return self._views.get(tenant, TenantView())

    async def history(self, tenant: str) -> History:
        """Everything that was set for the tenant, as the log has it now."""
        return await self._log.read(TenantKey(tenant))

    async def reach(self, tenant: str, within: float = 2.0) -> TenantView:
        """The view with all that the log holds now, or after a moment the one there is."""
        head = await self._log.head(TenantKey(tenant))
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while head and self.of(tenant).sequence < head.sequence:
                    self._moved.clear()
                    await self._moved.wait()
        return self.of(tenant)

    def _take(self, event: Event) -> None:
        self._views[event.key.tenant] = evolve(self.of(event.key.tenant), event)
        self._moved.set()
