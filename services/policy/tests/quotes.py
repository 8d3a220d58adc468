"""Quotes as the shop would make them, and the pack that they are judged by."""

from datetime import UTC, datetime
from typing import Any

from contracts.canonical import sha256
from contracts.parts import CallQuote, Effect, QuoteFacts
from policy.limits import About

PACK = """\
name: acme
version: 3
currency: GBP
refund:
  automatic_up_to: 5000
  tiers:
    - up_to: 50000
    - up_to: 200000
      people: 2
      one_of_role: lead
writes:
  issue_refund: refund
  cancel_subscription: automatic
  escalate_to_human: automatic
hold:
  remind_after_seconds: 64800
  expires_after_seconds: 86400
"""

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
ABOUT = About(tenant="acme", profile="support", customer="C-1004", now=datetime(2026, 11, 2, 9, 0, tzinfo=UTC))


def read(call_id: str = "r") -> CallQuote:
    return CallQuote(call_id=call_id, tool="get_order", kind="read", arguments={}, digest=sha256(call_id))


def refund(
    call_id: str = "a",
    amount: int | None = 18000,
    *,
    today: int | None = -1,
    customer: str | None = "C-1004",
    currency: str | None = "GBP",
    again_after: str | None = None,
    tool: str = "issue_refund",
    state: str = "delivered",
    facts: dict[str, Any] | None = None,
    **more: Any,
) -> CallQuote:
    """`today` is what the customer is refunded today with this call; -1: only this. `facts` are further ones."""
    return CallQuote(
        call_id=call_id,
        tool=tool,
        kind="write",
        arguments={"order_reference": "ORD-10042"},
        subject=customer,
        effect=Effect(summary="A refund", object="ORD-10042", amount_minor=amount, currency=currency),
        facts=QuoteFacts(
            refunded_today_minor=amount if today == -1 else today, again_after=again_after, **(facts or {})
        ),
        digest=sha256([call_id, amount, currency, customer, state]),
        **more,
    )


def first_ever(amount: int) -> dict[str, Any]:
    """What the shop tells of the first refund that it ever makes, delivered just now."""
    return {
        "refunds_today_by_customer": 1,
        "refunds_today_of_tenant": 1,
        "refunded_today_of_tenant_minor": amount,
        "refunded_today_by_profile_minor": amount,
        "last_refund_at": NEVER,
        "last_declined_at": NEVER,
        "window_from": datetime.now(UTC),
    }


def write(tool: str, call_id: str = "w", **more: Any) -> CallQuote:
    return CallQuote(
        call_id=call_id,
        tool=tool,
        kind="write",
        arguments={},
        subject="C-1004",
        effect=Effect(summary="Something changes", object="SUB-1"),
        digest=sha256([call_id, tool]),
        **more,
    )
