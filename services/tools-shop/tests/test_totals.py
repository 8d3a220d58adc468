"""Limits of the day and cooling-off: what a quote tells of them, and that no number of runs at once gets past one."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from contracts.parts import Guard
from tools_shop import database, demo
from tools_shop.demo import CustomerEntry, DemoShop, ItemEntry, OrderEntry, PaymentEntry
from tools_shop.turn import Changed, Executed
from tools_shop.turns import Turns
from turngate.testing import Database

from .shops import TENANTS, Shop

NEVER = datetime.fromtimestamp(0, UTC)
AT_ONCE = 50


def refund(minor: int, order: str = "ORD-10051", **more: Any) -> tuple[str, dict[str, Any]]:
    return "issue_refund", {"order_reference": order, "amount_pence": minor, "reason": "unworn", **more}


@pytest.fixture
def amara(open_shop: Callable[[DemoShop], Shop]) -> Shop:
    """The demo shop, asked by a customer with two orders."""
    shop = open_shop(demo.read(TENANTS / "acme" / "demo.yaml"))
    shop.email = "amara.nwosu@mail.example"
    return shop


@pytest.fixture
def busy(open_shop: Callable[[DemoShop], Shop]) -> Shop:
    """A shop whose first customer has many orders of £10.00, as many others have one each."""
    customers = [CustomerEntry(id=f"C-{n}", name=f"Customer {n}", email=f"c{n}@mail.example") for n in range(AT_ONCE)]
    orders = [
        OrderEntry(
            reference=f"ORD-{m * 1000 + n}",
            customer=f"C-{n if m == 2 else 0}",
            placed_days_ago=3,
            status="delivered",
            items=[ItemEntry(sku="A", title="A", quantity=1, unit_minor=1000)],
            payments=[PaymentEntry(id=f"P-{m}-{n}", amount_minor=1000, method="Visa", paid_days_ago=3)],
        )
        for m in (1, 2)
        for n in range(AT_ONCE)
    ]
    return open_shop(
        DemoShop(
            tenant="busy",
            name="Busy",
            currency="GBP",
            timezone="Europe/London",
            floor_minor=10000,
            refund_window_days=30,
            customers=customers,
            orders=orders,
        )
    )


async def test_a_quote_tells_the_totals_of_the_day_as_they_would_be_behind_it(amara: Shop):
    # given a refund of today to this customer, and one to another
    await amara.run(refund(1000))
    amara.email = "tom.whitfield@mail.example"
    await amara.run(refund(500, "ORD-10042"), run="TCK-2-1")
    amara.email = "amara.nwosu@mail.example"
    # when a turn of two is quoted
    first, second = await amara.quote(amara.turn(refund(2000), refund(3000, "ORD-10052"), run="TCK-3-1"))
    # then each has counted itself and what came before it
    facts = first.facts
    assert (facts.refunded_today_minor, facts.refunds_today_by_customer) == (3000, 2)
    assert (facts.refunded_today_of_tenant_minor, facts.refunds_today_of_tenant) == (3500, 3)
    assert facts.refunded_today_by_profile_minor == 3500
    facts = second.facts
    assert (facts.refunded_today_minor, facts.refunds_today_by_customer) == (6000, 3)
    assert (facts.refunded_today_of_tenant_minor, facts.refunds_today_of_tenant) == (6500, 4)
    assert facts.refunded_today_by_profile_minor == 6500


async def test_refunds_of_other_profiles_do_not_count_towards_a_profiles_total(amara: Shop):
    await amara.run(refund(1000))
    amara.rows("update shop.refunds set profile = 'triage-team'")
    [quote] = await amara.quote(amara.turn(refund(2000), turn=2))
    assert (quote.facts.refunded_today_minor, quote.facts.refunded_today_by_profile_minor) == (3000, 2000)


@pytest.mark.parametrize("email", ["amara.nwosu@mail.example", "tom.whitfield@mail.example"])
async def test_a_quote_waits_for_no_execution_and_holds_up_none(amara: Shop, email: str):
    # given an execution that has paid, and is about to be committed
    async with amara.about_to_commit(amara.turn(refund(1000))) as execution:
        # when a refund to the same customer is quoted, or to another, on a day on which nobody has paid before
        amara.email = email
        order = "ORD-10051" if email.startswith("amara") else "ORD-10042"
        [quote] = await amara.quote(amara.turn(refund(2000, order), run="TCK-2-1"))
        # then it is there first, and knows nothing of what is not committed
        assert not execution.done()
    assert (quote.facts.refunded_today_minor, quote.facts.refunds_today_of_tenant) == (2000, 1)
    assert isinstance(execution.result(), Executed)


async def test_executions_of_one_turn_after_another_are_counted_once_each(amara: Shop):
    for n in (1, 2):
        turn = amara.turn(refund(1000 + n), refund(500 + n, "ORD-10052"), refund(10**6), turn=n)
        quotes = await amara.quote(turn)
        assert isinstance(await amara.execute(turn, quotes), Executed)
        assert isinstance(await amara.execute(turn, quotes), Executed)
    assert amara.rows("select refunds, refunded_minor from shop.day_counters") == [
        {"refunds": 4, "refunded_minor": sum(amara.refunds())}
    ]


async def test_a_quote_is_of_one_moment_whatever_is_committed_while_it_is_made(
    amara: Shop,
):
    # given a turn whose first call takes its time, while another run refunds of the order of the second
    read = amara.toolset.tools["get_order"]

    async def slow(arguments: Any, caller: Any) -> Any:
        await amara.run(refund(700, "ORD-10052"), run="TCK-9-1")
        return await read.query(arguments, caller)

    tools = dict(amara.toolset.tools) | {"get_order": replace(read, query=slow)}
    torn = Shop(amara.tenant, amara.owner, amara.turns, replace(amara.toolset, tools=tools), amara.email)
    turn = torn.turn(("get_order", {"order_reference": "ORD-10052"}), refund(1000, "ORD-10052"))
    # when it is quoted / then nothing of that is in the effect, in the totals or in the digest
    quote = (await torn.quote(turn))[1]
    assert amara.refunds() == [700]
    assert quote.effect is not None
    assert quote.effect.before["refunded_minor"] == 0
    assert quote.facts.refunded_today_minor == 1000
    # and it is quoted again where it is to run
    assert isinstance(await torn.execute(amara.turn(refund(1000, "ORD-10052"), ids=["c1"]), [quote]), Changed)


async def test_a_quote_tells_above_what_the_shop_pays_on_nobodys_word_but_a_persons(amara: Shop):
    calls = refund(1000), refund(1000), ("escalate_to_human", {"summary": "x", "reason": "y"}), refund(10**6)
    quotes = await amara.quote(amara.turn(*calls))
    # what moves no money needs no such word
    assert [quote.facts.decided_above_minor for quote in quotes] == [10000, None, None, None]
    # and the digest is of the call, not of the shop's settings
    amara.rows("update shop.tenants set floor_minor = 900")
    again = await amara.quote(amara.turn(*calls))
    assert again[0].facts.decided_above_minor == 900
    assert [quote.digest for quote in again] == [quote.digest for quote in quotes]


async def test_a_quote_tells_when_this_customer_was_last_refunded_before_this_turn(amara: Shop):
    one, two = await amara.quote(amara.turn(refund(1000), refund(1000, "ORD-10052")))
    assert one.facts.last_refund_at == two.facts.last_refund_at == NEVER
    before = datetime.now(UTC)
    await amara.run(refund(1000))
    [quote] = await amara.quote(amara.turn(refund(2000), turn=2))
    assert before <= quote.facts.last_refund_at <= datetime.now(UTC)


async def test_a_declined_call_is_remembered_once_and_its_customers_next_turn_is_told(amara: Shop):
    turn = amara.turn(refund(1000), refund(2000, "ORD-10052"))
    quotes = await amara.quote(turn)
    assert quotes[0].facts.last_declined_at == NEVER
    before = datetime.now(UTC)
    first = await amara.execute(turn, quotes, declined="c0")
    assert await amara.execute(turn, quotes, declined="c0") == first
    assert amara.rows("select call_id, customer_id from shop.declines") == [{"call_id": "c0", "customer_id": "C-1012"}]
    [quote] = await amara.quote(amara.turn(refund(1500), turn=2))
    assert before <= quote.facts.last_declined_at <= datetime.now(UTC)
    amara.email = "tom.whitfield@mail.example"
    [other] = await amara.quote(amara.turn(refund(1500, "ORD-10042"), turn=2))
    assert other.facts.last_declined_at == NEVER


async def test_a_turn_of_which_all_was_declined_is_remembered_too(amara: Shop):
    turn = amara.turn(refund(1000))
    executed = await amara.execute(turn, await amara.quote(turn), declined="c0")
    assert isinstance(executed, Executed)
    assert executed.results[0].data == {"refused": "declined"}
    assert len(amara.rows("select 1 from shop.declines")) == 1
    assert amara.refunds() == []


async def test_a_call_that_nobody_decided_in_time_was_declined_by_no_one(amara: Shop):
    turn = amara.turn(refund(1000), refund(2000, "ORD-10052"))
    executed = await amara.execute(turn, await amara.quote(turn), declined="c0", expired=True)
    assert isinstance(executed, Executed)
    assert executed.results[0].data == {"refused": "declined"}
    [quote] = await amara.quote(amara.turn(refund(1500), turn=2))
    assert quote.facts.last_declined_at == NEVER


async def test_the_refund_window_opens_with_the_delivery_and_else_with_the_order(amara: Shop):
    [quote] = await amara.quote(amara.turn(refund(1000)))
    days = amara.rows(
        "select o.placed_at, max(s.delivered_on) as delivered_on from shop.orders o "
        "left join shop.shipments s on s.order_reference = o.reference where o.reference = 'ORD-10051' group by 1"
    )
    assert days[0]["delivered_on"] is not None
    assert quote.facts.window_from.date() <= days[0]["delivered_on"]
    amara.rows("update shop.shipments set delivered_on = null where order_reference = 'ORD-10051'")
    [quote] = await amara.quote(amara.turn(refund(1000)))
    assert quote.facts.window_from == days[0]["placed_at"]


AMOUNTS = ("refunded_today_by_customer", "refunded_today_by_profile", "refunded_today_of_tenant")
COUNTS = ("refunds_today_by_customer", "refunds_today_of_tenant")


def guard(shop: Shop, name: str, at_most: int, customer: str = "C-1012") -> Guard:
    subject = {"customer": customer, "profile": "support", "tenant": shop.tenant}[name.rpartition("_")[2]]
    return Guard.model_validate({"name": name, "subject": subject, "at_most": at_most})


@pytest.mark.parametrize("name", [*AMOUNTS, *COUNTS])
async def test_each_total_must_hold_when_the_turn_runs(amara: Shop, name: str):
    # given one refund of £20.00 today, and a turn of another
    await amara.run(refund(2000))
    turn = amara.turn(refund(1000, "ORD-10052"), turn=2)
    quotes = await amara.quote(turn)
    together = 3000 if name in AMOUNTS else 2
    # when it is forwarded with less than both / then nothing is done
    executed = await amara.execute(turn, quotes, guards=[guard(amara, name, together - 1)])
    assert isinstance(executed, Changed)
    assert amara.refunds() == [2000]
    # when it is forwarded with as much / then it is paid
    assert isinstance(await amara.execute(turn, quotes, guards=[guard(amara, name, together)]), Executed)
    assert amara.refunds() == [2000, 1000]


@pytest.mark.parametrize("name", ["last_refund_of_customer", "last_decline_of_customer"])
async def test_cooling_off_must_hold_when_the_turn_runs(amara: Shop, name: str):
    # given a turn that was quoted before another refunded, and had a call of it declined
    turn = amara.turn(refund(1000, "ORD-10052"), turn=2)
    quotes = await amara.quote(turn)
    other = amara.turn(refund(500), refund(400))
    started = int(datetime.now(UTC).timestamp())
    await amara.execute(other, await amara.quote(other), declined="c1")
    # when it is forwarded on the word that there was no such thing / then nothing is done
    assert isinstance(await amara.execute(turn, quotes, guards=[guard(amara, name, 0)]), Changed)
    assert isinstance(await amara.execute(turn, quotes, guards=[guard(amara, name, started - 1)]), Changed)
    # when it was known, and long enough ago / then it is paid, its own refunds and declines notwithstanding
    late = int(datetime.now(UTC).timestamp())
    assert isinstance(await amara.execute(turn, quotes, guards=[guard(amara, name, late)]), Executed)


async def test_a_turns_own_refunds_and_declines_start_no_cooling_off_of_its_own(amara: Shop):
    turn = amara.turn(refund(1000), refund(500), refund(700, "ORD-10052"))
    guards = [guard(amara, name, 0) for name in ("last_refund_of_customer", "last_decline_of_customer")]
    quotes = await amara.quote(turn)
    assert isinstance(await amara.execute(turn, quotes, declined="c1", guards=guards), Executed)


@pytest.mark.parametrize(
    "name", ["refunded_today_by_customer", "refunded_today_by_profile", "refunded_today_of_tenant"]
)
async def test_a_guard_about_somebody_else_is_not_held_to_be_true(amara: Shop, name: str):
    # Nothing that is locked here keeps their total still.
    turn = amara.turn(refund(1000))
    elsewhere = guard(amara, name, 2**40).model_copy(update={"subject": "another"})
    assert isinstance(await amara.execute(turn, await amara.quote(turn), guards=[elsewhere]), Changed)


@pytest.mark.parametrize(
    ("name", "at_most", "paid"),
    [
        *((name, 1000, 10) for name in AMOUNTS),
        *((name, 10, 10) for name in COUNTS),
        ("last_refund_of_customer", 0, 1),
        ("last_decline_of_customer", 0, 1),
    ],
)
async def test_fifty_runs_at_once_do_not_get_past_a_limit(
    busy: Shop, postgres: Database, name: str, at_most: int, paid: int
):
    # given fifty refunds of £1.00, each of another order and quoted when nothing had been paid, with what was declined
    declined = "c1" if name == "last_decline_of_customer" else ""
    of_one = name.endswith("_customer")
    turns = []
    for n in range(AT_ONCE):
        busy.email = "c0@mail.example" if of_one else f"c{n}@mail.example"
        order = f"ORD-{(1000 if of_one else 2000) + n}"
        turns.append(busy.turn(refund(100, order), *([refund(50, order)] if declined else []), run=f"TCK-{n}-1"))
    limit = guard(busy, name, at_most, "C-0")
    async with database.pool(postgres.tools, 12) as one, database.pool(postgres.tools, 12) as two:
        shops = [Shop(busy.tenant, busy.owner, Turns(pool), busy.toolset) for pool in (one, two)]
        quotes = await asyncio.gather(*(shops[n % 2].quote(turn) for n, turn in enumerate(turns)))
        # when all are executed at once, each on the word that the limit holds
        done = await asyncio.gather(
            *(shops[n % 2].execute(turn, quotes[n], guards=[limit], declined=declined) for n, turn in enumerate(turns))
        )
    # then as many are paid as the limit lets through, and the others have done nothing
    assert [type(outcome) for outcome in done].count(Executed) == paid
    assert [type(outcome) for outcome in done].count(Changed) == AT_ONCE - paid
    assert busy.refunds() == [100] * paid
