"""Approvals on a real broker, the gateway that asks it, and those that it asks."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
import pytest
from approvals import app, domain
from approvals.settings import Settings
from contracts import asks, service
from contracts.bus import Bus
from contracts.facts import TurnHeld
from contracts.parts import Hold, Json
from contracts.settings import ServiceSettings
from contracts.subjects import RunKey
from contracts.testing import PATIENCE, World
from nats.js.api import RawStreamMsg
from nats.js.errors import NotFoundError
from pydantic import SecretStr
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
    async with service.running("approvals", settings, app.start, reads=domain.READS):
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
        return await self.bus.ask(asks.DECIDE, body | more, timeout=patience)

    async def say(self, who: str, role: str, body: Json) -> Json:
        """A word of theirs about their tenant."""
        return await self.bus.ask(asks.OF_TENANT, {"token": self.mint.token(who, role)} | body)


@asynccontextmanager
async def connected(server: NatsAccess, name: str) -> AsyncIterator[Bus]:
    user, password = server.user(name)
    settings = ServiceSettings(nats_url=server.url, nats_user=user, nats_password=SecretStr(password))
    bus = await Bus.connect(settings, name)
    try:
        yield bus
    finally:
        await bus.close()


@asynccontextmanager
async def answering(
    server: NatsAccess, name: str, subject: str, answer: Callable[[Json], Json]
) -> AsyncIterator[list[Json]]:
    """Another service that answers one question; what it was asked."""
    asked: list[Json] = []

    async def reply(body: Json) -> Json:
        asked.append(body)
        return answer(body)

    async with connected(server, name) as bus:
        await bus.answer(subject, reply)
        await bus.nc.flush()
        yield asked


async def stored(server: NatsAccess, stream: str, subject: str) -> RawStreamMsg:
    """A stream's last message of that subject, once there is one."""
    user, password = server.user("setup")
    client = await nats.connect(server.url, user=user, password=password)
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await client.jetstream().get_last_msg(stream, subject)
                except NotFoundError:
                    await asyncio.sleep(0.02)
    finally:
        await client.close()


async def held(
    others: World,
    *holds: Hold,
    remind: float = 3600,
    escalate: float | None = None,
    expire: float = 7200,
    key: RunKey = KEY,
    attempt: int = 1,
) -> None:
    now = datetime.now(UTC)
    fact = TurnHeld(
        turn=1,
        attempt=attempt,
        pack=PACK,
        holds=list(holds),
        remind_at=now + timedelta(seconds=remind),
        escalate_at=now + timedelta(seconds=escalate) if escalate is not None else None,
        expires_at=now + timedelta(seconds=expire),
    )
    await others.say(key, fact)
