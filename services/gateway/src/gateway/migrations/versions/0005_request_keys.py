"""Which request an Idempotency-Key belongs to, over all calls: another request with it is refused.

Neither the key nor the request is kept: a row has the digest of who used which key, and the request's digest under that
key, which nobody can try without it. So an erased customer's words are not in it either.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

KEYS = """
create table desk.request_keys (
    tenant text not null,
    key text not null,
    request text not null,
    uses integer not null default 1,
    claimed_at timestamptz not null default now(),
    primary key (tenant, key)
);
create index on desk.request_keys (tenant, claimed_at);
alter table desk.request_keys enable row level security;
alter table desk.request_keys force row level security;
create policy tenant on desk.request_keys
    using (tenant = current_setting('turngate.tenant', true))
    with check (tenant = current_setting('turngate.tenant', true));
grant select, insert, update, delete on desk.request_keys to turngate_gateway;
"""


def upgrade() -> None:
    op.execute(KEYS)
