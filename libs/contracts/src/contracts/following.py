"""Keeping up with the log for ever: what a process folds in memory from its start on."""

import asyncio
from collections.abc import Callable

import structlog

from contracts.errors import Outage
from contracts.events import Event
from contracts.log import JetStreamLog

logger = structlog.get_logger()
Take = Callable[[Event], object]

AGAIN_AFTER = 0.5  # seconds


async def catch_up(log: JetStreamLog, take: Take, after: int = 0) -> int:
    """Takes every event that the log holds behind `after` by now, an outage waited out; the sequence of the last."""
    while True:
        try:
            async for event in log.follow(after, live=False):
                _take(take, event)
                after = event.sequence
            return after
        except Outage as error:
            logger.warning("outage", error=repr(error), after=after)
            await asyncio.sleep(AGAIN_AFTER)


async def keep_up(log: JetStreamLog, take: Take, after: int = 0) -> None:
    """Takes the events behind `after` as they come, whatever goes wrong on the way, until the connection is closed."""
    while True:
        try:
            async for event in log.follow(after):
                _take(take, event)
                after = event.sequence
        except Exception:
            if log.closed:
                return
            logger.exception("the log is not followed", after=after)
        await asyncio.sleep(AGAIN_AFTER)


def _take(take: Take, event: Event) -> None:
    """One event that its hearer cannot make anything of must not keep the next ones from them."""
    try:
        take(event)
    except Exception:
        logger.exception("event passed over", kind=event.kind, sequence=event.sequence)
