"""An ear that remembers what it heard, a fact that policy hears, and what the broker says of a consumer."""

import asyncio
import json
import time
from itertools import pairwise
from typing import Any

from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.history import History
from contracts.subjects import RunKey

from .servers import SOON, House

QUOTED = EXAMPLES["tools.turn-quoted"]


async def quote(house: House, key: RunKey) -> Event:
    """A fact that policy hears."""
    return await (await house.log()).append(History(key), Draft(QUOTED, None))


async def api(house: House, subject: str) -> Any:
    reply = await (await house.client("setup")).request(f"$JS.API.{subject}", timeout=SOON)
    return json.loads(reply.data)


async def until_settled(house: House, stream: str = "RUNS", service: str = "policy") -> Any:
    """The consumer's state once nothing of it is under way."""
    async with asyncio.timeout(SOON):
        while True:
            info = await api(house, f"CONSUMER.INFO.{stream}.{service}")
            if info["num_pending"] == info["num_ack_pending"] == 0:
                return info
            await asyncio.sleep(0.02)


class Ear:
    """A handler that remembers what it heard and when, and does what the test says."""

    def __init__(self, *deeds: Exception | None) -> None:
        self.heard: list[tuple[float, Any]] = []
        self._deeds = list(deeds)
        self._more = asyncio.Condition()

    async def __call__(self, heard: Any) -> None:
        async with self._more:
            self.heard.append((time.monotonic(), heard))
            self._more.notify_all()
        deed = self._deeds.pop(0) if len(self._deeds) > 1 else self._deeds[0] if self._deeds else None
        if deed is not None:
            raise deed

    async def has_heard(self, count: int) -> list[Any]:
        async with asyncio.timeout(SOON), self._more:
            await self._more.wait_for(lambda: len(self.heard) >= count)
        return [heard for _, heard in self.heard]

    @property
    def pauses(self) -> list[float]:
        times = [at for at, _ in self.heard]
        return [later - earlier for earlier, later in pairwise(times)]


class DatabaseAway(Exception):
    pass
