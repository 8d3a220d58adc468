"""Which runs wait for the model: said at once where it changes, and again and again while it lasts."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal

from contracts.model_wait import SENT_EVERY, ModelWait, in_words, utc
from contracts.subjects import RunKey

Send = Callable[[RunKey, ModelWait | None], Awaitable[None]]


class Waits:
    """`send` tells whoever looks at a run what it waits for, or with None that this is over."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._waits: dict[RunKey, ModelWait] = {}

    async def set(self, key: RunKey, wait: ModelWait) -> None:
        self._waits[key] = wait
        await self._tell(key, wait)

    async def clear(self, key: RunKey) -> None:
        if self._waits.pop(key, None) is not None:
            await self._tell(key, None)

    def in_words(self) -> list[str]:
        """For whoever asks how this service is: what runs wait for, how many, and since when the first of them."""
        waits = sorted(list(self._waits.values()), key=lambda wait: wait.since)  # asked on another thread
        count = Counter((wait.state, wait.status) for wait in waits)
        first: dict[tuple[Literal["waiting", "away"], str | None], ModelWait] = {}
        for wait in waits:
            first.setdefault((wait.state, wait.status), wait)
        return [
            f"{in_words(wait, utc(wait.since))}: {count[kind]} run{'s' if count[kind] > 1 else ''}"
            for kind, wait in first.items()
        ]

    async def run(self) -> None:
        """Says again what lasts, for ever: whoever has just begun to look has not heard it."""
        while True:
            await asyncio.sleep(SENT_EVERY)
            for key, wait in list(self._waits.items()):
                await self._tell(key, wait)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()

    async def _tell(self, key: RunKey, wait: ModelWait | None) -> None:
        """It is said again anyway: no trouble with it may cost an answer."""
        with suppress(Exception):
            await self._send(key, wait)
