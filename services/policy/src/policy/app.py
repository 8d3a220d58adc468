"""Where policy's parts meet."""

import asyncio
from contextlib import AsyncExitStack

from contracts.bus import Bus
from contracts.log import JetStreamLog, Log
from contracts.subjects import TENANTS

from policy.handlers import catch_up, checking, follow, judging
from policy.packs import Packs
from policy.settings import Settings


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    packs = Packs(settings.tenants_dir)
    line = JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(line.on_error)
    # Before the first turn is judged: none may be judged by a pack that was replaced long ago.
    after = await catch_up(line, packs)
    following = asyncio.create_task(follow(line, packs, after))
    stack.callback(following.cancel)
    await bus.answer("ask.policy.check", checking(packs))
    await bus.hear(judging(log, packs))
