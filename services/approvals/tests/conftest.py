"""A run that has begun: in memory, and on a real broker, where people have tokens."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from contracts.testing import World, started, world
from turngate.testing import NatsAccess

from .house import Gateway, connected
from .tokens import Mint
from .told import ALEX, KEY, Told


@pytest.fixture
def run() -> Told:
    return Told()


@pytest.fixture
def mint(tmp_path: Path) -> Mint:
    return Mint.at(tmp_path)


@pytest.fixture
async def others(fresh_nats: NatsAccess) -> AsyncIterator[World]:
    async with world(fresh_nats.url, *fresh_nats.user("setup"), sealed=True) as others:
        await others.say(KEY, started(ALEX))
        yield others


@pytest.fixture
async def gateway(fresh_nats: NatsAccess, mint: Mint) -> AsyncIterator[Gateway]:
    async with connected(fresh_nats, "gateway") as bus:
        yield Gateway(bus, mint)
