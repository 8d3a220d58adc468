"""get_shipment_status: where an order's parcels are."""

from collections.abc import Sequence

from tools_shop.arguments import order_reference
from tools_shop.caller import Caller
from tools_shop.outcomes import Arguments, Found, Refusal
from tools_shop.texts import more, one_line
from tools_shop.toolset import Query, Read, Row, object_schema
from tools_shop.toolsets.shop.words import order_unknown, parcel

_SHIPMENTS = """
select o.reference, o.status as order_status, c.id as customer_id,
       s.tracking, s.carrier, s.status, s.sent_on, s.expected_on, s.delivered_on, left(s.last_event, 400) as last_event,
       count(s.tracking) over () as parcels
from shop.orders o
join shop.customers c on c.tenant = o.tenant and c.id = o.customer_id
left join shop.shipments s on s.tenant = o.tenant and s.order_reference = o.reference
where o.tenant = bound.tenant and o.reference = %s and c.address = %s
order by s.sent_on, s.tracking limit 20
"""


async def query(arguments: Arguments, caller: Caller) -> Query:
    return Query(_SHIPMENTS, [arguments["order_reference"], caller.email])


def answer(arguments: Arguments, rows: Sequence[Row]) -> Found | Refusal:
    if not rows:
        return order_unknown(arguments["order_reference"])
    order = rows[0]
    sent = [row for row in rows if row["tracking"]]
    data = {
        "reference": order["reference"],
        "parcels": order["parcels"],
        "shipments": [{"tracking": one_line(row["tracking"], 40), "status": row["status"]} for row in sent],
    }
    if not sent:
        text = f"Order {order['reference']} has not been sent yet. Its status is: {order['order_status']}."
        return Found(text, data, order["customer_id"])
    count = order["parcels"]
    parcels = "one parcel" if count == 1 else f"{count} parcels"
    lines = [*(parcel(row) for row in sent), *more(count, len(sent), "parcels, sent later")]
    text = "\n".join([f"Order {order['reference']} was sent in {parcels}.", *lines])
    return Found(text, data, order["customer_id"])


GET_SHIPMENT_STATUS = Read(
    name="get_shipment_status",
    description="Shows where the parcels of one order of this ticket's customer are, and when they are expected.",
    takes="order_reference (text, such as ORD-12345)",
    schema=object_schema(
        ["order_reference"], order_reference={"type": "string", "description": "The order's reference: ORD-12345."}
    ),
    fields={"order_reference": order_reference},
    query=query,
    answer=answer,
)
