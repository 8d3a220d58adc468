"""A worker of policy's in a process of its own: says what it hears on standard output and never finishes it."""

import asyncio
import os

from contracts.bus import Bus
from contracts.events import Event
from contracts.settings import ServiceSettings


async def main() -> None:
    async def hear(event: Event) -> None:
        print(event.id, flush=True)
        await asyncio.Event().wait()

    bus = await Bus.connect(ServiceSettings(), os.environ["SERVICE"])
    await bus.hear(hear)
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
