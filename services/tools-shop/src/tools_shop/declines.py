"""What people declined, for the cooling-off of the customer's turns after it."""

from datetime import datetime

from tools_shop.caller import Caller
from tools_shop.transaction import Transaction


async def keep(tx: Transaction, caller: Caller, call_id: str, at: datetime | None = None) -> None:
    """Once for each call, whoever comes first: who hears the decision (`at` its time), or who executes the turn."""
    if tx.customer is not None:
        await tx.row(_KEEP, [caller.tenant, caller.run, caller.turn, call_id, tx.customer, at])


_KEEP = """
insert into shop.declines (tenant, run, turn, call_id, customer_id, declined_at)
values (%s, %s, %s, %s, %s, coalesce(%s, now())) on conflict do nothing returning call_id
"""
