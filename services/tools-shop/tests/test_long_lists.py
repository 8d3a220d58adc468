"""No list that a tool shows is cut without a word: it says how many are left out, and sums are over all."""

from tools_shop.texts import more

from .shops import Shop

ORDER = "ORD-10042"


def test_a_whole_list_says_nothing_more() -> None:
    assert more(30, 30, "items") == []
    assert more(0, 0, "items") == []
    assert more(31, 30, "items") == ["And 1 more items, which are not shown."]


async def test_a_customer_of_many_orders_is_shown_how_many_there_are(acme: Shop) -> None:
    for number in range(25):
        acme.rows(
            "insert into shop.orders (tenant, reference, customer_id, currency, status, placed_at)"
            " values (%s, %s, 'C-1004', 'GBP', 'delivered', now() - interval '400 days')",
            acme.tenant,
            f"ORD-555{number:03d}",
        )

    [found] = await acme.run(("find_customer", {"query": "Tom Whitfield"}))

    assert ORDER in found.content
    assert found.data["order_count"] == 26
    assert len(found.data["orders"]) == 20
    assert found.content.endswith("And 6 more older orders, which are not shown.")


async def test_an_order_of_many_items_payments_and_refunds_says_what_is_left_out(acme: Shop) -> None:
    for number in range(40):
        acme.rows(
            "insert into shop.items values (%s, %s, %s, %s, 'A thing', 1, 100)",
            acme.tenant,
            ORDER,
            100 + number,
            f"SKU-{number}",
        )
        acme.rows(
            "insert into shop.payments values (%s, %s, %s, 100, 'Visa ending 0001', 'captured', now())",
            acme.tenant,
            f"PAY-9{number}",
            ORDER,
        )
        acme.rows(
            "insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency,"
            " reason, day, refunded_at) values (%s, %s, %s, 0, %s, 'C-1004', 100, 'GBP', 'none', current_date, now())",
            acme.tenant,
            f"RF-{number:010d}",
            f"{number:064d}",
            ORDER,
        )

    [found] = await acme.run(("get_order", {"order_reference": ORDER}))

    assert "And 11 more items, which are not shown." in found.content
    assert "And 11 more payments, which are not shown." in found.content
    assert "And 10 more earlier refunds, which are not shown." in found.content
    assert "ALREADY REFUNDED: £40.00 (4000 pence)" in found.content
    assert found.data["refunded_minor"] == 4000
    assert len(found.data["refunds"]) == 40


async def test_an_order_in_many_parcels_says_how_many_there_are(acme: Shop) -> None:
    for number in range(25):
        acme.rows(
            "insert into shop.shipments (tenant, tracking, order_reference, carrier, status, sent_on)"
            " values (%s, %s, %s, 'DPD', 'in transit', current_date)",
            acme.tenant,
            f"DPD{number:03d}",
            ORDER,
        )

    [found] = await acme.run(("get_shipment_status", {"order_reference": ORDER}))

    assert "was sent in 26 parcels." in found.content
    assert "And 6 more parcels, sent later, which are not shown." in found.content
    assert found.data["parcels"] == 26
