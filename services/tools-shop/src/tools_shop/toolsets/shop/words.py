"""Sentences that several of the shop's tools say."""

from collections.abc import Mapping
from typing import Any

from tools_shop.outcomes import Refusal
from tools_shop.texts import day, one_line


def order_unknown(reference: str) -> Refusal:
    """The same words for an order that does not exist and for somebody else's."""
    return Refusal(
        "order-unknown",
        f"There is no order {reference} on the account of this ticket's e-mail address. "
        "Check the reference with the customer; nothing is shown of other accounts.",
    )


def parcel(shipment: Mapping[str, Any]) -> str:
    """One shipment on one line."""
    where = f"Shipment: {one_line(shipment['carrier'], 40)} {one_line(shipment['tracking'], 40)}, "
    if shipment["delivered_on"]:
        return f"{where}delivered on {day(shipment['delivered_on'])}."
    sent = f", sent on {day(shipment['sent_on'])}" if shipment["sent_on"] else ""
    due = f", expected on {day(shipment['expected_on'])}" if shipment["expected_on"] else ""
    last = f". Last seen: {one_line(shipment['last_event'], 160)}" if shipment["last_event"] else ""
    return f"{where}{one_line(shipment['status'], 40)}{sent}{due}{last}."
