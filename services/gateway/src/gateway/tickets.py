"""Tickets: what is known of one, and how it is found and opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.addresses import comparable
from contracts.parts import Customer
from contracts.personal import ERASED
from pydantic import BaseModel

from gateway.database import Connection, one
from gateway.ticket_changes import NOTIFY
from gateway.views import RunView

TICKET_STATUSES = ("open", "in_progress", "awaiting_approval", "awaiting_customer", "resolved", "escalated")
_TICKET = """
    select t.reference as ticket, t.status, t.channel, t.subject, t.body, t.customer_email, t.customer_name,
           t.customer_id, t.opened_at, t.latest_run as run, r.state::text as state
      from desk.tickets t left join desk.runs r on r.tenant = t.tenant and r.run = t.latest_run
"""


class TicketView(BaseModel):
    """A ticket as lists show it, with the view of its latest run."""

    ticket: str
    status: str
    channel: str
    subject: str
    body: str
    customer: Customer
    opened_at: datetime
    run: str | None = None
    latest: RunView | None = None

    @property
    def erased(self) -> bool:
        """Whether its customer was erased: nobody can be answered any more."""
        return self.customer.email == ERASED


class NewTicket(BaseModel):
    """What is known of a ticket before it has a reference (or with the one that it brings along)."""

    reference: str | None = None
    channel: str = "ticket"
    customer: Customer
    subject: str
    body: str
    opened_at: datetime


@dataclass(frozen=True, slots=True)
class KeyTaken:
    """The idempotency key was used before, for another request."""


async def newest(
    connection: Connection, statuses: Sequence[str], before: tuple[datetime, str] | None, limit: int
) -> list[TicketView]:
    """The newest first; `before` is the opening time and reference of the last one of the page before."""
    cursor = await connection.execute(
        _TICKET + " where t.status = any(%s) and (%s::timestamptz is null or (t.opened_at, t.reference) < (%s, %s))"
        " order by t.opened_at desc, t.reference desc limit %s",
        [list(statuses), *((before[0], *before) if before else (None, None, None)), limit],
    )
    return [_ticket(row) for row in await cursor.fetchall()]


async def named(connection: Connection, reference: str) -> TicketView | None:
    cursor = await connection.execute(_TICKET + " where t.reference = %s", [reference])
    row = await cursor.fetchone()
    return _ticket(row) if row else None


async def kept(connection: Connection, reference: str) -> TicketView | None:
    """The ticket; to the end of the transaction nobody is erased from it."""
    cursor = await connection.execute(_TICKET + " where t.reference = %s for key share of t", [reference])
    row = await cursor.fetchone()
    return _ticket(row) if row else None


async def blanked(connection: Connection, customer: str, emails: Sequence[str]) -> list[str]:
    """Empties a customer's tickets but for the shop's id, by which they are found again; their references.

    Waits for whoever keeps one of them.
    """
    # An update alone would not wait for them: it leaves the row's key as it is.
    cursor = await connection.execute(
        "select reference from desk.tickets where customer_id = %s or customer_address = any(%s)"
        " order by reference for update",
        [customer, [address for email in emails if (address := comparable(email)) is not None]],
    )
    theirs = [row["reference"] for row in await cursor.fetchall()]
    await connection.execute(
        "update desk.tickets set customer_email = %s, customer_address = null, customer_name = null, customer_id = %s,"
        " subject = %s, body = %s, request_digest = null where reference = any(%s)",
        [ERASED, customer, ERASED, ERASED, theirs],
    )
    await connection.execute(NOTIFY)
    return theirs


async def opened(
    connection: Connection, tenant: str, new: NewTicket, key: str | None, digest: str | None
) -> TicketView | KeyTaken:
    """The ticket under its own reference or the tenant's next; the one that the same request opened before."""
    await connection.execute("select pg_advisory_xact_lock(hashtext('desk.tickets'), hashtext(%s))", [tenant])
    if key is not None:
        cursor = await connection.execute(
            "select reference, request_digest from desk.tickets where request_key = %s", [key]
        )
        if known := await cursor.fetchone():
            if known["request_digest"] != digest:
                return KeyTaken()
            cursor = await connection.execute(_TICKET + " where t.reference = %s", [known["reference"]])
            return _ticket(await one(cursor))
    reference = new.reference or await next_reference(connection)
    await connection.execute(
        "insert into desk.tickets (tenant, reference, channel, customer_email, customer_address, customer_name,"
        " customer_id, subject, body, opened_at, request_key, request_digest)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) on conflict (tenant, reference) do nothing",
        [
            tenant,
            reference,
            new.channel,
            new.customer.email,
            comparable(new.customer.email),
            new.customer.name,
            new.customer.id,
            new.subject,
            new.body,
            new.opened_at,
            key,
            digest,
        ],
    )
    await connection.execute(NOTIFY)
    cursor = await connection.execute(_TICKET + " where t.reference = %s", [reference])
    return _ticket(await one(cursor))


async def next_reference(connection: Connection) -> str:
    """One more than the highest number so far, found at the top of an index. Whoever asks holds the tenant's lock."""
    cursor = await connection.execute(
        r"select substring(reference from '^TCK-(\d{1,9})$')::integer as n from desk.tickets"
        r" order by substring(reference from '^TCK-(\d{1,9})$')::integer desc nulls last limit 1"
    )
    row = await cursor.fetchone()
    return f"TCK-{1 + ((row and row['n']) or 1000)}"


def _ticket(row: dict[str, Any]) -> TicketView:
    customer = Customer(email=row["customer_email"], name=row["customer_name"], id=row["customer_id"])
    latest = RunView.model_validate_json(row["state"]) if row["state"] else None
    return TicketView(**{k: row[k] for k in TicketView.model_fields if k in row}, customer=customer, latest=latest)
