"""The demo's tickets: opened on the desk from each tenant's `demo.yaml`, once."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from contracts.parts import Customer
from contracts.strict import parse_yaml

from gateway.desk import Desk
from gateway.tickets import NewTicket


def tickets(folder: Path) -> list[tuple[str, NewTicket]]:
    """Each tenant's tickets, as its file has them."""
    found = []
    for file in sorted(folder.glob("*/demo.yaml")):
        demo = parse_yaml(file.read_text()) or {}
        tenant = demo.get("tenant", file.parent.name)
        found += [(tenant, _ticket(row, number)) for number, row in enumerate(demo.get("tickets", []))]
    return found


async def seed(desk: Desk, tickets: list[tuple[str, NewTicket]]) -> int:
    """Opens what is not there yet; tickets that are there stay as they are. How many there were to open."""
    for tenant, ticket in tickets:
        await desk.open_ticket(tenant, ticket)
    return len(tickets)


def _ticket(row: dict[str, object], number: int) -> NewTicket:
    opened = datetime.now(UTC) - timedelta(days=int(str(row.get("created_days_ago", 0))), minutes=7 * number)
    return NewTicket(
        reference=str(row["reference"]),
        channel=str(row.get("channel", "ticket")),
        customer=Customer(
            email=str(row["customer_email"]),
            name=str(row["customer_name"]) if row.get("customer_name") else None,
            id=str(row["customer_id"]) if row.get("customer_id") else None,
        ),
        subject=str(row["subject"]),
        body=str(row["body"]).strip(),
        opened_at=opened,
    )
