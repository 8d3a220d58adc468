"""Where approvals' parts meet."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime

from contracts.bus import Bus
from contracts.identity import Verifier
from contracts.log import JetStreamLog, Log
from contracts.subjects import TENANTS

from approvals import tenants
from approvals.handlers import deciding, hearing_of_tenants, holding, looking
from approvals.notifications import notice
from approvals.notifications.courier import Courier
from approvals.notifications.mail import Mail
from approvals.notifications.posting import posting
from approvals.notifications.targets import Targets
from approvals.settings import Settings

NOTIFICATIONS = "notifications"


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    verifier = Verifier(settings.issuers, settings.audience)
    await bus.answer("ask.approvals.decide", deciding(log, verifier, now, bus.ask))
    await bus.answer("ask.approvals.tenant", hearing_of_tenants(_line_of_tenants(bus), verifier, bus.ask))
    await bus.hear(holding(bus))
    await bus.hear_timers(looking(bus, log, now))
    await notify(settings, stack)


def _line_of_tenants(bus: Bus) -> Log:
    log = JetStreamLog(bus.nc, tenants.READS, stream=TENANTS)
    bus.on_error.append(log.on_error)
    return log


async def notify(settings: Settings, stack: AsyncExitStack) -> None:
    """Notifications have a connection of their own, so that what waits for a receiver is in nobody's way."""
    post = await stack.enter_async_context(posting(settings.notify_timeout, loopback=settings.notify_loopback))
    bus = await Bus.connect(settings, NOTIFICATIONS)
    stack.push_async_callback(bus.close)
    log = JetStreamLog(bus.nc, notice.READS)
    bus.on_error.append(log.on_error)
    courier = Courier(
        bus,
        log,
        Targets(settings.tenants_dir),
        post,
        Mail(settings.smtp, settings.notify_timeout),
        settings.notify_secrets,
        settings.notify_backoff,
        settings.console_url,
        now,
    )
    await bus.hear(courier.hear)
    await bus.hear_timers(courier.deliver)


def now() -> datetime:
    return datetime.now(UTC)
