"""How every service answers what it hears: read the run, decide, append; on a conflict read on and decide again."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import TypeVar

from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.history import History
from contracts.log import Log
from contracts.stops import stop
from contracts.subjects import RunKey
from contracts.tracing import span

T = TypeVar("T")
React = Callable[[History, Event], Draft | Awaitable[Draft | None] | None]


async def respond(log: Log, event: Event, react: React) -> Event | None:
    """Says what `react` makes of `event`, or nothing if it was dealt with already."""
    return await say(log, event.key, lambda history: react(history, event), at=event)


async def say(
    log: Log, key: RunKey, decide: Callable[[History], Draft | T | Awaitable[Draft | T]], at: Event | None = None
) -> Event | T:
    """Says what `decide` makes of a run, read as far as `at` at least, or to its head where nothing was heard.

    `decide` is asked again after each conflict, with the longer history. What it answers instead of a draft is handed
    back: None, say, where the history shows that nothing is left to say. That is what makes a repeated delivery
    harmless.
    """
    stop("before-read")
    history = await log.read(key, at=at)
    stop("after-read")
    while True:
        decision = decide(history)
        draft = await decision if isinstance(decision, Awaitable) else decision
        if not isinstance(draft, Draft):
            return draft
        try:
            stop("before-append")
            # What was heard has its span around us; a person's word or a timer goes behind what the run said last.
            with span(f"{draft.fact.kind} is said", history.head) if at is None else nullcontext():
                said = await log.append(history, draft)
            stop("after-append")
            return said
        except Conflict:
            await asyncio.sleep(random.uniform(0.002, 0.02))  # noqa: S311 - spreads writers, guards nothing
            history = await log.read(key)
