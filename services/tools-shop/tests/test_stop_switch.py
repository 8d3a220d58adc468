"""The stop switch: what it covers, in whatever order it is heard, and that nothing gets past it once it is on."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import nats
import pytest
from contracts import events
from contracts.bus import Bus
from contracts.events import Draft, Event
from contracts.facts import CallDecided, Fact, TurnExecuted, TurnQuoted
from contracts.kill_switch import Stop
from contracts.log import JetStreamLog
from contracts.parts import Effect, Person
from contracts.settings import ACK_WAIT
from contracts.subjects import TENANTS as TENANT_LINES
from contracts.subjects import TenantKey
from contracts.tenant_facts import StopLifted, StopSet
from contracts.testing import PATIENCE
from nats.aio.client import Client
from nats.aio.msg import Msg
from tools_shop import database
from tools_shop.stop_switch import StopSwitch
from tools_shop.turn import Changed, Executed
from turngate.testing import Database, NatsAccess

from .others import SAM, Others, forwarded, held, quoted, refund, tools_shop
from .shops import Shop, started_for
from .test_turns import approval, look
from .test_turns import refund as asked

BEFORE_REDELIVERY = 0.8 * ACK_WAIT
ADA = Person(subject="ada", issuer="https://issuer.test", role="admin")


def stop(stop_id: str = "s1", tool: str | None = None, above_minor: int | None = None) -> StopSet:
    return StopSet(stop_id=stop_id, tool=tool, above_minor=above_minor, reason="a wave of claims", by=ADA)


def lifted(stop_id: str = "s1") -> StopLifted:
    return StopLifted(stop_id=stop_id, by=ADA)


@pytest.mark.parametrize(
    ("standing", "tool", "moves", "covered"),
    [
        pytest.param(Stop(None, None), "issue_refund", 1, True, id="all is stopped"),
        pytest.param(Stop(None, None), "cancel_subscription", None, True, id="what moves no money too"),
        pytest.param(Stop(None, None), "escalate_to_human", None, False, id="but for asking a person"),
        pytest.param(Stop("escalate_to_human", None), "escalate_to_human", None, True, id="unless that is named"),
        pytest.param(Stop("issue_refund", None), "issue_refund", 1, True, id="this tool"),
        pytest.param(Stop("issue_refund", None), "cancel_subscription", None, False, id="and no other"),
        pytest.param(Stop(None, 5000), "issue_refund", 5000, False, id="up to the amount it runs"),
        pytest.param(Stop(None, 5000), "issue_refund", 5001, True, id="above it is stopped"),
        pytest.param(Stop(None, 0), "cancel_subscription", None, False, id="what moves nothing is above no amount"),
        pytest.param(Stop("cancel_subscription", 0), "issue_refund", 1, False, id="above an amount, another tool"),
    ],
)
def test_what_a_stop_covers(standing: Stop, tool: str, moves: int | None, covered: bool):
    effect = Effect(summary="x", object="x", amount_minor=moves, currency="GBP")
    assert standing.covers(tool, effect, moves, harmless=tool == "escalate_to_human") is covered


@pytest.mark.parametrize(
    ("moves", "today", "covered"),
    [
        pytest.param(6000, 6000, False, id="the first of the day"),
        pytest.param(6000, 12000, True, id="the second, which alone is below it"),
        pytest.param(4000, 10000, False, id="just as much in all"),
        pytest.param(1, 10001, True, id="and a penny more"),
        pytest.param(0, 12000, False, id="what repeats one and moves nothing"),
        pytest.param(None, 12000, False, id="what is not about money"),
        pytest.param(10001, None, True, id="where the day is not known, by itself"),
        pytest.param(10001, 0, True, id="and never less than what it moves itself"),
    ],
)
def test_above_an_amount_all_that_a_customer_is_paid_that_day_counts(
    moves: int | None, today: int | None, covered: bool
):
    effect = Effect(summary="x", object="x", amount_minor=moves, currency="GBP")
    assert Stop("issue_refund", 10000).covers("issue_refund", effect, today, harmless=False) is covered


@pytest.fixture
async def switch(postgres: Database) -> AsyncIterator[StopSwitch]:
    async with database.pool(postgres.tools, 2) as pool:
        yield StopSwitch(pool)


def said(shop: Shop, fact: Fact, sequence: int) -> Event:
    event = events.write(TenantKey(shop.tenant), Draft(fact, None), None, datetime.now(UTC))
    return replace(event, sequence=sequence)


async def is_stopped(shop: Shop) -> bool:
    [quote] = await shop.quote(shop.turn(asked(4000)))
    return quote.facts.stopped is not None


@pytest.mark.parametrize("order", [*itertools.permutations(range(3)), (0, 1, 1, 0), (1, 0, 1), (0, 2, 1, 0, 1, 2)])
async def test_in_whatever_order_and_however_often_it_is_heard_the_last_word_stands(
    acme: Shop, switch: StopSwitch, order: tuple[int, ...]
):
    line = [said(acme, stop(), 7), said(acme, lifted(), 9), said(acme, stop(), 12)]
    for index in order:
        await switch.hear(line[index])
    assert await is_stopped(acme) is (2 in order)


async def test_a_stop_stands_while_another_one_is_lifted(acme: Shop, switch: StopSwitch):
    await switch.hear(said(acme, stop("s1", tool="issue_refund"), 1))
    await switch.hear(said(acme, stop("s2", above_minor=1000), 2))
    await switch.hear(said(acme, lifted("s1"), 3))
    small, large = await acme.quote(acme.turn(asked(900), asked(1001)))
    assert small.facts.stopped is None
    assert (
        large.facts.stopped
        == "Everything that changes something above £10.00 to one customer in a day is stopped for now."
    )


async def test_an_amount_that_is_stopped_is_reached_by_no_number_of_smaller_ones(acme: Shop, switch: StopSwitch):
    # given a stop above £100.00
    await switch.hear(said(acme, stop("s1", tool="issue_refund", above_minor=10000), 1))
    # when one turn asks for £60.00 twice / then the second is stopped, and the turn is not done
    turn = acme.turn(asked(6000), asked(6001))
    quotes = await acme.quote(turn)
    by_words = "issue_refund above £100.00 to one customer in a day is stopped for now."
    assert [quote.facts.stopped for quote in quotes] == [None, by_words]
    assert isinstance(await acme.execute(turn, quotes), Changed)
    # when one run asks for the one, and the next for the other / then the first is paid, and the second is stopped
    await acme.run(asked(6000), run="TCK-2-1")
    [quote] = await acme.quote(acme.turn(asked(6001), run="TCK-3-1"))
    assert quote.facts.stopped == by_words
    # and what keeps the day below it goes on
    [quote] = await acme.quote(acme.turn(asked(4000), run="TCK-3-1"))
    assert quote.facts.stopped is None
    assert acme.refunds() == [6000]


async def test_a_stop_above_an_amount_is_held_against_the_day_when_the_turn_runs(acme: Shop, switch: StopSwitch):
    # given two refunds of two orders, each quoted when nothing had been paid, and a stop above what both come to
    acme.email = "amara.nwosu@mail.example"
    one, two = (acme.turn(asked(4000, order), run=f"{order}-1") for order in ("ORD-10051", "ORD-10052"))
    quotes = [await acme.quote(turn) for turn in (one, two)]
    await switch.hear(said(acme, stop("s1", above_minor=7999), 1))
    # when both run at once / then the second finds the first, though nothing of its own has changed
    done = await asyncio.gather(acme.execute(one, quotes[0]), acme.execute(two, quotes[1]))
    assert sorted(type(outcome).__name__ for outcome in done) == ["Changed", "Executed"]
    assert acme.refunds() == [4000]
    # when that is lifted, it is paid
    await switch.hear(said(acme, lifted("s1"), 2))
    again = [isinstance(await acme.execute(turn, quotes[n]), Executed) for n, turn in enumerate((one, two))]
    assert again == [True, True]
    assert acme.refunds() == [4000, 4000]


async def test_a_stop_is_its_own_tenants_only(acme: Shop, switch: StopSwitch):
    await switch.hear(replace(said(acme, stop(), 1), key=TenantKey("elsewhere")))
    assert not await is_stopped(acme)


async def test_what_is_stopped_is_not_done_whoever_approved_it_and_what_is_not_goes_on(acme: Shop, switch: StopSwitch):
    # given a released refund, and a turn that asks for a person
    turn = acme.turn(asked(18000), look())
    quotes = await acme.quote(turn)
    acme.decisions = [approval(quotes[0].digest), approval(quotes[0].digest, by="sue")]
    case = acme.turn(("escalate_to_human", {"summary": "x", "reason": "y"}), look(), turn=2)
    cases = await acme.quote(case)
    # when all is stopped
    await switch.hear(said(acme, stop(), 1))
    # then the one is not done, and the other is
    assert isinstance(await acme.execute(turn, quotes), Changed)
    assert acme.refunds() == []
    assert isinstance(await acme.execute(case, cases), Executed)
    # when the stop is lifted / then the refund is paid
    await switch.hear(said(acme, lifted(), 2))
    assert isinstance(await acme.execute(turn, quotes), Executed)
    assert acme.refunds() == [18000]


async def test_a_stop_waits_for_what_is_about_to_be_committed_and_nothing_is_done_behind_it(
    acme: Shop, switch: StopSwitch
):
    # given an execution that has looked at the stops, and is about to be committed
    async with acme.about_to_commit(acme.turn(asked(4000))) as execution, asyncio.timeout(PATIENCE):
        # when all is stopped
        setting = asyncio.create_task(switch.hear(said(acme, stop(), 1)))
        # then the stop is not yet said to be on
        await acme.waits(setting)
    # and once it is, the one is done and no other one is
    await setting
    assert isinstance(execution.result(), Executed)
    later = acme.turn(asked(3000), turn=2)
    assert isinstance(await acme.execute(later, await acme.quote(later)), Changed)
    assert acme.refunds() == [4000]


async def test_what_is_known_already_waits_for_no_execution(acme: Shop, switch: StopSwitch):
    # given stops that are known, and an execution of a process that hangs before its commit
    known = [said(acme, stop("s1"), 1), said(acme, lifted("s1"), 2)]
    for event in known:
        await switch.hear(event)
    async with acme.about_to_commit(acme.turn(asked(4000))) as execution, asyncio.timeout(PATIENCE):
        # when another process, which has just been started, hears them again / then it goes on
        for event in known:
            await switch.hear(event)
        assert not execution.done()


# Over the broker


@pytest.fixture
def tenant_line(client: Client) -> JetStreamLog:
    return JetStreamLog(client, stream=TENANT_LINES)


async def stands(acme: Shop) -> float:
    """Waits until a stop does; how many seconds that took."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE):
        while not await is_stopped(acme):
            await asyncio.sleep(0.005)
    return time.monotonic() - began


async def test_a_refund_that_was_released_before_a_stop_is_refused_and_paid_when_that_is_lifted(
    others: Others, acme: Shop, running: Bus, tenant_line: JetStreamLog
):
    # given a refund that a person has released
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund(minor=18000))
    hold = await others.say(held(quotes, "b"), event)
    digest = quotes.quotes[0].digest
    await others.say(CallDecided(turn=1, call_id="b", digest=digest, decision="approve", by=SAM), hold)
    # when refunds are stopped
    key = TenantKey(acme.tenant)
    await tenant_line.append(await tenant_line.read(key), Draft(stop(tool="issue_refund"), None))
    await stands(acme)
    # and policy forwards it even so / then it is quoted again, as stopped and otherwise the same, and not paid
    await others.say(forwarded(quotes), hold)
    again = (await others.hear("tools.turn-quoted", count=2)).fact
    assert isinstance(again, TurnQuoted)
    assert again.attempt == 2
    assert again.quotes[0].facts.stopped == "issue_refund is stopped for now."
    assert again.quotes[0].digest == digest
    assert acme.refunds() == []
    # and nothing says that it was executed: it is for policy to refuse it, in the words of the stop
    assert "tools.turn-executed" not in [event.kind for event in await others.events()]
    # when the stop is lifted, it is paid on the approval that it had
    await tenant_line.append(await tenant_line.read(key), Draft(lifted(), None))
    async with asyncio.timeout(PATIENCE):
        while await is_stopped(acme):
            await asyncio.sleep(0.005)
    await others.say(forwarded(again), hold)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.approved_by == {"b": ["sam"]}
    assert acme.refunds() == [18000]


@pytest.mark.slow
async def test_a_stop_takes_effect_within_a_second(others: Others, acme: Shop, running: Bus, tenant_line: JetStreamLog):
    await tenant_line.append(await tenant_line.read(TenantKey(acme.tenant)), Draft(stop(tool="issue_refund"), None))
    took = await stands(acme)
    assert took < 1, f"{took:.3f} s"


@asynccontextmanager
async def hanging(server: NatsAccess, count: int = 1) -> AsyncIterator[asyncio.Event]:
    """Processes of the service that take stops and do nothing with them; the event tells when the first has one."""
    user, password = server.user("tools-shop")
    taken = asyncio.Event()

    async def take(_: Msg) -> None:
        taken.set()

    client = await nats.connect(server.url, user=user, password=password, inbox_prefix=b"_INBOX_tools-shop")
    for _ in range(count):
        await client.subscribe("deliver.tenant.tools-shop", queue="tools-shop", cb=take)
    await client.flush()
    yield taken
    await client.close()


async def test_a_stop_that_a_process_took_with_it_when_it_died_counts_from_the_start_of_the_next(
    others: Others, acme: Shop, nats_server: NatsAccess, postgres: Database, tenant_line: JetStreamLog
):
    # given a stop that was delivered to a process which then died
    async with hanging(nats_server) as taken, asyncio.timeout(20):
        await tenant_line.append(await tenant_line.read(TenantKey(acme.tenant)), Draft(stop(), None))
        await taken.wait()
    # when the next one has started / then that knows it, before the broker delivers it again
    async with tools_shop(nats_server, postgres):
        assert await is_stopped(acme)


async def test_stops_take_effect_at_once_though_other_processes_that_they_were_delivered_to_hang(
    others: Others, acme: Shop, nats_server: NatsAccess, running: Bus, tenant_line: JetStreamLog
):
    async with hanging(nats_server, count=5):
        # when ten are set, of which hardly one is delivered to the process that lives
        key = TenantKey(acme.tenant)
        for n in range(10):
            await tenant_line.append(await tenant_line.read(key), Draft(stop(f"s{n}"), None))
        # then all of them stand, without waiting for the broker to give up on those that hang
        async with asyncio.timeout(BEFORE_REDELIVERY):
            while len(acme.rows("select 1 from shop.stops where set_in > lifted_in")) < 10:
                await asyncio.sleep(0.01)
