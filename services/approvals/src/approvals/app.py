"""Where approvals' parts meet."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime

from contracts.bus import Bus
from contracts.identity import Verifier
from contracts.log import Log

from approvals.handlers import deciding, holding, looking
from approvals.settings import Settings


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    verifier = Verifier(settings.issuers, settings.audience)
    await bus.answer("ask.approvals.decide", deciding(log, verifier, now))
    await bus.hear(holding(bus))
    await bus.hear_timers(looking(bus, log, now))


def now() -> datetime:
    return datetime.now(UTC)
