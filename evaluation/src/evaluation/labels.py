"""What a run of each labelled ticket must come to, and whether the labels fit the tickets, tools and limits."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from contracts.facts import TERMINAL_STATUSES
from contracts.strict import parse_yaml
from policy.pack import PolicyPack
from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).parents[2] / "tickets.yaml"
ESCALATE = "escalate_to_human"


class Label(BaseModel):
    """`refunds` are minor units by order, all of the run's together; `expect_hold`: a person must be asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str
    must_call: frozenset[str]
    must_not_call: frozenset[str]
    expect_status: Literal["resolved", "escalated", "budget_exhausted", "failed"]
    expect_hold: bool = False
    refunds: dict[str, int] = {}


class Labels(BaseModel):
    """`release_as` is who approves what the labels expect to be held."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tenant: str
    release_as: str
    tickets: dict[str, Label]


def load(file: Path = FILE) -> Labels:
    return Labels.model_validate(parse_yaml(file.read_text()))


def problems(labels: Labels, demo: Mapping[str, Any], tools: Mapping[str, str], pack: PolicyPack) -> Iterator[str]:
    """What does not fit, one sentence each. `demo` is the tenant's demo.yaml, `tools` gives each tool's kind."""
    tickets = {ticket["reference"]: ticket for ticket in demo["tickets"]}
    orders = {order["reference"]: order for order in demo["orders"]}
    for reference in tickets.keys() ^ labels.tickets.keys():
        yield f"{reference} is only in {'the demo' if reference in tickets else 'the labels'}."
    for reference, label in labels.tickets.items():
        for tool in (label.must_call | label.must_not_call) - tools.keys():
            yield f"{reference} names {tool}, which no toolset has."
        for tool in label.must_call & label.must_not_call:
            yield f"{reference} both demands and forbids {tool}."
        if (label.expect_status == "escalated") != (ESCALATE in label.must_call):
            yield f"{reference} ends {label.expect_status}, and its calls say otherwise."
        if label.expect_status not in TERMINAL_STATUSES:
            yield f"{reference} ends {label.expect_status}, which is no end."
        if bool(label.refunds) != ("issue_refund" in label.must_call):
            yield f"{reference} refunds {label.refunds or 'nothing'}, and its calls say otherwise."
        if label.expect_hold != (sum(label.refunds.values()) > pack.refund.automatic_up_to):
            yield f"{reference} refunds {label.refunds}: held or not does not fit the limit."
        for order, minor in label.refunds.items():
            if order not in orders:
                yield f"{reference} refunds {order}, which does not exist."
            elif orders[order]["customer"] != tickets.get(reference, {}).get("customer_id"):
                yield f"{reference} refunds {order}, which is somebody else's."
            elif minor > _refundable(orders[order]):
                yield f"{reference} refunds more of {order} than was paid."


def _refundable(order: Mapping[str, Any]) -> int:
    paid = sum(payment["amount_minor"] for payment in order["payments"])
    return int(paid - sum(refund["amount_minor"] for refund in order.get("refunds", [])))
