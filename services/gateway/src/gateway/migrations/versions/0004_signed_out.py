"""Sign-ins that were ended before their tokens expire: known to every gateway, however often it is started.

No row-level security: a row names no tenant and no person, only the digest of a sign-in (the tenant is in the digest),
and every process has to know all of them before it lets anybody in.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

SIGNED_OUT = """
create table desk.signed_out (
    sign_in text primary key,
    expires_at timestamptz not null
);
create index on desk.signed_out (expires_at);
grant select, insert, delete on desk.signed_out to turngate_gateway;
"""


def upgrade() -> None:
    op.execute(SIGNED_OUT)
