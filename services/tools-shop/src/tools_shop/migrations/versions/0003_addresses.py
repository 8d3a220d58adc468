"""Customers have their e-mail address in the form that addresses are compared in, beside it as it was written."""

from collections import Counter
from typing import Any

from alembic import op
from contracts.addresses import comparable
from sqlalchemy import text

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(COLUMN)
    # Its owner sees the rows of all tenants, to the end of this.
    op.execute("alter table shop.customers no force row level security")
    _fill(op.get_bind())
    op.execute("alter table shop.customers force row level security")
    op.execute(OF_OTHERS)


def _fill(connection: Any) -> None:
    """Of several customers of a tenant with one address nobody knows whose it is: they have none."""
    rows = connection.execute(text("select tenant, id, email from shop.customers")).all()
    addresses = {(row.tenant, row.id): comparable(row.email) for row in rows}
    often = Counter((tenant, address) for (tenant, _), address in addresses.items())
    for (tenant, customer), address in addresses.items():
        if address is not None and often[tenant, address] == 1:
            connection.execute(
                text("update shop.customers set address = :address where tenant = :tenant and id = :customer"),
                {"address": address, "tenant": tenant, "customer": customer},
            )


COLUMN = """
alter table shop.customers drop constraint customers_email_check;
alter table shop.customers add column address text;
create unique index customers_address on shop.customers (tenant, address);
"""

# The address of what others write is what they wrote. Only what `comparable` gives is ever looked for, so anything else
# is found by nobody.
OF_OTHERS = """
create function shop.address_as_written() returns trigger language plpgsql as $$
begin
    if new.address is null or (tg_op = 'UPDATE' and new.email <> old.email and new.address = old.address) then
        new.address := normalize(lower(new.email collate "C"), NFC);
    end if;
    return new;
end
$$;
create trigger address_as_written before insert or update of email, address on shop.customers
    for each row execute function shop.address_as_written();
revoke execute on function shop.address_as_written() from public;
"""
