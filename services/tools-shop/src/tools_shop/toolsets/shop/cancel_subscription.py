"""cancel_subscription: ends a subscription at its next renewal."""

from contracts.money import Money
from contracts.parts import Effect

from tools_shop.arguments import note, subscription_reference
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Done, Refusal
from tools_shop.texts import day, one_line
from tools_shop.toolset import Write, object_schema
from tools_shop.transaction import Lock, Transaction

_SUBSCRIPTION = """
select s.reference, s.plan, s.price_minor, s.currency, s.status, s.customer_id, s.renews_on, s.ends_on, s.minimum_until,
       s.minimum_until > (now() at time zone 'utc')::date as bound
from shop.subscriptions s
join shop.customers c on c.tenant = s.tenant and c.id = s.customer_id
where s.reference = %s and c.address = %s
"""
_OWN = """
select string_agg(s.reference, ', ' order by s.reference) as listed from shop.subscriptions s
join shop.customers c on c.tenant = s.tenant and c.id = s.customer_id
where c.address = %s and s.status = 'active'
"""
_CANCEL = """
update shop.subscriptions
set status = 'cancelled', ends_on = renews_on, cancelled_at = now(), cancelled_in_run = %s
where reference = %s and status = 'active' returning ends_on
"""


async def apply(tx: Transaction, arguments: Arguments, caller: Caller, call_id: str) -> Done | Refusal:
    reference = arguments["subscription_reference"]
    found = await tx.row(_SUBSCRIPTION, [reference, caller.email])
    if found is None:
        own = await tx.row(_OWN, [caller.email])
        active = f"Active there: {own['listed']}." if own and own["listed"] else "None is active there."
        return Refusal(
            "subscription-unknown",
            f"There is no subscription {reference} on the account of this ticket's e-mail address. {active}",
        )
    if found["status"] != "active":
        return Refusal(
            "already-cancelled",
            f"{reference} was cancelled already. It ends on {day(found['ends_on'])}; nothing more is needed.",
        )
    if found["bound"]:
        return Refusal(
            "minimum-term",
            f"{reference} has a minimum term and can end on {day(found['minimum_until'])} at the earliest. "
            "Tell the customer that date, or pass it to a person with escalate_to_human.",
        )
    await tx.row(_CANCEL, [caller.run, reference])
    ends, plan = day(found["renews_on"]), one_line(found["plan"], 80)
    price = Money(found["price_minor"], found["currency"]).text(caller.locale)
    return Done(
        f"Cancelled {reference} ({plan}). It ends on {ends} and does not renew. Nothing was refunded.",
        Effect(
            summary=f"Cancel {reference} ({plan}, {price}); it ends on {ends}",
            object=reference,
            before={"status": "active", "renews_on": found["renews_on"].isoformat()},
            after={"status": "cancelled", "ends_on": found["renews_on"].isoformat()},
        ),
        found["customer_id"],
        {"subscription": reference, "status": "cancelled", "ends_on": found["renews_on"].isoformat()},
    )


def _locks(arguments: Arguments) -> frozenset[Lock]:
    return frozenset({Lock("subscriptions", arguments["subscription_reference"])})


CANCEL_SUBSCRIPTION = Write(
    name="cancel_subscription",
    description="Cancels one subscription of this ticket's customer, at the end of the time that is paid for.",
    takes="subscription_reference (text, such as SUB-12345) and reason (text)",
    schema=object_schema(
        ["subscription_reference"],
        subscription_reference={"type": "string", "description": "The subscription's reference: SUB-12345."},
        reason={"type": "string", "description": "Why the customer leaves, in a few words."},
    ),
    fields={"subscription_reference": subscription_reference, "reason": note("No reason was given.", 500)},
    free_text=frozenset({"reason"}),
    locks=_locks,
    apply=apply,
)
