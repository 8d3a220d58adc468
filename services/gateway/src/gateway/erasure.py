"""Erases a customer from the desk: their runs end and say that they were erased, tickets and views hold nothing."""

import asyncio
import secrets

from contracts.asks import OF_TENANT, AskEraseCustomer
from contracts.bus import Bus
from contracts.datakeys import JetStreamKeys, KeyStore
from contracts.events import Draft
from contracts.facts import RunCancelled, RunErased
from contracts.handler import say
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.parts import Person
from contracts.personal import ERASED
from contracts.subjects import RunKey
from contracts.tenant_facts import CustomerErased
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, ConfigDict, SecretStr

from gateway.asking import ask
from gateway.database import Connection, open_pool
from gateway.desk import Desk
from gateway.problems import Problem
from gateway.settings import Settings
from gateway.tickets import blanked

FOLLOWED_WITHIN = 60.0  # seconds in which the views must have caught up


class Refused(Exception):
    """The token's bearer may not erase anybody here, or the views do not follow."""


class Erased(BaseModel):
    """The runs whose keys are to be destroyed. `clear` are those that began before texts were sealed: the log still has
    theirs."""

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
            return await _erase(JetStreamLog(bus.nc, keys=bus.keys), JetStreamKeys(bus.nc), pool, asked, by)
    finally:
        await bus.close()


async def _authorised(bus: Bus, asked: Erase) -> Person:
    try:
        request = AskEraseCustomer(token=asked.token, customer=asked.customer, request=secrets.token_hex(16))
        answer = await ask(bus, OF_TENANT, request)
    except Problem as no:
        raise Refused(f"{no.title}: {no.detail}") from no
    event = answer["event"]
    if event["tenant"] != asked.tenant:
        raise Refused(f"The token is one of {event['tenant']}, not of {asked.tenant}. Nothing was erased.")
    return CustomerErased.model_validate(event["data"], extra="ignore").by


async def _erase(
    log: JetStreamLog, keys: KeyStore, pool: AsyncConnectionPool[Connection], asked: Erase, by: Person
) -> Erased:
    desk, erased, last = Desk(pool), Erased(), 0
    # The tickets first. It waits for who is starting one: their run is in the log then, and nobody else starts one.
    async with desk.of(asked.tenant) as connection:
        tickets = await blanked(connection, asked.customer, asked.emails)
    void: list[str] = []
    for ticket in tickets:
        runs = await _runs_of(log, asked.tenant, ticket)
        for key in runs:
            last = max(last, await _end_run(log, key, by))
            erased.runs.append(key.run)
            if (await log.read(key)).events[0].personal == "clear":
                erased.clear.append(key.run)
        following = RunKey(asked.tenant, f"{ticket}-{len(runs) + 1}")
        void += [] if await _closed(keys, following) else [following.run]
    await _views_hold(desk, last)
    async with desk.of(asked.tenant) as connection:
        await connection.execute(
            "update desk.runs set customer_email = %s, customer_address = null where run = any(%s)",
            [ERASED, erased.runs],
        )
    erased.runs += void
    return erased


async def _runs_of(log: JetStreamLog, tenant: str, ticket: str) -> list[RunKey]:
    """A ticket's runs, from the log itself: views may lag."""
    found: list[RunKey] = []
    while await log.head(key := RunKey(tenant, f"{ticket}-{len(found) + 1}")) is not None:
        found.append(key)
    return found


async def _end_run(log: JetStreamLog, key: RunKey, by: Person) -> int:
    """Ends the run and says that it was erased; the sequence of what was said last."""
    await say(log, key, lambda history: _end(history, by))
    said = await say(log, key, lambda history: _mark(history, by))
    return said.sequence if said else 0


def _end(history: History, by: Person) -> Draft | None:
    if history.end is not None:
        return None
    return Draft(RunCancelled(by=by, reason="The customer was erased."), None, "erased")


def _mark(history: History, by: Person) -> Draft | None:
    return None if history.last(RunErased) else Draft(RunErased(by=by), None, "erased")


async def _closed(keys: KeyStore, key: RunKey) -> bool:
    """Sees to it that nothing readable can begin under this key any more: a start whose confirmation was lost may still
    come to the log. False where there is a key already, which has to be destroyed with the runs' own."""
    return await keys.create(key, b"") or not await keys.get(key)


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
