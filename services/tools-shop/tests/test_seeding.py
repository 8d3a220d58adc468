"""The demo as it is written into the database, and who may do what with it there."""

import psycopg
import pytest
from tools_shop import demo
from tools_shop.database import AboveRowSecurity, must_be_bound_by_row_security, pool
from tools_shop.seeding import seed
from turngate.testing import Database

from .shops import TENANTS

TABLES = [
    "shop.tenants", "shop.customers", "shop.orders", "shop.items", "shop.shipments", "shop.payments",
    "shop.subscriptions", "shop.refunds", "shop.escalations", "shop.receipts", "shop.day_counters", "help.articles",
    "help.chunks",
]  # fmt: skip


def counts(database: Database) -> dict[str, int]:
    with psycopg.connect(database.superuser) as connection:
        return {table: connection.execute(f"select count(*) from {table}".encode()).fetchone()[0] for table in TABLES}


def test_seeding_again_changes_nothing(seeded: Database):
    first = counts(seeded)
    assert seed(seeded.owner, TENANTS) == ["acme", "globex"]
    assert counts(seeded) == first
    assert first["shop.tenants"] == 2
    assert first["help.articles"] >= 30


@pytest.mark.parametrize("table", TABLES)
def test_the_service_sees_nothing_without_a_tenant_and_only_its_own_with_one(seeded: Database, table: str):
    with psycopg.connect(seeded.tools) as connection:
        assert connection.execute(f"select count(*) from {table}".encode()).fetchone() == (0,)
        connection.execute("select set_config('turngate.tenant', 'globex', true)")
        assert connection.execute(f"select count(*) from {table} where tenant <> 'globex'".encode()).fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "insert into shop.orders select * from shop.orders",
        "update shop.orders set customer_id = 'C-1001'",
        "update shop.orders set tenant = 'globex'",
        "update shop.refunds set amount_minor = 1",
        "delete from shop.refunds",
        "delete from shop.receipts",
        "update shop.receipts set results = '[]'",
        "update shop.tenants set floor_minor = 100000000",
        "insert into help.articles values ('acme', 'x', 'x', 'x', 'x')",
        "alter table shop.orders disable row level security",
    ],
)
def test_the_service_may_not(seeded: Database, statement: str):
    with psycopg.connect(seeded.tools) as connection:
        connection.execute("select set_config('turngate.tenant', 'acme', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(statement.encode())


async def test_it_will_not_work_with_a_role_above_row_security(postgres: Database):
    async with pool(postgres.superuser, 1) as above:
        with pytest.raises(AboveRowSecurity, match="turngate_tools"):
            await must_be_bound_by_row_security(above)
    async with pool(postgres.tools, 1) as bound:
        await must_be_bound_by_row_security(bound)


@pytest.mark.parametrize("tenant", ["acme", "globex"])
def test_a_demo_shop_adds_up(tenant: str):
    shop = demo.read(TENANTS / tenant / "demo.yaml")
    customers = {customer.id: customer for customer in shop.customers}
    for order in shop.orders:
        total = sum(item.quantity * item.unit_minor for item in order.items) + order.delivery_minor
        assert total == sum(payment.amount_minor for payment in order.payments), order.reference
        assert order.customer in customers
    for ticket in shop.tickets:
        customer = customers[ticket.customer_id]
        assert (customer.email, customer.name) == (ticket.customer_email, ticket.customer_name)


def test_acme_has_the_twelve_tickets():
    shop = demo.read(TENANTS / "acme" / "demo.yaml")
    assert [ticket.reference for ticket in shop.tickets] == [f"TCK-{number}" for number in range(2001, 2013)]


@pytest.fixture(scope="module")
def seeded(cluster) -> Database:
    with cluster.database() as database:
        seed(database.owner, TENANTS)
        yield database
