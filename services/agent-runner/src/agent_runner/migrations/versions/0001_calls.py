"""One line a model call: what is reserved for it, who makes it, and the answer that came."""

from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute(
        """
        create table ledger.calls (
            tenant              text        not null,
            run                 text        not null,
            cause               uuid        not null,
            request_digest      text        not null,
            model               text        not null,
            reserved_at         timestamptz not null default clock_timestamp(),
            reserved_micro_usd  bigint      not null,
            holder              uuid,
            held_until          timestamptz,
            answer              json,
            answered_at         timestamptz,
            spent_micro_usd     bigint      not null default 0,
            uncertain_micro_usd bigint      not null default 0,
            primary key (tenant, run, cause)
        )
        """
    )
    op.execute(
        "comment on column ledger.calls.uncertain_micro_usd is 'reserved by processes that died while they asked'"
    )
    op.execute("create index calls_by_day on ledger.calls (tenant, reserved_at)")
    op.execute("alter table ledger.calls enable row level security")
    op.execute("alter table ledger.calls force row level security")
    op.execute(
        """
        create policy of_tenant on ledger.calls
            using (tenant = current_setting('turngate.tenant', true))
            with check (tenant = current_setting('turngate.tenant', true))
        """
    )
    # Functions, so that each is one round trip and one transaction with the tenant set in it.
    op.execute(
        """
        create function ledger.reserve(
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
                uncertain_micro_usd = c.uncertain_micro_usd
                    + case when c.holder is null then 0 else c.reserved_micro_usd end
            where c.answer is null and (c.holder is null or c.held_until < clock_timestamp());
            if found then
                return query select true, null::json;
            else
                return query select false, c.answer from ledger.calls c
                    where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause;
            end if;
        end $$
        """
    )
    op.execute(
        """
        create function ledger.hold(
            of_tenant text, of_run text, of_cause uuid, by_holder uuid, lease_s double precision
        ) returns void language plpgsql as $$
        begin
            perform set_config('turngate.tenant', of_tenant, true);
            update ledger.calls c set
                holder = case when lease_s is null then null else c.holder end,
                held_until = clock_timestamp() + make_interval(secs => lease_s)
            where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
                and c.holder = by_holder and c.answer is null;
        end $$
        """
    )
    op.execute(
        """
        create function ledger.record(
            of_tenant text, of_run text, of_cause uuid, given json, micro_usd bigint
        ) returns json language plpgsql as $$
        declare
            kept json;
        begin
            perform set_config('turngate.tenant', of_tenant, true);
            update ledger.calls c set
                answer = coalesce(c.answer, given),
                answered_at = coalesce(c.answered_at, clock_timestamp()),
                spent_micro_usd = c.spent_micro_usd + micro_usd,
                holder = null,
                held_until = null
            where c.tenant = of_tenant and c.run = of_run and c.cause = of_cause
            returning c.answer into kept;
            return kept;
        end $$
        """
    )
    op.execute("revoke all on all functions in schema ledger from public")
    op.execute("grant usage on schema ledger to turngate_runner")
    op.execute("grant select, insert, update on ledger.calls to turngate_runner")
    op.execute("grant execute on all functions in schema ledger to turngate_runner")


def downgrade() -> None:
    op.execute("drop function ledger.record, ledger.hold, ledger.reserve")
    op.execute("drop table ledger.calls")
