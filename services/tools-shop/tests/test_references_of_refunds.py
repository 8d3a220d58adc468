"""A refund's reference is made from its intent; two refunds never share one, and the older, shorter ones stay valid."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from contracts.testing import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from tools_shop import demo, references, seeding
from tools_shop.toolsets.shop.issue_refund import intent_of, reference_of

from .shops import TENANTS, Shop

OLDER = """
insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency, reason, day)
values (current_setting('turngate.tenant'), %s, %s, 0, %s, 'C-1004', %s, 'GBP', 'earlier', '2026-01-01')
"""


def refund(minor: int, order: str = "ORD-10042", **more: Any) -> tuple[str, dict[str, Any]]:
    return "issue_refund", {"order_reference": order, "amount_pence": minor, "reason": "unworn", **more}


def intent(shop: Shop, minor: int, order: str = "ORD-10042", n: int = 0) -> str:
    return intent_of(shop.tenant, order, minor, "GBP", n)


def of_another_order(shop: Shop, reference: str) -> None:
    """A refund of somebody else's order to which the digest of its own intent gave this reference."""
    shop.rows(OLDER, reference, "f" * 63 + str(len(shop.rows("select 1 from shop.refunds"))), "ORD-10044", 900)


async def test_a_refund_whose_reference_another_refund_has_is_paid_under_another_reference(acme: Shop) -> None:
    taken = reference_of(intent(acme, 4000))
    of_another_order(acme, taken)
    [paid] = await acme.run(refund(4000))
    assert not paid.is_error, paid.content
    assert acme.refunds() == [4000]
    assert paid.data["refund"] != taken
    assert paid.data["refund"].startswith(taken)
    assert f"reference is {paid.data['refund']}." in paid.content


async def test_it_is_a_duplicate_when_it_is_asked_for_again_and_can_be_followed_by_an_equal_one(acme: Shop) -> None:
    of_another_order(acme, reference_of(intent(acme, 4000)))
    [paid] = await acme.run(refund(4000))
    [again] = await acme.run(refund(4000), run="TCK-1-2")
    assert again.duplicate
    assert again.data["refund"] == paid.data["refund"]
    [second] = await acme.run(refund(4000, again_after=paid.data["refund"]), run="TCK-1-3")
    assert not second.is_error, second.content
    assert acme.refunds() == [4000, 4000]


async def test_the_whole_intent_is_nobody_elses_reference(acme: Shop) -> None:
    mine = intent(acme, 4000)
    for length in references.REFERENCE_LENGTHS[:-1]:
        of_another_order(acme, f"RF-{mine[:length].upper()}")
    [paid] = await acme.run(refund(4000))
    assert paid.data["refund"] == f"RF-{mine.upper()}"


async def test_a_reference_that_is_taken_while_the_refund_is_under_way_is_found_taken(acme: Shop) -> None:
    turn = acme.turn(refund(4000))
    quotes = await acme.quote(turn)
    with acme.owner.transaction():
        of_another_order(acme, reference_of(intent(acme, 4000)))
        paying = asyncio.create_task(acme.execute(turn, quotes))
        async with asyncio.timeout(PATIENCE):
            await acme.waits(paying)
    await paying
    assert acme.refunds() == [4000]


async def test_a_refund_made_under_an_older_shorter_reference_is_not_paid_twice(acme: Shop) -> None:
    short = f"RF-{intent(acme, 4000)[:10].upper()}"
    acme.rows(OLDER, short, intent(acme, 4000), "ORD-10042", 4000)
    [quote] = await acme.quote(acme.turn(refund(4000)))
    assert (quote.duplicate_of, quote.effect and quote.effect.amount_minor) == (short, 0)
    [again] = await acme.run(refund(4000))
    assert again.duplicate
    assert short in again.content
    assert acme.refunds() == []
    [second] = await acme.run(refund(4000, again_after=short), turn=2)
    assert not second.is_error, second.content
    assert acme.refunds() == [4000]


async def test_a_shop_that_was_seeded_with_shorter_references_is_seeded_again_without_a_second_refund(
    acme: Shop,
) -> None:
    before = acme.rows("select id, intent from shop.refunds")
    assert before
    acme.rows("update shop.refunds set id = left(id, 13)")
    entries = demo.read(TENANTS / "acme" / "demo.yaml").model_copy(update={"tenant": acme.tenant})
    with acme.owner.transaction():
        acme.owner.execute("select set_config('turngate.tenant', %s, true)", [acme.tenant])
        seeding.write_shop(acme.owner, entries, datetime.now(UTC).date())
    assert len(acme.rows("select 1 from shop.refunds")) == len(before)


async def test_the_case_of_an_older_run_keeps_the_number_that_people_were_given(acme: Shop) -> None:
    acme.rows(
        "insert into shop.escalations (tenant, run, id, ticket, notes)"
        " values (current_setting('turngate.tenant'), 'TCK-1-1', 'ESC-0A1B2C3D', 'TCK-1', array['first'])"
    )
    [added] = await acme.run(("escalate_to_human", {"summary": "second", "reason": "complaint"}), run="TCK-1-1")
    assert added.data["case"] == "ESC-0A1B2C3D"
    [opened] = await acme.run(("escalate_to_human", {"summary": "x", "reason": "y"}), run="TCK-1-2")
    assert len(opened.data["case"].removeprefix("ESC-")) >= 16


@given(st.text("0123456789abcdef", min_size=64, max_size=64), st.sampled_from((10, 16, 32, 64)))
def test_every_reference_that_is_given_is_read_back_whatever_is_around_it(intent: str, length: int) -> None:
    reference = f"RF-{intent[:length].upper()}"
    assert references.read("refund", f' "{reference.lower()}" ') == reference
