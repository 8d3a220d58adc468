"""A stand-in for the model that listens on loopback, and who directs it; the house that an agent-runner works in."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest
from agent_runner.ledger import Pool
from agent_runner.settings import Settings
from contracts.events import Event
from contracts.subjects import RunKey
from psycopg_pool import AsyncConnectionPool
from standin.director import Director
from standin.serving import serving
from turngate.testing import Database, NatsAccess

from .house import House, house, settings
from .told import Told

Causes = Callable[[], Event]


@pytest.fixture(scope="session")
def standin_url() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture
async def director(standin_url: str) -> AsyncIterator[Director]:
    async with Director(standin_url) as director:
        yield director
        await director.clear()


@pytest.fixture
async def home(fresh_nats: NatsAccess) -> AsyncIterator[House]:
    async with house(fresh_nats) as at_home:
        yield at_home


@pytest.fixture
def told(fresh_nats: NatsAccess, fresh_database: Database, standin_url: str) -> Settings:
    return settings(fresh_nats, fresh_database, standin_url)


@pytest.fixture
async def pool(postgres: Database) -> AsyncIterator[Pool]:
    async with AsyncConnectionPool(postgres.runner, kwargs={"autocommit": True}, min_size=1, open=False) as pool:
        yield pool


@pytest.fixture
def tenant() -> str:
    return f"t{uuid.uuid4().hex[:12]}"


@pytest.fixture
def another(tenant: str) -> Causes:
    """An event of a run of the tenant's, another each time."""
    told = Told().last
    return lambda: replace(told, id=str(uuid.uuid4()), key=RunKey(tenant, f"TCK-{uuid.uuid4().hex[:8]}-1"))
