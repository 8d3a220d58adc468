"""What was refunded today, and when last: what policy judges a refund by, and what its guards hold at execution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import structlog
from contracts.parts import Guard

from tools_shop.caller import Caller
from tools_shop.transaction import Transaction

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Totals:
    """Named as guards name them. Those of today have seen this turn; the last were before it, and in 1970 for never."""

    refunded_today_by_customer: int
    refunds_today_by_customer: int
    refunded_today_by_profile: int
    refunded_today_of_tenant: int
    refunds_today_of_tenant: int
    last_refund_of_customer: datetime
    last_decline_of_customer: datetime


async def read(tx: Transaction, caller: Caller, customer: str | None) -> Totals:
    """As they stand in the transaction, in which nobody else changes them: the customer's and the day's."""
    row = await tx.row(
        _TOTALS,
        {"customer": customer, "profile": caller.profile, "today": tx.today} | _turn(caller),
    )
    if row is None:
        raise LookupError("Sums without a row.")
    return Totals(**row)


async def count(tx: Transaction, caller: Caller) -> None:
    """Adds what the turn has refunded to the day of the tenant, for the turns after it: once, behind all its calls."""
    await tx.connection.execute(_COUNT, {"customer": tx.customer, "day": tx.today} | _turn(caller))


async def hold(tx: Transaction, caller: Caller, guards: Sequence[Guard]) -> bool:
    """Whether every guard is true. One that is not about this turn's customer, profile or tenant is not."""
    if not guards:
        return True
    totals = await read(tx, caller, tx.customer)
    subjects = {"customer": tx.customer, "profile": caller.profile, "tenant": caller.tenant}
    broken = [guard for guard in guards if not _holds(guard, totals, subjects)]
    if broken:
        logger.info("guards broken", guards=[guard.name for guard in broken], run=caller.run, turn=caller.turn)
    return not broken


def _holds(guard: Guard, totals: Totals, subjects: Mapping[str, str | None]) -> bool:
    value: int | datetime = getattr(totals, guard.name)
    if isinstance(value, datetime):
        value = int(value.timestamp())
    return guard.subject == subjects[guard.name.rpartition("_")[2]] and value <= guard.at_most


def _turn(caller: Caller) -> dict[str, object]:
    return {"run": caller.run, "turn": caller.turn}


# What the turn itself has refunded is not yet in the counter. All of it went to the one customer.
_TOTALS = """
select refunded_today_by_customer, refunds_today_by_customer, last_refund_of_customer, refunded_today_by_profile,
       (counted_minor + own_minor)::bigint as refunded_today_of_tenant, counted + own as refunds_today_of_tenant,
       last_decline_of_customer
from (
    select coalesce(sum(amount_minor) filter (where day = %(today)s), 0)::bigint as refunded_today_by_customer,
           count(*) filter (where day = %(today)s) as refunds_today_by_customer,
           coalesce(sum(amount_minor) filter (where day = %(today)s and (run, turn) = (%(run)s, %(turn)s)), 0)
           as own_minor,
           count(*) filter (where day = %(today)s and (run, turn) = (%(run)s, %(turn)s)) as own,
           coalesce(max(refunded_at) filter (where (run, turn) is distinct from (%(run)s, %(turn)s)), to_timestamp(0))
           as last_refund_of_customer
    from shop.refunds where customer_id = %(customer)s
) customer, (
    select coalesce(sum(amount_minor), 0)::bigint as refunded_today_by_profile
    from shop.refunds where day = %(today)s and profile = %(profile)s
) profile, (
    select coalesce(sum(refunded_minor), 0)::bigint as counted_minor, coalesce(sum(refunds), 0)::bigint as counted
    from shop.day_counters where day = %(today)s
) tenant, (
    select coalesce(max(declined_at), to_timestamp(0)) as last_decline_of_customer
    from shop.declines where customer_id = %(customer)s and (run, turn) is distinct from (%(run)s, %(turn)s)
) declines
"""
_COUNT = """
update shop.day_counters c
set refunds = c.refunds + own.refunds, refunded_minor = c.refunded_minor + own.refunded_minor
from (
    select count(*) as refunds, sum(amount_minor) as refunded_minor from shop.refunds
    where customer_id = %(customer)s and day = %(day)s and (run, turn) = (%(run)s, %(turn)s)
) own
where c.day = %(day)s and own.refunds > 0
"""
