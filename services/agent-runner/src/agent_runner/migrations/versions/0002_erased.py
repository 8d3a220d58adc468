"""An answer that comes after its customer was erased is paid for, and not kept."""

from alembic import op

revision = "0002"
down_revision = "0001"

_RECORD = """
create or replace function ledger.record(
    of_tenant text, of_run text, of_cause uuid, given json, micro_usd bigint
) returns json language plpgsql as $$
declare
    kept json;
begin
    perform set_config('turngate.tenant', of_tenant, true);
    update ledger.calls c set
        answer = {answer},
        answered_at = coalesce(c.answered_at, clock_timestamp()),
        spent_micro_usd = c.spent_micro_usd + micro_usd,
        holder = null,
        held_until = null
    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
    returning c.answer into kept;
    return kept;
end $$
"""


def upgrade() -> None:
    op.execute("alter table ledger.calls add column erased boolean not null default false")
    op.execute(_RECORD.format(answer="case when not c.erased then coalesce(c.answer, given) end"))


def downgrade() -> None:
    op.execute(_RECORD.format(answer="coalesce(c.answer, given)"))
    op.execute("alter table ledger.calls drop column erased")
