"""How often a call was tried, and what its run may owe: counted where restarts and other processes count too."""

from alembic import op

revision = "0004"
down_revision = "0003"

_TAKE = """
create or replace function ledger.take(
    of_tenant text, of_run text, of_cause uuid, digest text, of_model text, by_holder uuid, micro_usd bigint,
    lease_s double precision
) returns table (mine boolean, answer json) language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    insert into ledger.calls as c
        (tenant, run, cause, request_digest, model, reserved_micro_usd, holder, held_until)
    values
        (of_tenant, of_run, of_cause, digest, of_model, micro_usd, by_holder,
         clock_timestamp() + make_interval(secs => lease_s))
    on conflict (tenant, run, cause) do update set
        request_digest = excluded.request_digest,
        model = excluded.model,
        reserved_at = excluded.reserved_at,
        reserved_micro_usd = excluded.reserved_micro_usd,
        holder = excluded.holder,
        held_until = excluded.held_until,
        uncertain_micro_usd = c.uncertain_micro_usd + case when c.holder is null then 0 else c.reserved_micro_usd end
        {counts}
    where c.answer is null and (c.holder is null or c.held_until < clock_timestamp());
    if found then
        return query select true, null::json;
    else
        return query select false, c.answer from ledger.calls c
            where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause;
    end if;
end $$
"""
_COUNTS = """,
        requests = c.requests + 1,
        unknown = c.unknown + case when c.holder is null then 0 else 1 end"""

# The first four columns are those of before: an answer, or the tenant's day that has no room.
_RESERVE = """
create function ledger.reserve(
    of_tenant text, of_run text, of_cause uuid, digest text, of_model text, by_holder uuid, micro_usd bigint,
    lease_s double precision, run_limit bigint default null, run_spent bigint default 0,
    most_unknown integer default null
) returns table (
    mine boolean, answer json, budget_micro_usd bigint, taken_micro_usd bigint, run_taken_micro_usd bigint,
    unknown integer
) language plpgsql as $$
declare
    known ledger.calls%rowtype;
    most bigint;
    taken bigint;
    at timestamptz;
begin
    perform set_config('turngate.tenant', of_tenant, true);
    perform pg_advisory_xact_lock_shared(hashtextextended('turngate.budget ' || of_tenant, 0));
    -- Under a budget one reservation waits for the other, so that each has counted those before it.
    select b.day_micro_usd into most from ledger.budgets b
        where b.tenant = of_tenant and b.day_micro_usd is not null for update;
    at := clock_timestamp();
    select * into known from ledger.calls c where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause;
    -- What has been answered, or is being asked by another, reserves nothing more.
    if known.answer is not null or (known.holder is not null and known.held_until >= at) then
        return query select false, known.answer, null::bigint, null::bigint, null::bigint, null::integer;
        return;
    end if;
    -- Whoever held it until now died while it asked.
    known.unknown := coalesce(known.unknown, 0) + case when known.holder is null then 0 else 1 end;
    if known.unknown >= most_unknown then
        return query select false, null::json, null::bigint, null::bigint, null::bigint, known.unknown;
        return;
    end if;
    select ledger.taken_of_run(of_tenant, of_run, run_spent) into taken;
    if taken > run_spent and taken + micro_usd > run_limit then
        return query select false, null::json, null::bigint, null::bigint, taken, null::integer;
        return;
    end if;
    if most is not null then
        -- What this very call has cost before, on another day too, comes to the day on which it is made again.
        select coalesce(sum(
            c.spent_micro_usd + c.uncertain_micro_usd + case when c.holder is null then 0 else c.reserved_micro_usd end
        ), 0) into taken from ledger.calls c
            where c.tenant = of_tenant
                and (c.reserved_at >= date_trunc('day', at, 'UTC') or (c.run = of_run and c.cause = of_cause));
        if taken + micro_usd > most then
            return query select false, null::json, most, taken, null::bigint, null::integer;
            return;
        end if;
    end if;
    return query select t.mine, t.answer, null::bigint, null::bigint, null::bigint, null::integer
        from ledger.take(of_tenant, of_run, of_cause, digest, of_model, by_holder, micro_usd, lease_s) t;
end $$
"""

_TAKEN_OF_RUN = """
create function ledger.taken_of_run(of_tenant text, of_run text, run_spent bigint) returns bigint language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    -- What the log tells of may be more than what an older copy of the ledger does. Whose lease has run out died while
    -- they asked.
    return (
        select greatest(coalesce(sum(c.spent_micro_usd), 0), run_spent) + coalesce(sum(
            c.uncertain_micro_usd + case when c.held_until < clock_timestamp() then c.reserved_micro_usd else 0 end
        ), 0)
        from ledger.calls c where c.tenant = of_tenant and c.run = of_run
    )::bigint;
end $$
"""

_TRIES = """
create function ledger.tries(
    of_tenant text, of_run text, of_cause uuid
) returns table (
    requests integer, unknown integer, since timestamptz, waited_s double precision
) language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    return query
        select c.requests, c.unknown, coalesce(c.away_since, c.reserved_at),
            extract(epoch from clock_timestamp() - coalesce(c.away_since, c.reserved_at))::double precision
        from ledger.calls c where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause;
end $$
"""

_GIVE_BACK = """
create function ledger.give_back(
    of_tenant text, of_run text, of_cause uuid, by_holder uuid, is_unknown boolean
) returns table (
    requests integer, unknown integer, since timestamptz, waited_s double precision
) language plpgsql as $$
begin
    perform set_config('turngate.tenant', of_tenant, true);
    update ledger.calls c set
        uncertain_micro_usd = c.uncertain_micro_usd + case when is_unknown then c.reserved_micro_usd else 0 end,
        unknown = c.unknown + case when is_unknown then 1 else 0 end,
        away_since = coalesce(c.away_since, c.reserved_at),
        holder = null,
        held_until = null
    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
        and c.holder = by_holder;
    return query select * from ledger.tries(of_tenant, of_run, of_cause);
end $$
"""


def upgrade() -> None:
    op.execute("alter table ledger.calls add column requests integer not null default 1")
    op.execute("alter table ledger.calls add column unknown integer not null default 0")
    op.execute("alter table ledger.calls add column away_since timestamptz")
    op.execute(
        "comment on column ledger.calls.unknown is 'requests that were made, and what came of them is not known'"
    )
    op.execute("comment on column ledger.calls.away_since is 'when the first request was made that brought no answer'")
    op.execute("drop function ledger.reserve(text, text, uuid, text, text, uuid, bigint, double precision)")
    for function in (_TAKE.format(counts=_COUNTS), _TAKEN_OF_RUN, _RESERVE, _TRIES, _GIVE_BACK):
        op.execute(function)
    op.execute("drop function ledger.lose")
    _hand_over()


def downgrade() -> None:
    from importlib import import_module

    before = import_module("agent_runner.migrations.versions.0003_budgets")
    op.execute("drop function ledger.reserve, ledger.give_back, ledger.tries, ledger.taken_of_run")
    op.execute(_TAKE.format(counts=""))
    op.execute(before._RESERVE)
    op.execute(before._LOSE)
    for column in ("requests", "unknown", "away_since"):
        op.execute(f"alter table ledger.calls drop column {column}")
    _hand_over()


def _hand_over() -> None:
    op.execute("revoke all on all functions in schema ledger from public")
    op.execute("grant execute on all functions in schema ledger to turngate_runner")
