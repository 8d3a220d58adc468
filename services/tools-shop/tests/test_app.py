"""tools-shop on a real nats-server and a real PostgreSQL: what it says of a run, however often it hears of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from contracts import verify
from contracts.bus import Bus
from contracts.errors import CorruptLog
from contracts.events import Event
from contracts.facts import CallDecided, RunCancelled, TurnExecuted, TurnQuoted
from contracts.parts import Person
from contracts.subjects import RunKey
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tools_shop.handlers import Handlers
from turngate.testing import Database, NatsAccess

from .others import GET, SAM, Others, forwarded, held, proposed, quoted, refund, restarted, tools_shop
from .shops import OPERATOR, Shop, started_for

_EVERYWHERE_ELSE = ("before-read", "after-read", "before-append", "after-append", "before-ack", "after-ack")


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


@pytest.mark.parametrize(
    ("by", "paid"),
    [
        pytest.param(SAM, [18000], id="an approver's"),
        pytest.param(OPERATOR, [], id="not who asked"),
        pytest.param(None, [], id="not nobody's"),
        pytest.param(
            SAM.model_copy(update={"subject": "C-1004"}), [], id="not the customer's, who wrote with an address"
        ),
    ],
)
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
    assert executed.results[0].data.get("refused") == (None if paid else "not-released")


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


async def test_a_forward_that_comes_late_to_a_process_that_missed_the_rest_is_let_go(open_fresh, process):
    shop, late, others = await open_fresh()
    await others.say(started_for(shop.email))
    await late.hear(await others.say(proposed(refund())))
    first = (await others.events())[-1]
    old = await others.say(forwarded(first.fact), first)
    current = process(shop)
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
    other = Others(others.world, RunKey(acme.tenant, "TCK-2004-2"))
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
    await others.say(started_for(acme.email))
    async with restarted(nats_server, postgres, stops):
        event, quotes = await quoted(others, GET, refund())
        armed = stops / f"tools-shop.{point}"
        armed.write_text("1")
        await others.say(forwarded(quotes), event)
        await others.hear("tools.turn-executed")
        await quoted(others, GET, turn=2)
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
