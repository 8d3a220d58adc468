"""The desk: tickets, and the view of every run with the place in the log that the views have reached."""

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
create table desk.tickets (
    tenant text not null,
    reference text not null,
    channel text not null,
    customer_email text not null,
    customer_name text,
    customer_id text,
    subject text not null,
    body text not null,
    opened_at timestamptz not null,
    status text not null default 'open',
    latest_run text,
    latest_n integer not null default 0,
    request_key text,
    request_digest text,
    primary key (tenant, reference)
);
create unique index on desk.tickets (tenant, request_key);
create index on desk.tickets (tenant, opened_at desc, reference desc);

create table desk.runs (
    tenant text not null,
    run text not null,
    ticket text not null,
    n integer not null,
    status text not null,
    customer_email text not null,
    started_event text not null,
    started_at timestamptz not null,
    held_at timestamptz,
    sequence bigint not null,
    state json not null,
    primary key (tenant, run)
);
create index on desk.runs (tenant, ticket, n);
create index on desk.runs (tenant, status, held_at);
create index on desk.runs (tenant, started_at desc, run desc);
create index on desk.runs (tenant, sequence);
create index on desk.runs (tenant, customer_email);
create index on desk.runs (tenant, started_event);

create table desk.projection (
    name text primary key,
    position bigint not null
);
insert into desk.projection values ('runs', 0);
"""

ISOLATION = """
alter table desk.{table} enable row level security;
alter table desk.{table} force row level security;
create policy tenant on desk.{table}
    using (tenant = current_setting('turngate.tenant', true))
    with check (tenant = current_setting('turngate.tenant', true));
"""

# Views are emptied before they are made anew; truncating them all at once is not a question of tenants.
GRANTS = """
grant usage on schema desk to turngate_gateway;
grant select, insert, update on desk.tickets to turngate_gateway;
grant select, insert, update, truncate on desk.runs to turngate_gateway;
grant select, update on desk.projection to turngate_gateway;
"""


def upgrade() -> None:
    op.execute(TABLES)
    for table in ("tickets", "runs"):
        op.execute(ISOLATION.format(table=table))
    op.execute(GRANTS)
