"""A shop of the test's own, in the session's database."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nats
import psycopg
import pytest
from contracts.bus import Bus
from contracts.datakeys import JetStreamKeys, KeyRing
from contracts.identity import Issuer
from contracts.log import JetStreamLog
from contracts.subjects import RunKey
from contracts.testing import World, world
from nats.aio.client import Client
from tools_shop import database, demo, domain, seeding
from tools_shop.embedding import Embedder
from tools_shop.handlers import Handlers
from tools_shop.help_centre import HelpCentre
from tools_shop.toolsets.shop import shop
from tools_shop.turns import Turns
from turngate.issuer import ISSUER
from turngate.issuer import Issuer as Signing
from turngate.testing import Database, NatsAccess

from .others import Fresh, Others, tools_shop
from .shops import TENANTS, Shop


@pytest.fixture
def owner(postgres: Database) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres.owner, autocommit=True) as connection:
        yield connection


@pytest.fixture
async def turns(postgres: Database) -> AsyncIterator[Turns]:
    async with database.pool(postgres.tools, 8) as pool:
        yield Turns(pool)


@pytest.fixture
def open_shop(owner: psycopg.Connection[Any], turns: Turns) -> Callable[[demo.DemoShop], Shop]:
    """Opens a shop for a tenant that no other test has."""
    toolset = shop(HelpCentre(Embedder()).ask)

    def open_one(entries: demo.DemoShop) -> Shop:
        tenant = f"t{uuid.uuid4().hex[:12]}"
        with owner.transaction():
            owner.execute("select set_config('turngate.tenant', %s, true)", [tenant])
            seeding.write_shop(owner, entries.model_copy(update={"tenant": tenant}), datetime.now(UTC).date())
        return Shop(tenant, owner, turns, toolset)

    return open_one


@pytest.fixture
def signing(data_dir: Path) -> Signing:
    """Signs tokens for people of any tenant."""
    signing = Signing(data_dir / "issuer")
    signing.prepare()
    return signing


@pytest.fixture
def believed(signing: Signing, acme: Shop) -> Issuer:
    """How a service is told to believe those of the test's own tenant."""
    return Issuer(issuer=ISSUER, jwks=str(signing.jwks), tenants=[acme.tenant])


@pytest.fixture
def acme(open_shop: Callable[[demo.DemoShop], Shop]) -> Shop:
    """The demo shop of acme, asked by Tom Whitfield."""
    return open_shop(demo.read(TENANTS / "acme" / "demo.yaml"))


@pytest.fixture
async def everyone(nats_server: NatsAccess) -> AsyncIterator[World]:
    """Everyone else, whose log holds personal data sealed."""
    async with world(nats_server.url, *nats_server.user("setup"), sealed=True) as everyone:
        yield everyone


@pytest.fixture
def others(everyone: World, acme: Shop) -> Others:
    return Others(everyone, RunKey(acme.tenant, "TCK-2004-1"))


@pytest.fixture
async def running(nats_server: NatsAccess, postgres: Database, believed: Issuer) -> AsyncIterator[Bus]:
    async with tools_shop(nats_server, postgres, believed) as bus:
        yield bus


@pytest.fixture
async def client(nats_server: NatsAccess) -> AsyncIterator[Client]:
    user, password = nats_server.user("setup")
    client = await nats.connect(nats_server.url, user=user, password=password)
    yield client
    await client.close()


@pytest.fixture
def process(client: Client) -> Callable[[Shop], Handlers]:
    """A process of the service, with a log of its own, that hears what the test has it hear."""

    def one(shop: Shop) -> Handlers:
        log = JetStreamLog(client, domain.READS, keys=KeyRing(JetStreamKeys(client)))
        return Handlers(log, shop.turns, {"shop": shop.toolset})

    return one


@pytest.fixture
def open_fresh(
    everyone: World, open_shop: Callable[[demo.DemoShop], Shop], process: Callable[[Shop], Handlers]
) -> Fresh:
    entries = demo.read(TENANTS / "acme" / "demo.yaml")

    async def fresh() -> tuple[Shop, Handlers, Others]:
        shop = open_shop(entries)
        return shop, process(shop), Others(everyone, RunKey(shop.tenant, "TCK-2004-1"))

    return fresh
