"""A key a tenant, under which its customers have the same pseudonym in every audit, and nobody can try who it is."""

from alembic import op

revision = "0003"
down_revision = "0002"

KEYS = """
create table desk.pseudonym_keys (
    tenant text primary key,
    key bytea not null
);
alter table desk.pseudonym_keys enable row level security;
alter table desk.pseudonym_keys force row level security;
create policy tenant on desk.pseudonym_keys
    using (tenant = current_setting('turngate.tenant', true))
    with check (tenant = current_setting('turngate.tenant', true));
grant select, insert on desk.pseudonym_keys to turngate_gateway;
"""


def upgrade() -> None:
    op.execute(KEYS)
