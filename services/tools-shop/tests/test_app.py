"""tools-shop on a real nats-server and a real PostgreSQL: what it says of a run, however often it hears of it."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import nats
import pytest
from contracts import verify
from contracts.bus import Bus
from contracts.errors import Conflict, CorruptLog
from contracts.events import Draft, Event
from contracts.facts import (
    CallDecided,
    Fact,
    Hold,
    Pack,
    Person,
    RunCancelled,
    ToolCall,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    Usage,
    Verdict,
)
from contracts.log import JetStreamLog
from contracts.subjects import RunKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from tools_shop import app, demo, domain
from tools_shop.handlers import Handlers
from tools_shop.settings import Settings
from turngate.testing import Database, NatsAccess

from .shops import OPERATOR, TENANTS, Shop, started_for

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


def forwarded(quoted: TurnQuoted) -> TurnForwarded:
    verdicts = [Verdict(call_id=q.call_id, verdict="run", digest=q.digest, rule="test") for q in quoted.quotes]
    return TurnForwarded(turn=quoted.turn, attempt=quoted.attempt, pack=PACK, verdicts=verdicts)


def held(quoted: TurnQuoted, call_id: str) -> TurnHeld:
    digest = next(q.digest for q in quoted.quotes if q.call_id == call_id)
    now = datetime.now(UTC)
    return TurnHeld(
        turn=quoted.turn, attempt=quoted.attempt, pack=PACK, expires_at=now + timedelta(hours=1), remind_at=now,
        holds=[Hold(call_id=call_id, digest=digest, rule="above-limit", reason="much")],
    )  # fmt: skip


_EVERYWHERE_ELSE = ("before-read", "after-read", "before-append", "after-append", "before-ack", "after-ack")


class Others:
    """Everyone else, said by the set-up user."""

    def __init__(self, log: JetStreamLog, key: RunKey) -> None:
        self.log = log
        self.key = key

    async def say(self, fact: Fact, cause: Event | None = None) -> Event:
        while True:
            history = await self.log.read(self.key)
            with suppress(Conflict):
                return await self.log.append(history, Draft(fact, cause, key=str(len(history.events))))

    async def hear(self, kind: str, count: int = 1) -> Event:
        async with asyncio.timeout(20):
            async for event in self.log.follow(tenant=self.key.tenant):
                if event.key == self.key and event.kind == kind:
                    count -= 1
                    if not count:
                        return event
        raise AssertionError("the log ended")

    async def events(self) -> list[Event]:
        return list((await self.log.read(self.key)).events)


@asynccontextmanager
async def tools_shop(server: NatsAccess, database: Database) -> AsyncIterator[Bus]:
    user, password = server.user("tools-shop")
    told = Settings(
        nats_url=server.url,
        nats_user=user,
        nats_password=SecretStr(password),
        postgres_dsn=SecretStr(database.tools),
        pool_size=4,
    )
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(told, "tools-shop")
        stack.push_async_callback(bus.close)
        log = JetStreamLog(bus.nc, domain.READS)
        bus.on_error.append(log.on_error)
        await app.start(bus, log, told, stack)
        yield bus


@pytest.fixture
async def others(nats_server: NatsAccess, acme: Shop) -> AsyncIterator[Others]:
    user, password = nats_server.user("setup")
    client = await nats.connect(nats_server.url, user=user, password=password)
    yield Others(JetStreamLog(client), RunKey(acme.tenant, "TCK-2004-1"))
    await client.close()


@pytest.fixture
async def running(nats_server: NatsAccess, postgres: Database) -> AsyncIterator[Bus]:
    async with tools_shop(nats_server, postgres) as bus:
        yield bus


async def quoted(others: Others, *calls: ToolCall, turn: int = 1) -> tuple[Event, TurnQuoted]:
    await others.say(proposed(*calls, turn=turn))
    event = await others.hear("tools.turn-quoted", count=turn)
    assert isinstance(event.fact, TurnQuoted)
    return event, event.fact


async def test_a_proposed_turn_is_quoted_and_a_forwarded_one_is_executed(others: Others, acme: Shop, running: Bus):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET, refund())
    assert [quote.call_id for quote in quotes.quotes] == ["a", "b"]
    await others.say(forwarded(quotes), event)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert [result.call_id for result in executed.results] == ["a", "b"]
    assert executed.receipt_id
    assert acme.refunds() == [4000]


async def test_a_turn_of_reads_leaves_no_receipt(others: Others, acme: Shop, running: Bus):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET)
    await others.say(forwarded(quotes), event)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.receipt_id is None
    assert executed.results[0].content.startswith("Order ORD-10042")
    assert acme.rows("select * from shop.receipts") == []


async def test_a_forged_forward_of_a_large_refund_executes_nothing(others: Others, acme: Shop, running: Bus):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund(minor=18000))
    await others.say(forwarded(quotes), event)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.receipt_id is None
    assert executed.results[0].is_error
    assert acme.refunds() == []


@pytest.mark.parametrize(("by", "paid"), [(SAM, [18000]), (OPERATOR, []), (None, [])])
async def test_a_held_refund_is_paid_only_on_a_decision_of_somebody_else(
    others: Others, acme: Shop, running: Bus, by: Person | None, paid: list[int]
):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund(minor=18000))
    hold = await others.say(held(quotes, "b"), event)
    if by:
        digest = quotes.quotes[0].digest
        await others.say(CallDecided(turn=1, call_id="b", digest=digest, decision="approve", by=by), hold)
    await others.say(forwarded(quotes), hold)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert acme.refunds() == paid
    assert executed.approved_by == ({"b": ["sam"]} if paid else {})


async def test_a_run_that_is_started_a_second_time_for_somebody_else_pays_nothing(open_fresh):
    shop, handlers, others = await open_fresh()
    begun = started_for(shop.email)
    await others.say(begun.model_copy(update={"requested_by": SAM}))
    await handlers.hear(await others.say(proposed(refund(minor=18000))))
    quoted = (await others.events())[-1]
    hold = await others.say(held(quoted.fact, "b"), quoted)
    digest = quoted.fact.quotes[0].digest
    await others.say(CallDecided(turn=1, call_id="b", digest=digest, decision="approve", by=SAM), hold)
    await others.say(begun)
    forward = await others.say(forwarded(quoted.fact), hold)
    with pytest.raises(CorruptLog, match="started 2 times"):
        await handlers.hear(forward)
    assert shop.refunds() == []


async def test_a_changed_world_is_quoted_again_and_after_three_attempts_left_to_policy(
    others: Others, acme: Shop, running: Bus
):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund())
    for attempt in (1, 2, 3):
        await acme.run(
            ("issue_refund", {"order_reference": "ORD-10042", "amount_pence": attempt, "reason": "x"}),
            run=f"TCK-9-{attempt}",
        )
        await others.say(forwarded(quotes), event)
        event = await others.hear("tools.turn-quoted", count=attempt + 1)
        quotes = event.fact
        assert quotes.attempt == attempt + 1
    assert acme.refunds() == [1, 2, 3]


async def test_a_forward_that_comes_late_to_a_process_that_missed_the_rest_is_let_go(open_fresh):
    shop, late, others = await open_fresh()
    await others.say(started_for(shop.email))
    await late.hear(await others.say(proposed(refund())))
    first = (await others.events())[-1]
    old = await others.say(forwarded(first.fact), first)
    log = JetStreamLog(others.log._nc, domain.READS)
    current = Handlers(log, shop.turns, {"shop": shop.toolset})
    await shop.run(("issue_refund", {**refund().arguments, "amount_pence": 1}), run="TCK-9-1")
    await current.hear(old)
    second = (await others.events())[-1]
    assert isinstance(second.fact, TurnQuoted)
    await current.hear(await others.say(forwarded(second.fact), second))
    await late.hear(old)
    assert shop.refunds() == [1, 4000]
    assert verify.verify(await others.events()) == []


async def test_a_run_that_was_cancelled_is_not_paid_for(others: Others, acme: Shop, running: Bus):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund())
    await others.say(RunCancelled(by=OPERATOR))
    await others.say(forwarded(quotes), event)
    await others.say(proposed(GET, turn=2))
    other = Others(others.log, RunKey(acme.tenant, "TCK-2004-2"))
    await other.say(started_for(acme.email))
    await quoted(other, GET)
    assert acme.refunds() == []
    assert "tools.turn-executed" not in [event.kind for event in await others.events()]


async def test_what_had_been_paid_when_the_run_was_cancelled_is_recorded_behind_it(
    others: Others, acme: Shop, nats_server: NatsAccess, postgres: Database
):
    await others.say(started_for(acme.email))
    call = refund("c0")
    proposal = await others.say(proposed(call))
    turn = acme.turn((call.tool, call.arguments), run="TCK-2004-1", proposal_id=proposal.id)
    quotes = TurnQuoted(turn=1, attempt=1, quotes=await acme.quote(turn))
    event = await others.say(quotes, proposal)
    await acme.execute(turn, quotes.quotes)
    await others.say(forwarded(quotes), event)
    await others.say(RunCancelled(by=OPERATOR))
    async with tools_shop(nats_server, postgres):
        executed = await others.hear("tools.turn-executed")
    kinds = [event.kind for event in await others.events()]
    assert kinds.index("desk.run-cancelled") < kinds.index("tools.turn-executed")
    assert executed.fact.receipt_id
    assert acme.refunds() == [4000]


@pytest.mark.parametrize(
    "point",
    [
        "before-commit",
        "after-commit",
        *(pytest.param(point, marks=pytest.mark.slow) for point in _EVERYWHERE_ELSE),
    ],
)
async def test_killed_anywhere_it_ends_with_the_same_facts_and_one_refund(
    others: Others, acme: Shop, nats_server: NatsAccess, postgres: Database, data_dir, point: str
):
    stops = data_dir / "stops"
    stops.mkdir()
    user, password = nats_server.user("tools-shop")
    env = {
        "PATH": os.environ["PATH"],
        "TURNGATE_NATS_URL": nats_server.url,
        "TURNGATE_NATS_USER": user,
        "TURNGATE_NATS_PASSWORD": password,
        "TURNGATE_POSTGRES_DSN": postgres.tools,
        "TURNGATE_STOPS_DIR": str(stops),
    }

    async def keep_running() -> list[int]:
        codes = []
        while True:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tools_shop", env=env, stderr=asyncio.subprocess.DEVNULL
            )
            try:
                codes.append(await process.wait())
            except asyncio.CancelledError:
                process.send_signal(signal.SIGTERM)
                await process.wait()
                raise

    await others.say(started_for(acme.email))
    keeper = asyncio.create_task(keep_running())
    try:
        event, quotes = await quoted(others, GET, refund())
        armed = stops / f"tools-shop.{point}"
        armed.write_text("1")
        await others.say(forwarded(quotes), event)
        await others.hear("tools.turn-executed")
        await quoted(others, GET, turn=2)
    finally:
        keeper.cancel()
        with suppress(asyncio.CancelledError):
            await keeper
    assert armed.with_name(f"{armed.name}.reached").exists()
    kinds = [event.kind for event in await others.events()]
    assert kinds.count("tools.turn-executed") == 1
    assert kinds.count("tools.turn-quoted") == 2
    assert acme.refunds() == [4000]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(deliveries=st.lists(st.integers(0, 3), min_size=4, max_size=14), calls=st.permutations(["read", "one", "two"]))
async def test_whatever_the_order_and_number_of_deliveries_each_call_has_one_result_and_each_refund_is_paid_once(
    acme: Shop, deliveries: list[int], calls: list[str], open_fresh: Callable[[], Awaitable[tuple[Shop, Handlers, Any]]]
):
    shop, handlers, others = await open_fresh()
    made = {"read": GET, "one": refund("b", 4000), "two": refund("c", 3000)}
    await others.say(started_for(shop.email))
    heard = [await others.say(proposed(*(made[name] for name in calls)))]

    async def deliver(event: Event) -> None:
        await handlers.hear(event)

    await deliver(heard[0])
    quotes = next(event for event in await others.events() if isinstance(event.fact, TurnQuoted))
    heard.append(await others.say(forwarded(quotes.fact), quotes))
    await asyncio.gather(*(deliver(heard[index % 2]) for index in deliveries))
    for event in heard:
        await deliver(event)

    events = await others.events()
    [executed] = [event.fact for event in events if isinstance(event.fact, TurnExecuted)]
    assert [result.call_id for result in executed.results] == [made[name].call_id for name in calls]
    assert sorted(shop.refunds()) == [3000, 4000]
    assert verify.verify(events) == []


@pytest.fixture
async def open_fresh(nats_server: NatsAccess, open_shop: Any) -> AsyncIterator[Any]:
    user, password = nats_server.user("setup")
    client = await nats.connect(nats_server.url, user=user, password=password)
    entries = demo.read(TENANTS / "acme" / "demo.yaml")

    async def fresh() -> tuple[Shop, Handlers, Others]:
        shop = open_shop(entries)
        handlers = Handlers(JetStreamLog(client, domain.READS), shop.turns, {"shop": shop.toolset})
        return shop, handlers, Others(JetStreamLog(client), RunKey(shop.tenant, "TCK-2004-1"))

    yield fresh
    await client.close()


async def test_the_catalogue_is_strict_and_says_which_tools_write(running: Bus, nats_server: NatsAccess):
    user, password = nats_server.user("agent-runner")
    client = await nats.connect(nats_server.url, user=user, password=password, inbox_prefix=b"_INBOX_agent-runner")
    asker = Bus(client, "agent-runner")
    catalogue = await asker.ask("ask.tools.catalogue", {"tenant": "acme", "toolset": "shop"})
    await client.close()
    kinds = {tool["name"]: tool["kind"] for tool in catalogue["tools"]}
    assert kinds == {
        "find_customer": "read", "get_order": "read", "get_shipment_status": "read", "search_help_centre": "read",
        "issue_refund": "write", "cancel_subscription": "write", "escalate_to_human": "write",
    }  # fmt: skip
    assert all(tool["input_schema"]["additionalProperties"] is False for tool in catalogue["tools"])
    assert len(catalogue["digest"]) == 64


async def test_a_changed_call_can_be_quoted_without_anything_being_said(
    others: Others, acme: Shop, running: Bus, nats_server: NatsAccess
):
    await others.say(started_for(acme.email))
    await quoted(others, GET, refund(minor=18000))
    before = await others.events()
    user, password = nats_server.user("gateway")
    client = await nats.connect(nats_server.url, user=user, password=password, inbox_prefix=b"_INBOX_gateway")
    asker = Bus(client, "gateway")
    ask = {
        "tenant": acme.tenant,
        "run": "TCK-2004-1",
        "turn": 1,
        "call_id": "b",
        "edited": {**refund().arguments, "amount_pence": 9000},
    }
    answer = await asker.ask("ask.tools.quote", ask)
    missing = await asker.ask("ask.tools.quote", {**ask, "call_id": "z"})
    await client.close()
    assert answer["quote"]["effect"]["amount_minor"] == 9000
    assert missing["status"] == 404
    assert await others.events() == before
    assert acme.refunds() == []
