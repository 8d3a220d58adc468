"""Between the hold and the approval the world changes: nothing is done as it was quoted, and people see why."""

from typing import Any

import pytest
from contracts import verify
from contracts.bus import Bus
from contracts.events import Event
from contracts.facts import CallDecided, TurnExecuted, TurnQuoted
from contracts.parts import CallQuote, Guard, Person

from .others import GET, SAM, Others, forwarded, held, quoted, refund
from .shops import Shop, started_for

SUE = Person(subject="sue", issuer="https://issuer.test", role="approver")


def approved(quotes: TurnQuoted, by: Person = SAM) -> CallDecided:
    return CallDecided(turn=1, call_id="b", digest=_of(quotes).digest, decision="approve", by=by)


def _of(quotes: TurnQuoted) -> CallQuote:
    return next(quote for quote in quotes.quotes if quote.call_id == "b")


async def held_refund(others: Others, acme: Shop) -> tuple[TurnQuoted, Event]:
    """A held refund of £150.00, behind a read."""
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET, refund(minor=15000))
    return quotes, await others.say(held(quotes, "b"), event)


def changed(quotes: TurnQuoted, again: TurnQuoted) -> dict[str, tuple[Any, Any]]:
    """What of the object a new quote shows otherwise than the old one: what it was, and is."""
    was, now = _of(quotes), _of(again)
    assert now.digest != was.digest
    before, after = was.effect.before, now.effect.before
    return {name: (before[name], after[name]) for name in before if before[name] != after[name]}


async def quoted_again(others: Others, attempt: int) -> tuple[Event, TurnQuoted]:
    event = await others.hear("tools.turn-quoted", count=attempt)
    assert isinstance(event.fact, TurnQuoted)
    return event, event.fact


CANCELLED = "update shop.orders set status = 'cancelled' where reference = 'ORD-10042'"
CHEAPER = "update shop.items set unit_minor = 15000 where order_reference = 'ORD-10042'"
PAID_LESS = "update shop.payments set amount_minor = 17000 where order_reference = 'ORD-10042'"
REFUNDED = """
insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency, reason, day)
values (current_setting('turngate.tenant'), 'RF-ELSEWHERE', repeat('0', 64), 0, 'ORD-10042', 'C-1004', 1000, 'GBP',
        'at the till', current_date)
"""


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        pytest.param(CANCELLED, {"status": ("delivered", "cancelled")}, id="the order was cancelled"),
        pytest.param(REFUNDED, {"refunded_minor": (0, 1000)}, id="partly refunded elsewhere"),
        pytest.param(CHEAPER, {"total_minor": (18000, 15000)}, id="the price was corrected"),
        pytest.param(PAID_LESS, {"paid_minor": (18000, 17000)}, id="the payment was corrected"),
    ],
)
async def test_an_effect_that_changed_is_not_done_on_the_old_approval_and_its_new_quote_shows_what_changed(
    others: Others, acme: Shop, running: Bus, change: str, shown: dict[str, tuple[Any, Any]]
):
    # given a held refund, an order that changes, and an approval of what was shown before
    quotes, hold = await held_refund(others, acme)
    acme.rows(change)
    await others.say(approved(quotes), hold)
    # when policy forwards it
    await others.say(forwarded(quotes), hold)
    # then nothing is paid, and the turn is quoted again with what is now
    event, again = await quoted_again(others, 2)
    assert acme.refunds() == []
    assert changed(quotes, again) == shown
    # and when the new quote is forwarded on the old approval, it is not paid either
    hold = await others.say(held(again, "b"), event)
    await others.say(forwarded(again), hold)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.results[1].data == {"refused": "not-released"}
    assert acme.refunds() == []


EARLIER = "update shop.shipments set delivered_on = delivered_on - 1 where order_reference = 'ORD-10042'"
UNDELIVERED = "update shop.shipments set delivered_on = null where order_reference = 'ORD-10042'"
ANOTHER = """
insert into shop.shipments (tenant, tracking, order_reference, carrier, status, delivered_on)
values (current_setting('turngate.tenant'), 'T-2', 'ORD-10042', 'Royal Mail', 'delivered', current_date - 1)
"""
REORDERED = "update shop.orders set placed_at = placed_at - interval '1 day' where reference = 'ORD-10042'"


@pytest.mark.parametrize(
    ("before", "change"),
    [
        pytest.param("", EARLIER, id="it was delivered earlier"),
        pytest.param("", UNDELIVERED, id="it was not delivered"),
        pytest.param("", ANOTHER, id="another parcel was delivered later"),
        pytest.param(UNDELIVERED, REORDERED, id="it was ordered earlier, and not delivered"),
    ],
)
async def test_a_day_from_which_the_refund_window_counts_that_changed_is_judged_again(
    others: Others, acme: Shop, running: Bus, before: str, change: str
):
    # given a held refund that a person has released, and a delivery whose date is corrected then
    if before:
        acme.rows(before)
    quotes, hold = await held_refund(others, acme)
    await others.say(approved(quotes), hold)
    acme.rows(change)
    # when policy forwards it
    await others.say(forwarded(quotes), hold)
    # then nothing is paid, and policy and people have a quote from the other day on
    _, again = await quoted_again(others, 2)
    assert acme.refunds() == []
    assert set(changed(quotes, again)) == {"refund_window_from"}
    assert _of(again).facts.window_from != _of(quotes).facts.window_from


async def test_an_effect_that_changed_is_done_on_an_approval_of_what_it_is_now(
    others: Others, acme: Shop, running: Bus
):
    quotes, hold = await held_refund(others, acme)
    acme.rows(CANCELLED)
    await others.say(approved(quotes), hold)
    await others.say(forwarded(quotes), hold)
    event, again = await quoted_again(others, 2)
    hold = await others.say(held(again, "b"), event)
    await others.say(approved(again, SUE), hold)
    await others.say(forwarded(again), hold)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.approved_by == {"b": ["sue"]}
    assert acme.refunds() == [15000]
    assert verify.verify(await others.events()) == []


@pytest.mark.parametrize("change", ["", "update shop.items set title = 'Jacket' where order_reference = 'ORD-10042'"])
async def test_an_effect_that_did_not_change_is_done_on_the_approval_that_it_had(
    others: Others, acme: Shop, running: Bus, change: str
):
    # given a released refund, and a total of the day that is higher by now
    quotes, hold = await held_refund(others, acme)
    await others.say(approved(quotes), hold)
    if change:
        acme.rows(change)
    limit = Guard(name="refunds_today_of_tenant", subject=acme.tenant, at_most=0)
    # when it is forwarded with a guard that is false
    await others.say(forwarded(quotes, guards=[limit]), hold)
    # then it is quoted again as it was, but for what is no part of the effect
    event, again = await quoted_again(others, 2)
    assert acme.refunds() == []
    assert _of(again).digest == _of(quotes).digest
    # and paid on the approval that it had, once it is forwarded without
    await others.say(forwarded(again), event)
    executed = (await others.hear("tools.turn-executed")).fact
    assert isinstance(executed, TurnExecuted)
    assert executed.attempt == 2
    assert executed.approved_by == {"b": ["sam"]}
    assert acme.refunds() == [15000]
    assert verify.verify(await others.events()) == []
