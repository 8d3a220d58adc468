"""How every service answers what it hears: read the run, decide, append; on a conflict read on and decide again."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.history import History
from contracts.log import Log
from contracts.stops import stop
from contracts.subjects import RunKey

Decide = Callable[[History], Draft | Awaitable[Draft | None] | None]
React = Callable[[History, Event], Draft | Awaitable[Draft | None] | None]


async def respond(log: Log, event: Event, react: React) -> Event | None:
    """Says what `react` makes of `event`, or nothing if it was dealt with already."""
    return await say(log, event.key, lambda history: react(history, event), at=event)


async def say(log: Log, key: RunKey, decide: Decide, at: Event | None = None) -> Event | None:
    """Says what `decide` makes of a run, read as far as `at` at least, or to its head where nothing was heard.

    `decide` is asked again after each conflict, with the longer history; it answers None when the history shows that
    there is nothing left to say. That is what makes a repeated delivery harmless.
    """
    stop("before-read")
    history = await log.read(key, at=at)
    stop("after-read")
    while True:
        decision = decide(history)
        draft = await decision if isinstance(decision, Awaitable) else decision
        if draft is None:
            return None
        try:
            stop("before-append")
            said = await log.append(history, draft)
            stop("after-append")
            return said
        except Conflict:
            await asyncio.sleep(random.uniform(0.002, 0.02))  # noqa: S311 - spreads writers, guards nothing
            history = await log.read(key)
