"""What the routes reach the system through; put together in `app`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from contracts.bus import Bus
from fastapi import Depends, Request

from gateway.access import Streams
from gateway.audit_log import AuditLog
from gateway.desk import Desk
from gateway.feed import Feed
from gateway.limits import Limits
from gateway.model_waits import ModelWaits
from gateway.obstacles import Circumstances
from gateway.overviews import Overviews
from gateway.profiles import Tenants
from gateway.projection import Projection
from gateway.request_keys import RequestKeys
from gateway.runs import Runs
from gateway.sessions import Sessions
from gateway.settings import Settings
from gateway.sign_in import SignIn
from gateway.tenancy import Tenancy
from gateway.tenant_facts import TenantFacts
from gateway.ticket_changes import TicketChanges
from gateway.tokens import Tokens


@dataclass
class Gateway:
    settings: Settings
    bus: Bus
    tokens: Tokens
    sign_in: SignIn
    tenants: Tenants
    desk: Desk
    feed: Feed
    projection: Projection
    runs: Runs
    tenant_facts: TenantFacts
    ticket_changes: TicketChanges
    tenancy: Tenancy
    audit: AuditLog
    sessions: Sessions
    request_keys: RequestKeys
    model_waits: ModelWaits
    connected: Callable[[], bool]
    streams: Streams = field(init=False)
    limits: Limits = field(init=False)
    overviews: Overviews = field(init=False)

    def __post_init__(self) -> None:
        self.streams = Streams(self.settings.max_streams_per_person)
        self.limits = Limits(self.settings.max_calls_per_minute, self.settings.max_unauthenticated_calls_per_minute)
        self.overviews = Overviews(self.desk, self.ticket_changes)

    def circumstances(self, tenant: str) -> Circumstances:
        """What stands in the way of approvals of this tenant's."""
        stops = tuple(stop.switch for stop in self.tenant_facts.of(tenant).stops)
        known = self.settings.known_people.get(tenant)
        return Circumstances(stops, tuple(known) if known is not None else None)

    async def lists_are_current(self) -> None:
        """Returns once the lists show all that this process has seen or said, or after a moment."""
        await self.projection.reach(max(self.feed.last, self.runs.written))


def _of(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


Ports = Annotated[Gateway, Depends(_of)]
