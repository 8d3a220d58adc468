"""Erases a customer from the desk: their runs end and say that they were erased, tickets and views hold nothing."""

import asyncio
from collections.abc import Sequence

from contracts.bus import Bus
from contracts.events import Draft
from contracts.facts import RunCancelled, RunErased
from contracts.handler import say
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Json, Person
from contracts.personal import ERASED
from contracts.subjects import RunKey
from contracts.tenant_facts import CustomerErased
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, ConfigDict, SecretStr

from gateway.database import Connection, open_pool
from gateway.desk import Desk
from gateway.settings import Settings

FOLLOWED_WITHIN = 60.0  # seconds in which the views must have caught up


class Refused(Exception):
    """The token's bearer may not erase anybody here, or the views do not follow."""


class Erased(BaseModel):
    """The customer's runs. `clear` are those that began before texts were sealed: the log still has theirs."""

    runs: list[str] = []
    clear: list[str] = []


class Erase(BaseModel):
    """Who is erased, by whom. `emails` are the addresses that the shop knows the customer by."""

    model_config = ConfigDict(extra="forbid")

    token: SecretStr
    tenant: str
    customer: str
    emails: list[str]


async def erase(settings: Settings, asked: Erase) -> Erased:
    """The customer's runs, all of them ended and told by now that they were erased. Safe to repeat.

    Raises Refused where approvals does not take the token for it; then nothing was changed.
    """
    bus = await Bus.connect(settings, "gateway")
    try:
        by = await _authorised(bus, asked)
        async with open_pool(settings.postgres_dsn.get_secret_value(), size=2) as pool:
            return await _erase(JetStreamLog(bus.nc, keys=bus.keys), pool, asked, by)
    finally:
        await bus.close()


async def _authorised(bus: Bus, asked: Erase) -> Person:
    request: Json = {
        "token": asked.token.get_secret_value(),
        "say": CustomerErased.name,
        "customer": asked.customer,
    }
    answer = await bus.ask("ask.approvals.tenant", request)
    if answer["status"] != 200:
        raise Refused(f"{answer.get('title')}: {answer.get('detail')}")
    event = answer["event"]
    if event["tenant"] != asked.tenant:
        raise Refused(f"The token is one of {event['tenant']}, not of {asked.tenant}. Nothing was erased.")
    return CustomerErased.model_validate(event["data"], extra="ignore").by


async def _erase(log: JetStreamLog, pool: AsyncConnectionPool[Connection], asked: Erase, by: Person) -> Erased:
    desk = Desk(pool)
    # The tickets first: a run that starts from now on has nothing personal to begin with.
    async with desk.of(asked.tenant) as connection:
        tickets = await _blank_tickets(connection, asked)
    runs = [key for ticket in tickets for key in await _runs_of(log, asked.tenant, ticket)]
    last, erased = 0, Erased()
    for key in runs:
        await say(log, key, lambda history: _end(history, by))
        said = await say(log, key, lambda history: _mark(history, by))
        last = max(last, said.sequence if said else 0)
        erased.runs.append(key.run)
        if (await log.read(key)).events[0].personal == "clear":
            erased.clear.append(key.run)
    await _views_hold(desk, last)
    async with desk.of(asked.tenant) as connection:
        await connection.execute(
            "update desk.runs set customer_email = %s where run = any(%s)", [ERASED, [key.run for key in runs]]
        )
    return erased


async def _blank_tickets(connection: Connection, asked: Erase) -> Sequence[str]:
    """Empties the customer's tickets but for the shop's id, by which they are found again; their references."""
    cursor = await connection.execute(
        "update desk.tickets set customer_email = %s, customer_name = null, customer_id = %s, subject = %s, body = %s,"
        " request_digest = null where customer_id = %s or lower(customer_email) = any(%s) returning reference",
        [ERASED, asked.customer, ERASED, ERASED, asked.customer, [email.lower() for email in asked.emails]],
    )
    return [row["reference"] for row in await cursor.fetchall()]


async def _runs_of(log: JetStreamLog, tenant: str, ticket: str) -> list[RunKey]:
    """A ticket's runs, from the log itself: views may lag."""
    found: list[RunKey] = []
    while await log.head(key := RunKey(tenant, f"{ticket}-{len(found) + 1}")) is not None:
        found.append(key)
    return found


def _end(history: History, by: Person) -> Draft | None:
    if history.end is not None:
        return None
    return Draft(RunCancelled(by=by, reason="The customer was erased."), None, "erased")


def _mark(history: History, by: Person) -> Draft | None:
    return None if history.last(RunErased) else Draft(RunErased(by=by), None, "erased")


async def _views_hold(desk: Desk, sequence: int) -> None:
    try:
        async with asyncio.timeout(FOLLOWED_WITHIN):
            while await desk.position() < sequence:  # noqa: ASYNC110 - another process moves it
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise Refused(
            "The lists do not follow the log, so they may still hold what was to be erased. Is the gateway running? "
            "Start it and erase again; what was done already is done."
        ) from None
