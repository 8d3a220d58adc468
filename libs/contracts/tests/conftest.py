"""What these tests share: connections to a real nats-server, and a server of their own that can be killed."""

import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import structlog
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.subjects import RunKey
from hypothesis import HealthCheck, settings
from nats.aio.client import Client
from turngate.testing import NatsAccess, Server

from .lines import grow, said
from .servers import House

# How long an example takes says how busy the machine is.
settings.register_profile("contracts", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("contracts")


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Lines as services write them: left alone, structlog draws each exception with all its local variables."""
    structlog.configure(processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()])


@pytest.fixture
def key() -> RunKey:
    """A run of the test's own, so that tests can share a server."""
    return RunKey("acme", f"TCK-{uuid.uuid4().hex[:12]}-1")


@pytest.fixture
async def house(nats_server: NatsAccess) -> AsyncIterator[House]:
    """Connections to the session's server, closed when the test ends."""
    async with House(nats_server) as house:
        yield house


@pytest.fixture
async def fresh_house(fresh_nats: NatsAccess) -> AsyncIterator[House]:
    """Connections to a server of the test's own: its streams are empty, its consumers have heard nothing."""
    async with House(fresh_nats) as house:
        yield house


@pytest.fixture
def server(data_dir: Path) -> Iterator[Server]:
    """A server of the test's own that can be killed and started again on the same port and store."""
    server = Server(data_dir)
    server.start()
    try:
        server.create_streams()
        yield server
    finally:
        server.kill()


@pytest.fixture
async def server_house(server: Server) -> AsyncIterator[House]:
    """Connections to the server that can be killed."""
    async with House(server.access) as house:
        yield house


@pytest.fixture
async def nc(house: House) -> Client:
    return await house.client("setup")


@pytest.fixture
async def long_run(house: House, key: RunKey) -> list[Event]:
    """A hundred events: three times what a trail reaches. Every tenth is one of another kind."""

    def draft(number: int) -> Draft:
        return Draft(EXAMPLES["tools.turn-quoted"], None, key=str(number)) if number % 10 == 0 else said(f"m-{number}")

    return await grow(await house.log(), key, 100, draft)
