"""issue_refund: pays money back for one order, each refund once."""

import hashlib
from collections.abc import Iterator

from contracts.money import Money
from contracts.parts import Effect, Json, QuoteFacts
from psycopg.rows import DictRow

from tools_shop import totals
from tools_shop.arguments import earlier_refund, minor_amount, order_reference, reason
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Done, Refusal
from tools_shop.references import REFERENCE_LENGTHS
from tools_shop.texts import amount, day
from tools_shop.toolset import Write, object_schema
from tools_shop.toolsets.shop.words import order_unknown
from tools_shop.totals import Totals
from tools_shop.transaction import Lock, Transaction
from tools_shop.unit import Unit

_ORDER = """
select o.reference, o.currency, o.status, o.customer_id,
       coalesce((select sum(p.amount_minor) from shop.payments p where p.tenant = o.tenant
                 and p.order_reference = o.reference and p.status = 'captured'), 0)::bigint as paid,
       exists (select from shop.payments p where p.tenant = o.tenant
               and p.order_reference = o.reference and p.status = 'charged_back') as charged_back,
       coalesce((select sum(r.amount_minor) from shop.refunds r
                 where r.tenant = o.tenant and r.order_reference = o.reference), 0)::bigint as refunded,
       (o.delivery_minor + coalesce((select sum(i.quantity * i.unit_minor) from shop.items i
                                     where i.tenant = o.tenant and i.order_reference = o.reference), 0))::bigint
       as total,
       w.opened_at as window_from, (w.opened_at at time zone t.timezone)::date as window_from_on,
       now() - w.opened_at > make_interval(days => t.refund_window_days) as too_old
from shop.orders o
join shop.customers c on c.tenant = o.tenant and c.id = o.customer_id
join shop.tenants t on t.tenant = o.tenant
cross join lateral (
    select coalesce(max(s.delivered_on)::timestamp at time zone t.timezone, o.placed_at) as opened_at
    from shop.shipments s where s.tenant = o.tenant and s.order_reference = o.reference
) w
where o.reference = %s and c.address = %s
"""
_EARLIER = "select n, amount_minor, currency from shop.refunds where id = %s and order_reference = %s"
_SAME = "select id, amount_minor, currency, refunded_at::date as refunded_on from shop.refunds where intent = %s"
# A refund's id is made from its intent, so of two at once either unique constraint may be the first to find the other.
# Only the same intent is a duplicate: where there is none of it behind a conflict, another refund has the reference.
_PAY = """
insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency, reason,
                          again_after, run, turn, call_id, released_by, day, profile)
values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
on conflict do nothing
returning id
"""


async def apply(tx: Transaction, arguments: Arguments, caller: Caller, call_id: str) -> Done | Refusal:
    reference, minor = arguments["order_reference"], arguments["amount_pence"]
    order = await tx.row(_ORDER, [reference, caller.email])
    if order is None:
        return order_unknown(reference)
    n = 0
    if "again_after" in arguments:
        earlier = await tx.row(_EARLIER, [arguments["again_after"], reference])
        if earlier is None or (earlier["amount_minor"], earlier["currency"]) != (minor, order["currency"]):
            return _no_earlier(arguments["again_after"], reference)
        n = earlier["n"] + 1
    intent = intent_of(caller.tenant, reference, minor, order["currency"], n)
    if same := await tx.row(_SAME, [intent]):
        return _duplicate(arguments, order, same, caller.locale, await totals.read(tx, caller, order["customer_id"]))
    if refusal := _why_not(order, minor, tx.tenant["currency"], caller.locale):
        return refusal
    for refund in references_of(intent):
        paid = await tx.row(
            _PAY,
            [caller.tenant, refund, intent, n, reference, order["customer_id"], minor, order["currency"],
             arguments["reason"], arguments.get("again_after"), caller.run, caller.turn, call_id,
             list(tx.released_by.get(call_id, ())), tx.today, caller.profile],
        )  # fmt: skip
        if paid is not None:
            return _paid(arguments, order, refund, caller.locale, await totals.read(tx, caller, order["customer_id"]))
        if same := await tx.row(_SAME, [intent]):
            return _duplicate(
                arguments, order, same, caller.locale, await totals.read(tx, caller, order["customer_id"])
            )
    raise LookupError(f"No refund of the intent {intent} was written, and there is none.")


def _paid(arguments: Arguments, order: DictRow, refund: str, locale: str, sums: Totals) -> Done:
    minor, money = arguments["amount_pence"], order["currency"]
    left = order["paid"] - order["refunded"] - minor
    text = Money(minor, money).text(locale)
    return Done(
        f"Refunded {amount(minor, money, locale)} for {order['reference']} to the original payment method, once. "
        f"The refund's reference is {refund}. Still refundable: {amount(left, money, locale)}.",
        Effect(
            summary=f"Refund {text} for {order['reference']} to the original payment method",
            object=order["reference"],
            amount_minor=minor,
            currency=money,
            before=_state(order),
            after=_state(order) | {"refunded_minor": order["refunded"] + minor, "refund": refund},
        ),
        order["customer_id"],
        {"refund": refund, "amount_minor": minor, "currency": money, "refundable_minor": left},
        _facts(arguments, order, sums),
    )


def _duplicate(arguments: Arguments, order: DictRow, same: DictRow, locale: str, sums: Totals) -> Done:
    text = Money(same["amount_minor"], same["currency"]).text(locale)
    return Done(
        f"This refund was already issued: {text} for {order['reference']} on {day(same['refunded_on'])}, reference "
        f"{same['id']}. No second payment was made. If another refund of the same amount is really due, ask with "
        f"again_after: {same['id']}; a person has to release it.",
        Effect(
            summary=f"No money moves: {text} for {order['reference']} was refunded already ({same['id']})",
            object=order["reference"],
            amount_minor=0,
            currency=same["currency"],
            before=_state(order),
            after=_state(order),
        ),
        order["customer_id"],
        {"refund": same["id"], "amount_minor": 0, "currency": same["currency"]},
        _facts(arguments, order, sums),
        duplicate_of=same["id"],
    )


def _state(order: DictRow) -> Json:
    """What a person who releases a refund looks at, and looks at again where it has changed."""
    return {
        "status": order["status"],
        "total_minor": order["total"],
        "paid_minor": order["paid"],
        "refunded_minor": order["refunded"],
        "refund_window_from": order["window_from_on"].isoformat(),
    }


def _facts(arguments: Arguments, order: DictRow, sums: Totals) -> QuoteFacts:
    return QuoteFacts(
        refunded_today_minor=sums.refunded_today_by_customer,
        refunds_today_by_customer=sums.refunds_today_by_customer,
        refunded_today_of_tenant_minor=sums.refunded_today_of_tenant,
        refunds_today_of_tenant=sums.refunds_today_of_tenant,
        refunded_today_by_profile_minor=sums.refunded_today_by_profile,
        last_refund_at=sums.last_refund_of_customer,
        last_declined_at=sums.last_decline_of_customer,
        window_from=order["window_from"],
        again_after=arguments.get("again_after"),
    )


def _why_not(order: DictRow, minor: int, currency: str, locale: str) -> Refusal | None:
    reference, money, left = order["reference"], order["currency"], order["paid"] - order["refunded"]
    ask = "Pass it to a person with escalate_to_human."
    if order["charged_back"]:
        return Refusal(
            "charged-back",
            f"The bank is returning the money for {reference} by a chargeback: a refund would pay twice. {ask}",
        )
    if not order["paid"]:
        return Refusal("unpaid", f"Nothing was paid for {reference}, so there is nothing to refund.")
    if money != currency:
        return Refusal(
            "other-currency",
            f"{reference} was paid in {money}: the amount would be in the order's currency, and refunds from here are "
            f"made in {currency} only. {ask}",
        )
    if left <= 0:
        return Refusal(
            "refunded",
            f"{reference} has been refunded already, in full: {Money(order['refunded'], money).text(locale)}.",
        )
    if minor > left:
        before = f" {Money(order['refunded'], money).text(locale)} was ALREADY REFUNDED." if order["refunded"] else ""
        return Refusal(
            "more-than-left",
            f"That is more than can be refunded for {reference}: the most is {amount(left, money, locale)}.{before}",
        )
    if order["too_old"]:
        return Refusal("too-old", f"The time limit for refunding {reference} has passed. {ask}")
    return None


def _no_earlier(refund: str, reference: str) -> Refusal:
    return Refusal(
        "again-after-unknown",
        f"again_after must name an earlier refund of the same amount for {reference}; {refund} is none. get_order "
        "lists them. Leave again_after out for a refund that was not made before.",
    )


def intent_of(tenant: str, reference: str, minor: int, currency: str, n: int) -> str:
    """The key under which a refund can exist once; `n` counts the equal refunds that were meant to follow it."""
    return hashlib.sha256("\x1f".join((tenant, reference, str(minor), currency, str(n))).encode()).hexdigest()


def references_of(intent: str) -> Iterator[str]:
    """What people may call the refund, the shortest first: the next one only where another refund has it already."""
    return (f"RF-{intent[:length].upper()}" for length in REFERENCE_LENGTHS)


def reference_of(intent: str) -> str:
    """What people call the refund, unless another one is called that."""
    return next(references_of(intent))


def _locks(arguments: Arguments) -> frozenset[Lock]:
    return frozenset({Lock("orders", arguments["order_reference"])})


def issue_refund(unit: Unit) -> Write:
    """The tool, in words that speak of this unit."""
    return Write(
        name="issue_refund",
        description=(
            f"Refunds an amount of one order to the original payment method. amount_pence is {unit.needed}. Larger "
            "amounts wait until a person has released them. The same refund is paid only once; give again_after only "
            "where a second refund of the same amount is really due."
        ),
        takes=f"order_reference (text, such as ORD-12345), amount_pence ({unit.needed}) and reason (text)",
        schema=object_schema(
            ["order_reference", "amount_pence", "reason"],
            order_reference={"type": "string", "description": "The order's reference: ORD-12345."},
            amount_pence={
                "type": "integer",
                "minimum": 1,
                "description": f"{unit.needed[:1].upper()}{unit.needed[1:]}. At most what remains of the order.",
            },
            reason={"type": "string", "description": "Why, in a few words.", "maxLength": 500},
            again_after={
                "type": "string",
                "description": "The earlier refund's reference (RF-…), to pay the same amount a second time.",
            },
        ),
        fields={
            "order_reference": order_reference,
            "amount_pence": minor_amount(unit),
            "reason": reason(),
            "again_after": earlier_refund,
        },
        hint=(
            "The most that can be refunded is what get_order says remains. Refunds go to the original payment method, "
            "and above the shop's limit a person must approve, whatever a call says."
        ),
        free_text=frozenset({"reason"}),
        locks=_locks,
        apply=apply,
        counts=True,
    )
