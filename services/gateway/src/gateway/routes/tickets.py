"""Tickets: list, show, open, and start a run on one."""

import hashlib
from datetime import UTC, datetime
from typing import Annotated, Literal

from contracts.canonical import sha256
from contracts.identity import Principal
from contracts.parts import Customer
from contracts.subjects import TOKEN
from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from gateway import paging, shapes
from gateway.access import may
from gateway.domain import KEY_TAKEN
from gateway.ports import Gateway, Ports
from gateway.problems import Problem, not_found
from gateway.routes.keys import Cursor, Key, Limit, Seen
from gateway.runs import StartRun
from gateway.shown import sight
from gateway.tickets import TICKET_STATUSES, KeyTaken, NewTicket, TicketView

router = APIRouter(prefix="/v1/tickets", tags=["tickets"])
Reader = Annotated[Principal, Depends(may("read"))]
Runner = Annotated[Principal, Depends(may("run"))]
Speaker = Annotated[Principal, Depends(may("speak"))]
TicketStatus = Literal["open", "in_progress", "awaiting_approval", "awaiting_customer", "resolved", "escalated"]


class OpenTicket(BaseModel):
    """A ticket to be opened."""

    model_config = ConfigDict(extra="forbid")

    customer_email: str = Field(min_length=3, max_length=320, pattern=r"^[^@\s]+@[^@\s]+$")
    customer_name: str | None = Field(None, max_length=200)
    customer_id: str | None = Field(None, max_length=64)
    subject: str = Field(min_length=1, max_length=500)
    body: str = Field(max_length=64_000)
    channel: Literal["ticket", "chat"] = "ticket"


@router.get("", response_model=shapes.Tickets)
async def list_tickets(
    ports: Ports,
    asker: Reader,
    status: Annotated[list[TicketStatus] | None, Query()] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> shapes.Tickets:
    await ports.lists_are_current()
    found = await ports.desk.tickets(asker.tenant, status or TICKET_STATUSES, paging.read(cursor), limit)
    last = found[-1] if len(found) == limit else None
    counts = await ports.desk.counts(asker.tenant)
    seen = await (await sight(ports, asker)).tickets(found)
    return shapes.Tickets(
        tickets=[shapes.ticket(ticket) for ticket in seen],
        next=paging.write((last.opened_at, last.ticket)) if last else None,
        total=sum(counts.get(name, 0) for name in set(status or TICKET_STATUSES)),
    )


@router.post("", status_code=201, response_model=shapes.Ticket)
async def open_ticket(ports: Ports, asker: Speaker, wanted: OpenTicket, key: Key) -> shapes.Ticket:
    new = NewTicket(
        channel=wanted.channel,
        customer=Customer(email=wanted.customer_email, name=wanted.customer_name, id=wanted.customer_id),
        subject=wanted.subject,
        body=wanted.body,
        opened_at=datetime.now(UTC),
    )
    scoped = hashlib.sha256(f"{asker.issuer} {asker.subject} {key}".encode()).hexdigest()
    ticket = await ports.desk.open_ticket(asker.tenant, new, scoped, sha256(wanted.model_dump()))
    if isinstance(ticket, KeyTaken):
        raise Problem(KEY_TAKEN.status, KEY_TAKEN.title, KEY_TAKEN.detail)
    seen = await sight(ports, asker)
    return shapes.ticket(await seen.ticket(ticket))


@router.get("/{reference}", response_model=shapes.Ticket)
async def show_ticket(ports: Ports, asker: Reader, reference: str) -> shapes.Ticket:
    ticket = await find(ports, asker, reference)
    runs = await ports.desk.runs_of(asker.tenant, ticket.ticket)
    seen = await sight(ports, asker)
    return shapes.ticket(await seen.ticket(ticket), await seen.runs(runs), ports.model_waits.of)


@router.post(
    "/{reference}/runs",
    status_code=202,
    response_model=shapes.RunStartedAnswer,
    responses={200: {"model": shapes.RunStartedAnswer, "description": "The run that is there already"}},
)
async def start_run(
    seen: Seen,
    ports: Ports,
    asker: Runner,
    reference: str,
    key: Key,
    response: Response,
    wanted: StartRun | None = None,
) -> shapes.RunStartedAnswer:
    ticket = await find(ports, asker, reference, current=False)
    tenant = ports.tenants.of(asker.tenant)
    started = await ports.runs.start(ticket, tenant, asker, wanted or StartRun(), key, seen)
    response.status_code = 202 if started.new else 200
    return shapes.RunStartedAnswer(run=started.run, status=started.view.status)


async def find(ports: Gateway, asker: Principal, reference: str, *, current: bool = True) -> TicketView:
    """The ticket. Raises a 404."""
    if current:
        await ports.lists_are_current()
    ticket = await ports.desk.ticket(asker.tenant, reference) if TOKEN.match(reference) else None
    if ticket is None:
        raise not_found("ticket")
    return ticket
