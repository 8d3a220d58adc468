"""Where policy's parts meet."""

import asyncio
from contextlib import AsyncExitStack

from contracts.asks import CHECK_PACK
from contracts.bus import Bus
from contracts.following import catch_up, keep_up
from contracts.log import JetStreamLog, Log
from contracts.subjects import TENANTS

from policy.handlers import checking, judging
from policy.packs import Packs
from policy.settings import Settings


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    packs = Packs(settings.tenants_dir)
    line = JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(line.on_error)
    # Before the first turn is judged: none may be judged by a pack that was replaced long ago.
    after = await catch_up(line, packs.hear)
    following = asyncio.create_task(keep_up(line, packs.hear, after))
    stack.callback(following.cancel)
    await bus.answer(CHECK_PACK, checking(packs, settings.known_people))
    await bus.hear(judging(log, packs))
