"""A gateway as it runs: on a real broker and a real database, with the demo's issuer beside it."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from contracts import service
from contracts.bus import Bus
from contracts.identity import Issuer as Believed
from contracts.log import JetStreamLog
from contracts.parts import Json
from contracts.settings import ServiceSettings
from contracts.subjects import RunKey
from contracts.topology import AUTHORS
from gateway import app
from gateway.database import Connection, open_pool
from gateway.desk import Desk
from gateway.feed import Feed
from gateway.projection import Projection
from gateway.runs import Runs
from gateway.settings import Settings
from gateway.tickets import NewTicket
from psycopg import AsyncCursor
from pydantic import SecretStr
from turngate.issuer import CLIENT, ISSUER, Issuer
from turngate.people import STAFF, Somebody
from turngate.provider import app as provider
from turngate.testing import Cluster, Database, NatsAccess

from .facts import TOM
from .told import Others

Answer = Json | Callable[[Json], Awaitable[Json]]
TENANTS = ["acme", "globex"]
SECRET = "what the console and its issuer know"
PEOPLE = {who.subject: who for who in (*STAFF, Somebody("cust-C-1004", "acme", "customer", "Tom"))}


@dataclass
class World:
    """What a test reaches: the gateway's address, tokens for people, and the other services' voices."""

    url: str
    sign_in_url: str
    sign_in_link: str
    settings: Settings
    desk: Desk
    others: Others
    token: Callable[[str], str]
    runs: Runs
    projection: Projection
    nats: NatsAccess
    stack: AsyncExitStack
    superuser: str
    stop_gateway: Callable[[], Awaitable[None]]

    def client(self, person: str = "alex", **more: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token(person)}"}, timeout=20, **more
        )

    def pays_in_pounds(self) -> None:
        """Before anybody asks for a page: a tenant's file is read once."""
        folder = self.settings.tenants_dir / "acme"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tenant.yaml").write_text("policy_pack: acme\ncurrency: GBP\n")

    async def sign_in(
        self, client: httpx.AsyncClient, person: str, tenant: str = "acme", go_on: str = "/tickets"
    ) -> httpx.Response:
        """Does what a browser does, up to the answer that brings the person back into the console."""
        chosen = await self.choose(client, person, tenant, go_on)
        assert chosen.status_code == 303, chosen.text
        return await client.get(chosen.headers["location"])

    async def choose(
        self, client: httpx.AsyncClient, person: str, tenant: str = "acme", go_on: str = "/tickets"
    ) -> httpx.Response:
        """Goes to the issuer and says who is there: its answer leads back to the console."""
        async with httpx.AsyncClient() as owner:
            entered = (await owner.get(self.sign_in_link)).headers["set-cookie"].partition(";")[0]
        led = await client.get("/sign-in", params={"next": go_on})
        asked = httpx.URL(led.headers["location"])
        form = dict(asked.params) | {"as": person, "tenant": tenant}
        return await client.post(f"{self.sign_in_url}/authorize", data=form, headers={"Cookie": entered})

    async def seen(self, run: str, tenant: str = "acme") -> None:
        """Returns once the views hold all of the run that its log holds now."""
        head = (await self.runs.history(tenant, run)).head
        async with asyncio.timeout(20):
            while head and await self.desk.position() < head.sequence:
                await self.projection.reach(head.sequence)

    def key(self, run: str, tenant: str = "acme") -> RunKey:
        return RunKey(tenant, run)

    async def approvals(self, answer: Answer) -> list[Json]:
        """Somebody decides for approvals; the list fills with what they were asked."""
        return await self.answering("approvals", "ask.approvals.decide", answer)

    async def answering(
        self, service: str, subject: str, answer: Json | Callable[[Json], Awaitable[Json]]
    ) -> list[Json]:
        """Somebody answers for a service; the list fills with what they were asked."""
        asked: list[Json] = []

        async def reply(body: Json) -> Json:
            asked.append(body)
            return answer if isinstance(answer, dict) else await answer(body)

        bus = await connect(self.nats, service)
        self.stack.push_async_callback(bus.close)
        await bus.answer(subject, reply)
        await bus.nc.flush()
        return asked

    async def dead(self, service: str, letter: Json) -> None:
        """What a service could not handle, however often it tried."""
        bus = await connect(self.nats, service)
        await bus.nc.request(f"dead.{service}", json.dumps(letter).encode(), timeout=5)
        await bus.close()

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[tuple[Desk, list[str]]]:
        """A desk of its own, and the statements about the desk's tables that it has run."""
        asked: list[str] = []

        class Counted(AsyncCursor[dict[str, Any]]):
            async def execute(self, query: Any, *given: Any, **more: Any) -> "Counted":
                if "desk." in str(query):
                    asked.append(str(query))
                return await super().execute(query, *given, **more)

        async def counts(connection: Connection) -> None:
            connection.cursor_factory = Counted

        async with open_pool(self.settings.postgres_dsn.get_secret_value(), configure=counts) as pool:
            yield Desk(pool), asked

    async def ticket(self, reference: str = "TCK-2004", tenant: str = "acme", **more: Any) -> str:
        values: dict[str, Any] = {"customer": TOM, "subject": "Jacket too small", "body": "Please refund it."} | more
        await self.desk.open_ticket(tenant, NewTicket(reference=reference, opened_at=datetime.now(UTC), **values))
        return reference


@pytest.fixture
async def world(fresh_nats: NatsAccess, cluster: Cluster, tmp_path: Path) -> AsyncIterator[World]:
    with cluster.database() as database:
        async with build(fresh_nats, database, tmp_path) as world:
            yield world


@asynccontextmanager
async def build(nats: NatsAccess, database: Database, home: Path, port: int | None = None) -> AsyncIterator[World]:
    issuer, dsn, superuser = Issuer(home / "issuer"), database.gateway, database.superuser
    issuer.prepare()
    async with AsyncExitStack() as stack:
        sign_in_url = await stack.enter_async_context(serving(provider(issuer, list(PEOPLE.values()), SECRET)))
        settings = settings_for(nats, dsn, issuer, home, port or free_port(), sign_in_url)
        running = await stack.enter_async_context(AsyncExitStack())
        bus = await running.enter_async_context(gateway(settings))
        pool = open_pool(dsn, size=2)
        await pool.open()
        stack.push_async_callback(pool.close)
        desk, log = Desk(pool), JetStreamLog(bus.nc, keys=bus.keys)
        yield World(
            url=f"http://127.0.0.1:{settings.http_port}",
            sign_in_url=sign_in_url,
            sign_in_link=f"{sign_in_url}/enter?key={issuer.secret}",
            settings=settings,
            desk=desk,
            others=Others({author: await _log_of(nats, name, stack) for name, author in AUTHORS.items()}),
            token=lambda person: issuer.issue_to(PEOPLE[person]),
            runs=Runs(log, bus, desk, None),
            projection=Projection(dsn, desk, Feed(bus, log)),
            nats=nats,
            stack=stack,
            superuser=superuser,
            stop_gateway=running.aclose,
        )


@asynccontextmanager
async def gateway(settings: Settings) -> AsyncIterator[Bus]:
    """A gateway as `python -m gateway` runs it."""
    async with service.running("gateway", settings, app.start, outages=(psycopg.OperationalError,)) as bus:
        yield bus


def settings_for(nats: NatsAccess, dsn: str, issuer: Issuer, home: Path, port: int, sign_in_url: str) -> Settings:
    user, password = nats.user("gateway")
    return Settings(
        nats_url=nats.url,
        nats_user=user,
        nats_password=SecretStr(password),
        postgres_dsn=SecretStr(dsn),
        issuers=[Believed(issuer=ISSUER, jwks=str(issuer.jwks), tenants=TENANTS)],
        tenants_dir=home / "tenants",
        http_port=port,
        sign_in_client_id=CLIENT,
        sign_in_client_secret=SecretStr(SECRET),
        sign_in_url=sign_in_url,
        heartbeat_seconds=1,
        max_streams_per_person=12,
    )


async def connect(nats: NatsAccess, service: str) -> Bus:
    user, password = nats.user(service)
    return await Bus.connect(
        ServiceSettings(nats_url=nats.url, nats_user=user, nats_password=SecretStr(password)), service
    )


async def _log_of(nats: NatsAccess, service: str, stack: AsyncExitStack) -> JetStreamLog:
    bus = await connect(nats, service)
    stack.push_async_callback(bus.close)
    log = JetStreamLog(bus.nc, keys=bus.keys)
    bus.on_error.append(log.on_error)
    return log


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[str]:
    """Any application on a free port."""
    async with app.listening(application, "127.0.0.1", port := free_port()):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
