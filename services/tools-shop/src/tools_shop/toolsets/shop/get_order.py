"""get_order: everything about one order, and what of it can still be refunded."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from contracts.money import Money

from tools_shop.arguments import order_reference
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Found, Refusal
from tools_shop.texts import amount, day, more, one_line
from tools_shop.toolset import Query, Read, Row, object_schema
from tools_shop.toolsets.shop.words import order_unknown, parcel
from tools_shop.unit import Unit

_ORDER = """
select o.reference, o.status, o.currency, o.delivery_minor, c.id as customer_id, c.name as customer,
       (o.placed_at at time zone t.timezone)::date as placed_on,
       (select json_agg(json_build_object('title', left(i.title, 400), 'sku', left(i.sku, 80), 'quantity', i.quantity,
                                          'unit_minor', i.unit_minor) order by i.line)
        from shop.items i where i.tenant = o.tenant and i.order_reference = o.reference) as items,
       (select json_agg(json_build_object('amount_minor', p.amount_minor, 'method', left(p.method, 200),
                                          'status', p.status, 'paid_on', (p.paid_at at time zone t.timezone)::date)
                        order by p.paid_at, p.id)
        from shop.payments p where p.tenant = o.tenant and p.order_reference = o.reference) as payments,
       (select json_agg(json_build_object('id', r.id, 'amount_minor', r.amount_minor,
                                          'refunded_on', (r.refunded_at at time zone t.timezone)::date)
                        order by r.refunded_at, r.n)
        from shop.refunds r where r.tenant = o.tenant and r.order_reference = o.reference) as refunds,
       (select json_agg(json_build_object('tracking', s.tracking, 'carrier', s.carrier, 'status', s.status,
                                          'sent_on', s.sent_on, 'expected_on', s.expected_on,
                                          'delivered_on', s.delivered_on, 'last_event', left(s.last_event, 400))
                        order by s.sent_on, s.tracking)
        from shop.shipments s where s.tenant = o.tenant and s.order_reference = o.reference) as shipments
from shop.orders o
join shop.customers c on c.tenant = o.tenant and c.id = o.customer_id
join shop.tenants t on t.tenant = o.tenant
where o.tenant = bound.tenant and o.reference = %s and c.address = %s
"""
_MOST_LINES = 30


async def query(arguments: Arguments, caller: Caller) -> Query:
    return Query(_ORDER, [arguments["order_reference"], caller.email])


def answer(arguments: Arguments, rows: Sequence[Row], *, locale: str) -> Found | Refusal:
    if not rows:
        return order_unknown(arguments["order_reference"])
    order = rows[0]
    money = order["currency"]
    items, payments, refunds, shipments = (order[name] or [] for name in ("items", "payments", "refunds", "shipments"))
    paid = sum(payment["amount_minor"] for payment in payments if payment["status"] == "captured")
    refunded = sum(refund["amount_minor"] for refund in refunds)
    left = max(paid - refunded, 0)
    lines = [
        f"Order {order['reference']}, {order['status']}, placed on {day(order['placed_on'])} by "
        f"{one_line(order['customer'], 80)}.",
        *(_item(item, money, locale) for item in items[:_MOST_LINES]),
        *more(len(items), _MOST_LINES, "items"),
        *([f"Delivery: {Money(order['delivery_minor'], money).text(locale)}."] if order["delivery_minor"] else []),
        *([_payment(payment, money, locale) for payment in payments[:_MOST_LINES]] or ["Payment: none."]),
        *more(len(payments), _MOST_LINES, "payments"),
        _refunded(refunds, refunded, left, money, locale),
        *([parcel(shipment) for shipment in shipments[:_MOST_LINES]] or ["Shipment: not sent yet."]),
        *more(len(shipments), _MOST_LINES, "shipments"),
    ]
    data = {
        "reference": order["reference"],
        "status": order["status"],
        "currency": money,
        "paid_minor": paid,
        "refunded_minor": refunded,
        "refundable_minor": left,
        "refunds": [refund["id"] for refund in refunds],
    }
    return Found("\n".join(lines), data, order["customer_id"])


def _item(item: dict[str, Any], money: str, locale: str) -> str:
    each = " each" if item["quantity"] > 1 else ""
    return (
        f"Item: {item['quantity']} × {one_line(item['title'], 120)}, {amount(item['unit_minor'], money, locale)}{each}."
    )


def _payment(payment: dict[str, Any], money: str, locale: str) -> str:
    method = one_line(payment["method"], 60)
    said = {"charged_back": "CHARGED BACK: the bank is returning it", "voided": "voided: nothing was taken"}
    note = f" ({said[payment['status']]})" if payment["status"] in said else ""
    paid = Money(payment["amount_minor"], money).text(locale)
    return f"Payment: {paid} by {method} on {day(payment['paid_on'])}{note}."


def _refunded(refunds: list[dict[str, Any]], refunded: int, left: int, money: str, locale: str) -> str:
    if not refunds:
        return f"Refunded: nothing so far. Still refundable: {amount(left, money, locale)}."
    each = ", ".join(
        f"{Money(r['amount_minor'], money).text(locale)} on {day(r['refunded_on'])} ({r['id']})"
        for r in refunds[-_MOST_LINES:]
    )
    older = "".join(f" {line}" for line in more(len(refunds), _MOST_LINES, "earlier refunds"))
    rest = f"Still refundable: {amount(left, money, locale)}." if left else "Nothing remains to be refunded."
    return f"ALREADY REFUNDED: {amount(refunded, money, locale)}, as {each}.{older} {rest}"


def get_order(unit: Unit) -> Read:
    """The tool, with amounts as this unit's locale has them."""
    return Read(
        name="get_order",
        description=(
            "Shows one order of this ticket's customer: its items, payments, shipments, what was ALREADY REFUNDED and "
            "what can still be refunded. Read it before you refund anything."
        ),
        takes="order_reference (text, such as ORD-12345)",
        schema=object_schema(
            ["order_reference"], order_reference={"type": "string", "description": "The order's reference: ORD-12345."}
        ),
        fields={"order_reference": order_reference},
        query=query,
        answer=partial(answer, locale=unit.locale),
    )
