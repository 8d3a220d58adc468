"""Approvals on a real broker, the gateway that asks it, and those that it asks."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from approvals import app, domain
from approvals.settings import Settings
from contracts import setup
from contracts.bus import Bus
from contracts.facts import TurnHeld
from contracts.log import JetStreamLog
from contracts.parts import Hold, Json
from contracts.settings import ServiceSettings
from contracts.subjects import RunKey
from contracts.testing import World
from pydantic import SecretStr
from turngate.embedded.child import start
from turngate.embedded.nats import READER, SERVICES, SETUP, Nats
from turngate.embedded.passwords import Passwords
from turngate.testing import NatsAccess

from .tokens import Mint
from .told import KEY, PACK

own_server = pytest.mark.skipif("NATS_URL" in os.environ, reason="NATS_URL names a server that no test may stop")


@asynccontextmanager
async def approvals(server: NatsAccess, mint: Mint, **more: Any) -> AsyncIterator[None]:
    user, password = server.user("approvals")
    settings = Settings(
        nats_url=server.url, nats_user=user, nats_password=SecretStr(password), issuers=[mint.issuer], **more
    )
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(settings, "approvals")
        stack.push_async_callback(bus.close)
        log = JetStreamLog(bus.nc, domain.READS)
        bus.on_error.append(log.on_error)
        await app.start(bus, log, settings, stack)
        await bus.nc.flush()  # the broker knows the subscriptions
        yield


class Gateway:
    """Hands on decisions with people's tokens."""

    def __init__(self, bus: Bus, mint: Mint) -> None:
        self.bus, self.mint = bus, mint

    async def ask(
        self,
        who: str,
        held: Hold,
        decision: str = "approve",
        *,
        role: str = "approver",
        token: str | None = None,
        patience: float = 10,
        **more: Any,
    ) -> Json:
        body = {
            "token": token or self.mint.token(who, role),
            "run": KEY.run,
            "turn": 1,
            "call_id": held.call_id,
            "digest": held.digest,
            "decision": decision,
            "note": "",
            "edited": None,
        }
        return await self.bus.ask("ask.approvals.decide", body | more, timeout=patience)

    async def say(self, who: str, role: str, body: Json) -> Json:
        """A word of theirs about their tenant."""
        return await self.bus.ask("ask.approvals.tenant", {"token": self.mint.token(who, role)} | body)


class Server:
    """A nats-server with a fixed port and store, which a test may kill and start again."""

    def __init__(self, directory: Path) -> None:
        self._nats = Nats(directory, Passwords(directory / "nats-passwords.json"), durable=False, passwords_too=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def access(self) -> NatsAccess:
        return NatsAccess(self._nats.url, {user: self._nats.password(user) for user in (SETUP, READER, *SERVICES)})

    def start(self) -> None:
        self._process = start(self._nats.child())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create_streams(self) -> None:
        asyncio.run(setup.create_streams(self.access.url, *self.access.user(SETUP)))


@asynccontextmanager
async def connected(server: NatsAccess, service: str) -> AsyncIterator[Bus]:
    user, password = server.user(service)
    settings = ServiceSettings(nats_url=server.url, nats_user=user, nats_password=SecretStr(password))
    bus = await Bus.connect(settings, service)
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def answering(
    server: NatsAccess, service: str, subject: str, answer: Callable[[Json], Json]
) -> AsyncIterator[list[Json]]:
    """Another service that answers one question; what it was asked."""
    asked: list[Json] = []

    async def reply(body: Json) -> Json:
        asked.append(body)
        return answer(body)

    async with connected(server, service) as bus:
        await bus.answer(subject, reply)
        await bus.nc.flush()
        yield asked


async def held(
    others: World,
    *holds: Hold,
    remind: float = 3600,
    escalate: float | None = None,
    expire: float = 7200,
    key: RunKey = KEY,
) -> None:
    now = datetime.now(UTC)
    fact = TurnHeld(
        turn=1,
        attempt=1,
        pack=PACK,
        holds=list(holds),
        remind_at=now + timedelta(seconds=remind),
        escalate_at=now + timedelta(seconds=escalate) if escalate is not None else None,
        expires_at=now + timedelta(seconds=expire),
    )
    await others.say(key, fact)
