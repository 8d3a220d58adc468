"""Refunds name the profile of the agent that asked, and what was declined and what is stopped is kept."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = {
    "declines": "select, insert",
    "stops": "select, insert, update (tool, above_minor, set_in, lifted_in)",
}
OWN_TENANT = "tenant = current_setting('turngate.tenant', true)"


def upgrade() -> None:
    op.execute(CHANGES)
    for table, rights in TABLES.items():
        op.execute(f"alter table shop.{table} enable row level security")
        op.execute(f"alter table shop.{table} force row level security")
        op.execute(f"create policy own_tenant on shop.{table} using ({OWN_TENANT})")
        op.execute(f"grant {rights} on shop.{table} to turngate_tools")


CHANGES = """
alter table shop.refunds add column profile text;
create index on shop.refunds (tenant, day, profile) include (amount_minor);

create table shop.declines (
    tenant text not null,
    run text not null,
    turn integer not null,
    call_id text not null,
    customer_id text not null,
    declined_at timestamptz not null default now(),
    primary key (tenant, run, turn, call_id),
    foreign key (tenant, customer_id) references shop.customers
);
create index on shop.declines (tenant, customer_id, declined_at);

-- A stop stands where it was set after it was lifted last. Both are places in the tenants' stream, so that it does not
-- matter in which order, or how often, they are heard.
create table shop.stops (
    tenant text not null,
    stop_id text not null,
    tool text,
    above_minor bigint,
    set_in bigint not null default 0,
    lifted_in bigint not null default 0,
    primary key (tenant, stop_id)
);
"""
