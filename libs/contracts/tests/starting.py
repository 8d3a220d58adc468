"""A service in a process of its own that is never done with its start."""

import asyncio
from contextlib import AsyncExitStack

from contracts import service
from contracts.bus import Bus
from contracts.log import JetStreamLog
from contracts.settings import ServiceSettings


async def start(bus: Bus, log: JetStreamLog, settings: ServiceSettings, stack: AsyncExitStack) -> None:
    stack.callback(print, "put away", flush=True)
    print("starting", flush=True)
    await asyncio.Event().wait()


service.run("policy", ServiceSettings(), start)
