"""A tenant's budget of a day, and which runs were erased, so that no answer of theirs is kept whenever it comes."""

from alembic import op

revision = "0003"
down_revision = "0002"

_OF_TENANT = """
alter table {table} enable row level security;
alter table {table} force row level security;
create policy of_tenant on {table}
    using (tenant = current_setting('turngate.tenant', true))
    with check (tenant = current_setting('turngate.tenant', true));
"""

_SET_BUDGET = """
create function ledger.set_budget(
    of_tenant text, micro_usd bigint, in_sequence bigint
) returns void language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    -- Who reserved without having seen a budget is through with it once the first one stands.
    perform pg_advisory_xact_lock(hashtextextended('turngate.budget ' || of_tenant, 0));
    insert into ledger.budgets as known (tenant, day_micro_usd, set_in)
    values (of_tenant, micro_usd, in_sequence)
    on conflict (tenant) do update set day_micro_usd = excluded.day_micro_usd, set_in = excluded.set_in
    where excluded.set_in > known.set_in;
end $$
"""

_RESERVE = """
create function ledger.reserve(
    of_tenant text, of_run text, of_cause uuid, digest text, of_model text, by_holder uuid, micro_usd bigint,
    lease_s double precision
) returns table (mine boolean, answer json, budget_micro_usd bigint, taken_micro_usd bigint) language plpgsql as $$
declare
    most bigint;
    taken bigint;
    at timestamptz;
begin
    perform set_config('turngate.tenant', of_tenant, true);
    perform pg_advisory_xact_lock_shared(hashtextextended('turngate.budget ' || of_tenant, 0));
    -- Under a budget one reservation waits for the other, so that each has counted those before it.
    select b.day_micro_usd into most from ledger.budgets b
        where b.tenant = of_tenant and b.day_micro_usd is not null for update;
    if most is not null then
        at := clock_timestamp();
        -- What has been answered, or is being asked by another, reserves nothing more.
        return query select false, c.answer, null::bigint, null::bigint from ledger.calls c
            where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
                and (c.answer is not null or (c.holder is not null and c.held_until >= at));
        if found then
            return;
        end if;
        -- What this very call has cost before, on another day too, comes to the day on which it is made again.
        select coalesce(sum(
            c.spent_micro_usd + c.uncertain_micro_usd + case when c.holder is null then 0 else c.reserved_micro_usd end
        ), 0) into taken from ledger.calls c
            where c.tenant = of_tenant
                and (c.reserved_at >= date_trunc('day', at, 'UTC') or (c.run = of_run and c.cause = of_cause));
        if taken + micro_usd > most then
            return query select false, null::json, most, taken;
            return;
        end if;
    end if;
    return query select t.mine, t.answer, null::bigint, null::bigint
        from ledger.take(of_tenant, of_run, of_cause, digest, of_model, by_holder, micro_usd, lease_s) t;
end $$
"""

_REUSED = """
create function ledger.reused(
    of_tenant text, of_run text, of_cause uuid, micro_usd bigint
) returns boolean language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    -- Once: who is kept from saying the answer, by an outage say, comes for it again and again.
    update ledger.calls c set saved_micro_usd = micro_usd
        where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause and c.saved_micro_usd = 0;
    return found;
end $$
"""

_HOLD = """
create or replace function ledger.hold(
    of_tenant text, of_run text, of_cause uuid, by_holder uuid, lease_s double precision
) returns void language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    update ledger.calls c set
        holder = case when lease_s is null then null else c.holder end,
        held_until = clock_timestamp() + make_interval(secs => lease_s)
    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
        and c.holder = by_holder{unless};
end $$
"""

_LOSE = """
create function ledger.lose(
    of_tenant text, of_run text, of_cause uuid, by_holder uuid
) returns void language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    update ledger.calls c set
        uncertain_micro_usd = c.uncertain_micro_usd + c.reserved_micro_usd,
        holder = null,
        held_until = null
    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
        and c.holder = by_holder;
end $$
"""

_DAYS = """
create function ledger.days(
    of_tenant text, since date
) returns table (
    day date, reserved_micro_usd bigint, spent_micro_usd bigint, saved_micro_usd bigint, uncertain_micro_usd bigint
) language plpgsql as $$
declare
    at timestamptz := clock_timestamp();
begin
    perform set_config('turngate.tenant', of_tenant, true);
    -- Whose lease has run out died while they asked, whether or not somebody has come to take the call over.
    return query
        select
            (c.reserved_at at time zone 'UTC')::date,
            coalesce(sum(c.reserved_micro_usd) filter (where c.holder is not null and c.held_until >= at), 0)::bigint,
            sum(c.spent_micro_usd)::bigint,
            sum(c.saved_micro_usd)::bigint,
            (sum(c.uncertain_micro_usd)
                + coalesce(sum(c.reserved_micro_usd) filter (where c.holder is not null and c.held_until < at), 0)
            )::bigint
        from ledger.calls c
        where c.tenant = of_tenant and c.reserved_at >= since::timestamp at time zone 'UTC'
        group by 1 order by 1;
end $$
"""

_RECORD = """
create function ledger.record(
    of_tenant text, of_run text, of_cause uuid,{by_holder} given json, micro_usd bigint
) returns json language plpgsql as $$
declare
    kept json;
begin
    perform set_config('turngate.tenant', of_tenant, true);
    update ledger.calls c set
        answer = case when not {erased} then coalesce(c.answer, given) end,
        answered_at = coalesce(c.answered_at, clock_timestamp()),
        spent_micro_usd = c.spent_micro_usd + micro_usd,
        holder = {holder},
        held_until = {held_until}
    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
    returning c.answer into kept;
    return kept;
end $$
"""
# Who comes late, with the call taken over meanwhile, leaves the other's reservation alone.
_BY_ITS_HOLDER = _RECORD.format(
    by_holder=" by_holder uuid,",
    erased="(c.erased or exists (select from ledger.erased_runs e where e.tenant = of_tenant and e.run = of_run))",
    holder="nullif(c.holder, by_holder)",
    held_until="case when c.holder <> by_holder then c.held_until end",
)
_BY_ANYBODY = _RECORD.format(by_holder="", erased="c.erased", holder="null", held_until="null")


def upgrade() -> None:
    op.execute(
        """
        create table ledger.budgets (
            tenant        text   not null primary key,
            day_micro_usd bigint check (day_micro_usd >= 0),
            set_in        bigint not null
        )
        """
    )
    op.execute("comment on column ledger.budgets.day_micro_usd is 'null: no limit'")
    op.execute("comment on column ledger.budgets.set_in is 'which of the tenants'' facts said so, by its sequence'")
    op.execute("create table ledger.erased_runs (tenant text not null, run text not null, primary key (tenant, run))")
    for table in ("ledger.budgets", "ledger.erased_runs"):
        op.execute(_OF_TENANT.format(table=table))
    op.execute("alter table ledger.calls add column saved_micro_usd bigint not null default 0")
    op.execute(
        "comment on column ledger.calls.saved_micro_usd is 'what its answer would have cost again where it was reused'"
    )
    op.execute(
        "comment on column ledger.calls.uncertain_micro_usd is"
        " 'reserved for calls that were made, and what came of them is not known'"
    )
    op.execute("alter function ledger.reserve rename to take")
    op.execute("drop function ledger.record")
    for function in (_SET_BUDGET, _RESERVE, _REUSED, _HOLD.format(unless=""), _LOSE, _DAYS, _BY_ITS_HOLDER):
        op.execute(function)
    _hand_over()
    op.execute("grant select, insert, update on ledger.budgets to turngate_runner")
    op.execute("grant select, insert on ledger.erased_runs to turngate_runner")


def downgrade() -> None:
    op.execute(
        "drop function ledger.set_budget, ledger.reserve, ledger.reused, ledger.lose, ledger.days, ledger.record"
    )
    op.execute("alter function ledger.take rename to reserve")
    op.execute(_HOLD.format(unless=" and c.answer is null"))
    op.execute(_BY_ANYBODY)
    _hand_over()
    op.execute("alter table ledger.calls drop column saved_micro_usd")
    op.execute("drop table ledger.budgets, ledger.erased_runs")


def _hand_over() -> None:
    op.execute("revoke all on all functions in schema ledger from public")
    op.execute("grant execute on all functions in schema ledger to turngate_runner")
