"""The main of every service: logs, health, the connection, a clean end."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TypeVar

import structlog

from contracts import health, logs, stops, tracing
from contracts.bus import Bus
from contracts.log import EVERYTHING, JetStreamLog
from contracts.settings import ServiceSettings

logger = structlog.get_logger()
S = TypeVar("S", bound=ServiceSettings)
Start = Callable[[Bus, JetStreamLog, S, AsyncExitStack], Awaitable[None]]


def run(
    name: str,
    settings: S,
    start: Start[S],
    *,
    reads: Iterable[str] = EVERYTHING,
    outages: tuple[type[Exception], ...] = (),
) -> None:
    """Runs a service until SIGTERM or SIGINT. `reads` are the kinds that its folds need, `outages` the exceptions that
    mean that something it depends on is away."""
    logs.configure(name, settings.log_level)
    stops.arm(settings.stops_dir, name)
    tracing.configure(name, settings.otlp_endpoint)
    asyncio.run(_run(name, settings, start, reads, outages))


@asynccontextmanager
async def running(
    name: str,
    settings: S,
    start: Start[S],
    *,
    reads: Iterable[str] = EVERYTHING,
    outages: tuple[type[Exception], ...] = (),
) -> AsyncIterator[Bus]:
    """A service on its connection: what it hears is heard, and what it answers is answered, until the block ends.

    Raises Forbidden where its broker user may not hear something.
    """
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(settings, name, outages)
        stack.push_async_callback(bus.close)
        log = JetStreamLog(bus.nc, reads, keys=bus.keys, writability=bus.writability)
        bus.on_error.append(log.on_error)
        await start(bus, log, settings, stack)
        await bus.settled()
        # What the handlers use is closed once none has anything in hand, and the connection behind all that uses it.
        stack.push_async_callback(bus.stop_taking)
        yield bus


async def _run(
    name: str, settings: S, start: Start[S], reads: Iterable[str], outages: tuple[type[Exception], ...]
) -> None:
    ended = asyncio.Event()
    ready: Bus | None = None
    main = asyncio.current_task()

    def end() -> None:
        if ready is None and main is not None and not ended.is_set():
            main.cancel()  # it waits for something that is away, perhaps for long
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
    with ExitStack() as stack:
        if settings.health_port is not None:
            server = health.serve(
                name,
                settings.health_port,
                lambda: ready is not None and ready.ready,
                settings.health_host,
                lambda: [line for condition in (ready.conditions if ready else ()) for line in condition()],
            )
            stack.callback(server.shutdown)
        try:
            async with running(name, settings, start, reads=reads, outages=outages) as ready:
                logger.info("ready")
                await ended.wait()
                logger.info("stopping")
        except asyncio.CancelledError:
            if not ended.is_set():
                raise
            logger.info("ended before it was ready")
