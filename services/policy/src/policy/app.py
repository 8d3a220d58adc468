"""Where policy's parts meet."""

from contextlib import AsyncExitStack

from contracts.bus import Bus
from contracts.log import Log

from policy.handlers import judging
from policy.packs import Packs
from policy.settings import Settings


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    await bus.hear(judging(log, Packs(settings.tenants_dir)))
