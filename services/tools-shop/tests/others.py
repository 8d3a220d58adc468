"""Everyone but tools-shop: what they say, said on a real broker by one user; and tools-shop itself as it hears them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
from contracts import service
from contracts.bus import Bus
from contracts.events import Event
from contracts.facts import Fact, TurnForwarded, TurnHeld, TurnProposed, TurnQuoted
from contracts.identity import Issuer
from contracts.parts import Guard, Hold, Pack, Person, ToolCall, Usage, Verdict
from contracts.subjects import RunKey
from contracts.testing import World
from pydantic import SecretStr
from tools_shop import app, domain
from tools_shop.handlers import Handlers
from tools_shop.settings import Settings
from turngate.testing import Database, NatsAccess

from .shops import Shop

PACK = Pack(name="test", version=1, digest="0" * 64)
SAM = Person(subject="sam", issuer="https://issuer.test", role="approver")
GET = ToolCall(call_id="a", tool="get_order", arguments={"order_reference": "ORD-10042"})


def refund(call_id: str = "b", minor: int = 4000) -> ToolCall:
    arguments = {"order_reference": "ORD-10042", "amount_pence": minor, "reason": "unworn"}
    return ToolCall(call_id=call_id, tool="issue_refund", arguments=arguments)


def proposed(*calls: ToolCall, turn: int = 1) -> TurnProposed:
    return TurnProposed(
        turn=turn, agent="support", content=[], calls=list(calls), stop_reason="tool_use", usage=Usage(),
        cost_micro_usd=0, request_digest="0" * 64, tools_digest="0" * 64,
    )  # fmt: skip


def forwarded(quoted: TurnQuoted, declined: str = "", guards: Sequence[Guard] = ()) -> TurnForwarded:
    verdicts = [
        Verdict(call_id=q.call_id, verdict="run", digest=q.digest, rule="test")
        if q.call_id != declined
        else Verdict(
            call_id=q.call_id, verdict="declined", digest=q.digest, rule="declined", reason="A person declined this."
        )
        for q in quoted.quotes
    ]
    return TurnForwarded(turn=quoted.turn, attempt=quoted.attempt, pack=PACK, verdicts=verdicts, guards=list(guards))


def held(quoted: TurnQuoted, call_id: str) -> TurnHeld:
    digest = next(q.digest for q in quoted.quotes if q.call_id == call_id)
    now = datetime.now(UTC)
    return TurnHeld(
        turn=quoted.turn, attempt=quoted.attempt, pack=PACK, expires_at=now + timedelta(hours=1), remind_at=now,
        holds=[Hold(call_id=call_id, digest=digest, rule="above-limit", reason="much")],
    )  # fmt: skip


@dataclass(frozen=True)
class Others:
    """Everyone else in one run."""

    world: World
    key: RunKey

    async def say(self, fact: Fact, cause: Event | None = None) -> Event:
        return await self.world.say(self.key, fact, cause)

    async def hear(self, kind: str, count: int = 1) -> Event:
        return await self.world.hear(self.key, kind, count)

    async def events(self) -> list[Event]:
        return list((await self.world.history(self.key)).events)


# Opens a shop, and gives what hears a run of it where the test has it hear, and everyone else in that run.
Fresh = Callable[[], Awaitable[tuple[Shop, Handlers, Others]]]


@asynccontextmanager
async def tools_shop(server: NatsAccess, database: Database, *issuers: Issuer) -> AsyncIterator[Bus]:
    user, password = server.user("tools-shop")
    told = Settings(
        nats_url=server.url,
        nats_user=user,
        nats_password=SecretStr(password),
        postgres_dsn=SecretStr(database.tools),
        pool_size=4,
        issuers=list(issuers),
    )
    outages = (psycopg.OperationalError,)
    async with service.running("tools-shop", told, app.start, reads=domain.READS, outages=outages) as bus:
        yield bus


async def quoted(others: Others, *calls: ToolCall, turn: int = 1) -> tuple[Event, TurnQuoted]:
    await others.say(proposed(*calls, turn=turn))
    event = await others.hear("tools.turn-quoted", count=turn)
    assert isinstance(event.fact, TurnQuoted)
    return event, event.fact


@asynccontextmanager
async def restarted(server: NatsAccess, database: Database, stops: Path) -> AsyncIterator[None]:
    """The service as a process that is started again whenever it was killed at one of the points armed in `stops`."""
    user, password = server.user("tools-shop")
    env = {
        "PATH": os.environ["PATH"],
        "TURNGATE_NATS_URL": server.url,
        "TURNGATE_NATS_USER": user,
        "TURNGATE_NATS_PASSWORD": password,
        "TURNGATE_POSTGRES_DSN": database.tools,
        "TURNGATE_STOPS_DIR": str(stops),
        "TURNGATE_ISSUERS": "[]",
    }

    async def keep_running() -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tools_shop", env=env, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                await process.wait()
            except asyncio.CancelledError:
                process.send_signal(signal.SIGTERM)
                await process.wait()
                raise

    keeper = asyncio.create_task(keep_running())
    try:
        yield
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
