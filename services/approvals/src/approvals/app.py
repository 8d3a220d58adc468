"""Where approvals' parts meet."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime

from contracts import asks, service
from contracts.bus import Bus
from contracts.identity import Verifier
from contracts.log import JetStreamLog, Log
from contracts.subjects import TENANTS

from approvals import tenants
from approvals.handlers import answering_for_tenants, deciding, holding, looking
from approvals.notifications import notice
from approvals.notifications.courier import Courier
from approvals.notifications.mail import Mail
from approvals.notifications.posting import posting
from approvals.notifications.targets import Targets
from approvals.settings import Settings

NOTIFICATIONS = "notifications"


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    verifier = Verifier(settings.issuers, settings.audience)
    lines = _lines_of_tenants(bus)
    await bus.answer(asks.DECIDE, deciding(log, verifier, now, bus.ask, lines))
    await bus.answer(asks.OF_TENANT, answering_for_tenants(lines, verifier, bus.ask))
    await bus.hear(holding(bus))
    await bus.hear_timers(looking(bus, log, now))
    # Notifications have a connection of their own, so that what waits for a receiver is in nobody's way.
    bus.beside.append(
        await stack.enter_async_context(service.running(NOTIFICATIONS, settings, notify, reads=notice.READS))
    )


def _lines_of_tenants(bus: Bus) -> Log:
    log = JetStreamLog(bus.nc, tenants.READS, stream=TENANTS)
    bus.on_error.append(log.on_error)
    return log


async def notify(bus: Bus, log: JetStreamLog, settings: Settings, stack: AsyncExitStack) -> None:
    post = await stack.enter_async_context(posting(settings.notify_timeout, loopback=settings.notify_loopback))
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
