"""Where the gateway's parts meet."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import structlog
import uvicorn
from contracts.bus import Bus
from contracts.identity import Verifier
from contracts.log import JetStreamLog
from contracts.parts import Json
from contracts.subjects import TENANTS, parse

from gateway.audit_log import AuditLog
from gateway.database import open_pool
from gateway.desk import Desk
from gateway.feed import Feed
from gateway.model_waits import ModelWaits
from gateway.ports import Gateway
from gateway.profiles import Tenants
from gateway.projection import Projection
from gateway.request_keys import RequestKeys
from gateway.runs import Runs
from gateway.sessions import Sessions
from gateway.settings import Settings
from gateway.sign_in import SignIn
from gateway.signed_out import SignedOut
from gateway.tenancy import Tenancy
from gateway.tenant_facts import TenantFacts
from gateway.ticket_changes import TicketChanges
from gateway.tokens import Tokens
from gateway.web import application
from gateway.writes import Writes

logger = structlog.get_logger()


async def start(bus: Bus, log: JetStreamLog, settings: Settings, stack: AsyncExitStack) -> None:
    """Follows the log, keeps the views and answers HTTP until the stack is closed. Returns once it listens."""
    dsn = settings.postgres_dsn.get_secret_value()
    pool = open_pool(dsn)
    await pool.open(wait=True, timeout=30)
    stack.push_async_callback(pool.close)
    desk = Desk(pool)
    feed = Feed(bus, log, last=await desk.position())
    projection = Projection(dsn, desk, feed)
    runs = Runs(log, bus, desk, settings.model)
    verifier = Verifier(settings.issuers, settings.audience)
    tokens = Tokens(verifier)
    tenant_log = JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(tenant_log.on_error)
    tenant_facts = TenantFacts(tenant_log)
    await tenant_facts.load()
    sessions = Sessions(SignedOut(pool, dsn))
    await sessions.load()
    # Another process, or this one started anew, has numbers of its own.
    ticket_changes = TicketChanges(dsn, start=time.time_ns() // 1_000_000)
    tenants = Tenants(settings.tenants_dir)
    stack.callback(tokens.close)
    model_waits = ModelWaits(feed.touch)
    await bus.hear_model_waits(model_waits.hear)
    gateway = Gateway(
        settings=settings,
        bus=bus,
        tokens=tokens,
        sign_in=SignIn(settings, verifier, tokens),
        tenants=tenants,
        desk=desk,
        feed=feed,
        projection=projection,
        runs=runs,
        tenant_facts=tenant_facts,
        ticket_changes=ticket_changes,
        tenancy=Tenancy(bus, tenant_facts, Writes(bus, tenants), settings.tenants_dir),
        audit=AuditLog(log, feed, runs, tenant_facts, desk, tenants),
        sessions=sessions,
        request_keys=RequestKeys(pool),
        model_waits=model_waits,
        connected=lambda: bus.connected,
    )
    await bus.hear_dead(lambda letter: hear_dead(runs, letter))
    for work in (feed.run(), projection.run(), tenant_facts.run(), sessions.run(), ticket_changes.run()):
        stack.push_async_callback(_ended, asyncio.create_task(work))
    proxies = [str(network) for network in settings.trusted_proxies]
    await stack.enter_async_context(listening(application(gateway), settings.http_host, settings.http_port, proxies))


async def hear_dead(runs: Runs, letter: Json) -> None:
    """A run whose own runner gave up gets its end from here."""
    if letter.get("service") == "agent-runner" and str(letter.get("subject", "")).startswith("run."):
        key, _ = parse(letter["subject"])
        await runs.fail(key, f"dead {letter.get('sequence')}")


HTTP: dict[str, Any] = {
    "log_config": None,
    "access_log": False,
    "timeout_graceful_shutdown": 1,
    "timeout_keep_alive": 30,
    "h11_max_incomplete_event_size": 65_536,
    "lifespan": "off",
}


class Server(uvicorn.Server):
    """Uvicorn, but the end of the process is the service's own business."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def listening(application: Any, host: str, port: int, proxies: Sequence[str] = ()) -> AsyncIterator[None]:
    """Answers HTTP on the port until it is left; streams that are open then are cut after a second. Whose a request is
    forwarded as is believed of these proxies only."""
    try:
        listener = socket.create_server((host, port), backlog=2048)
        # The event loop sets this only on sockets of its own making; without it a stream's frames wait for one another.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise SystemExit(
            f"Port {port} of {host} cannot be opened ({error.strerror}). Is something else using it?"
        ) from error
    server = Server(uvicorn.Config(application, **HTTP, proxy_headers=bool(proxies), forwarded_allow_ips=list(proxies)))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield  # the socket listens already: who comes before the server has started is answered then
    finally:
        server.should_exit = True
        await task
        listener.close()


async def _ended(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await task
