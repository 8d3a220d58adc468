"""The shop's rows, its receipts and the help centre, each row bound to its tenant."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# What the service's role may do with each table. Locking a row takes a right to update: `update (tenant)` gives that
# and nothing else, since row-level security lets no row leave its tenant.
SHOP = {
    "tenants": "select",
    "customers": "select, update (tenant)",
    "orders": "select, update (tenant)",
    "items": "select",
    "shipments": "select",
    "payments": "select",
    "subscriptions": "select, update (tenant, status, cancelled_at, cancelled_in_run, ends_on)",
    "refunds": "select, insert",
    "escalations": "select, insert, update (notes)",
    "receipts": "select, insert",
    "day_counters": "select, insert, update (refunds, refunded_minor)",
}
OWN_TENANT = "tenant = current_setting('turngate.tenant', true)"
HELP = {"articles": "select", "chunks": "select"}


def upgrade() -> None:
    op.execute(TABLES)
    for schema, tables in (("shop", SHOP), ("help", HELP)):
        op.execute(f"grant usage on schema {schema} to turngate_tools")
        for table, rights in tables.items():
            op.execute(f"alter table {schema}.{table} enable row level security")
            op.execute(f"alter table {schema}.{table} force row level security")
            op.execute(f"create policy own_tenant on {schema}.{table} using ({OWN_TENANT})")
            op.execute(f"grant {rights} on {schema}.{table} to turngate_tools")


TABLES = """
create table shop.tenants (
    tenant text primary key,
    name text not null,
    currency char(3) not null,
    timezone text not null,
    floor_minor bigint not null check (floor_minor >= 0),
    refund_window_days integer not null check (refund_window_days > 0)
);

create table shop.customers (
    tenant text not null references shop.tenants,
    id text not null,
    name text not null,
    email text not null check (email = lower(email)),
    primary key (tenant, id),
    unique (tenant, email)
);

create table shop.orders (
    tenant text not null,
    reference text not null check (reference = upper(reference)),
    customer_id text not null,
    currency char(3) not null,
    status text not null check (status in ('placed', 'shipped', 'delivered', 'cancelled')),
    delivery_minor bigint not null default 0 check (delivery_minor >= 0),
    placed_at timestamptz not null,
    primary key (tenant, reference),
    foreign key (tenant, customer_id) references shop.customers
);
create index on shop.orders (tenant, customer_id);

create table shop.items (
    tenant text not null,
    order_reference text not null,
    line integer not null,
    sku text not null,
    title text not null,
    quantity integer not null check (quantity > 0),
    unit_minor bigint not null check (unit_minor >= 0),
    primary key (tenant, order_reference, line),
    foreign key (tenant, order_reference) references shop.orders
);

create table shop.shipments (
    tenant text not null,
    tracking text not null,
    order_reference text not null,
    carrier text not null,
    status text not null,
    sent_on date,
    expected_on date,
    delivered_on date,
    last_event text,
    primary key (tenant, tracking),
    foreign key (tenant, order_reference) references shop.orders
);
create index on shop.shipments (tenant, order_reference);

create table shop.payments (
    tenant text not null,
    id text not null,
    order_reference text not null,
    amount_minor bigint not null check (amount_minor > 0),
    method text not null,
    status text not null check (status in ('captured', 'charged_back', 'voided')),
    paid_at timestamptz not null,
    primary key (tenant, id),
    foreign key (tenant, order_reference) references shop.orders
);
create index on shop.payments (tenant, order_reference);

create table shop.subscriptions (
    tenant text not null,
    reference text not null check (reference = upper(reference)),
    customer_id text not null,
    plan text not null,
    price_minor bigint not null check (price_minor >= 0),
    currency char(3) not null,
    status text not null check (status in ('active', 'cancelled')),
    started_on date not null,
    renews_on date not null,
    minimum_until date,
    ends_on date,
    cancelled_at timestamptz,
    cancelled_in_run text,
    primary key (tenant, reference),
    foreign key (tenant, customer_id) references shop.customers
);
create index on shop.subscriptions (tenant, customer_id);

-- `intent` is what makes a refund that refund: paying the same thing again is a duplicate, whichever run asks.
create table shop.refunds (
    tenant text not null,
    id text not null,
    intent char(64) not null,
    n integer not null check (n >= 0),
    order_reference text not null,
    customer_id text not null,
    amount_minor bigint not null check (amount_minor > 0),
    currency char(3) not null,
    reason text not null,
    again_after text,
    run text,
    turn integer,
    call_id text,
    released_by text[] not null default '{}',
    day date not null,
    refunded_at timestamptz not null default now(),
    primary key (tenant, id),
    constraint refunds_intent unique (tenant, intent),
    foreign key (tenant, order_reference) references shop.orders,
    foreign key (tenant, customer_id) references shop.customers,
    foreign key (tenant, again_after) references shop.refunds
);
create index on shop.refunds (tenant, order_reference);
create index on shop.refunds (tenant, customer_id, day);

create table shop.escalations (
    tenant text not null,
    run text not null,
    id text not null,
    ticket text not null,
    customer_id text,
    notes text[] not null,
    opened_at timestamptz not null default now(),
    primary key (tenant, run)
);

create table shop.receipts (
    tenant text not null,
    run text not null,
    turn integer not null,
    id uuid not null,
    proposal_id uuid not null,
    attempt integer not null,
    digests jsonb not null,
    results json not null,
    approved_by json not null,
    executed_at timestamptz not null default now(),
    primary key (tenant, run, turn)
);

create table shop.day_counters (
    tenant text not null,
    day date not null,
    refunds integer not null default 0,
    refunded_minor bigint not null default 0,
    primary key (tenant, day)
);

create table help.articles (
    tenant text not null,
    slug text not null,
    title text not null,
    digest char(64) not null,
    model text not null,
    primary key (tenant, slug)
);

create table help.chunks (
    tenant text not null,
    article text not null,
    position integer not null,
    section text not null,
    body text not null,
    model text not null,
    embedding public.vector(384) not null,
    primary key (tenant, article, position),
    foreign key (tenant, article) references help.articles on delete cascade
);
"""
