"""A shop of the test's own, in the session's database."""

import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from tools_shop import database, demo, seeding
from tools_shop.embedding import Embedder
from tools_shop.help_centre import HelpCentre
from tools_shop.toolsets.shop import shop
from tools_shop.turns import Turns
from turngate.testing import Database

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
def acme(open_shop: Callable[[demo.DemoShop], Shop]) -> Shop:
    """The demo shop of acme, asked by Tom Whitfield."""
    return open_shop(demo.read(TENANTS / "acme" / "demo.yaml"))
