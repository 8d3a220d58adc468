"""The demo shop as `deploy/tenants/<tenant>/demo.yaml` has it, its days counted back from the day of seeding."""

from pathlib import Path
from typing import Annotated, Literal

from contracts.currencies import known_currency
from contracts.strict import parse_yaml
from pydantic import AfterValidator, BaseModel, ConfigDict

Paid = Annotated[str, AfterValidator(known_currency)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CustomerEntry(_Entry):
    id: str
    name: str
    email: str


class ItemEntry(_Entry):
    sku: str
    title: str
    quantity: int
    unit_minor: int


class PaymentEntry(_Entry):
    id: str
    amount_minor: int
    method: str
    paid_days_ago: int
    status: Literal["captured", "charged_back", "voided"] = "captured"


class ShipmentEntry(_Entry):
    tracking: str
    carrier: str
    status: str
    sent_days_ago: int | None = None
    expected_days_ago: int | None = None
    delivered_days_ago: int | None = None
    last_event: str | None = None


class RefundEntry(_Entry):
    amount_minor: int
    reason: str
    refunded_days_ago: int


class OrderEntry(_Entry):
    reference: str
    customer: str
    placed_days_ago: int
    status: Literal["placed", "shipped", "delivered", "cancelled"]
    currency: Paid | None = None
    delivery_minor: int = 0
    items: list[ItemEntry]
    payments: list[PaymentEntry] = []
    shipments: list[ShipmentEntry] = []
    refunds: list[RefundEntry] = []


class SubscriptionEntry(_Entry):
    reference: str
    customer: str
    plan: str
    price_minor: int
    status: Literal["active", "cancelled"]
    started_days_ago: int
    renews_days_ago: int
    minimum_until_days_ago: int | None = None
    ends_days_ago: int | None = None


class TicketEntry(_Entry):
    """Opened by the desk; here so that the whole demo is one file a tenant."""

    reference: str
    channel: Literal["ticket", "chat"]
    customer_id: str
    customer_name: str
    customer_email: str
    created_days_ago: int
    subject: str
    body: str


class DemoShop(_Entry):
    tenant: str
    name: str
    currency: Paid
    timezone: str
    floor_minor: int
    refund_window_days: int
    customers: list[CustomerEntry]
    orders: list[OrderEntry]
    subscriptions: list[SubscriptionEntry] = []
    tickets: list[TicketEntry] = []


def read(path: Path) -> DemoShop:
    """Raises pydantic.ValidationError, with the place, for what is written wrongly."""
    return DemoShop.model_validate(parse_yaml(path.read_text(encoding="utf-8")))
