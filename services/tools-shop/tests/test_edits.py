"""A person approves a held call with other arguments: quoted anew, and whose word still counts for it."""

from pathlib import Path
from typing import Any

import pytest
from contracts import verify
from contracts.bus import Bus
from contracts.declines import WHAT_FOLLOWS
from contracts.events import Event
from contracts.facts import CallDecided, RunCancelled, TurnExecuted, TurnHeld, TurnQuoted
from contracts.parts import Hold, Needs, Person
from tools_shop import edits
from turngate.testing import Database, NatsAccess

from .others import GET, SAM, Others, forwarded, held, proposed, quoted, refund, restarted
from .shops import OPERATOR, Shop, started_for

SUE = Person(subject="sue", issuer="https://issuer.test", role="approver")
CAREFUL = SAM.model_copy(update={"limit_minor": 12000})


def decided(
    quotes: TurnQuoted, call_id: str = "b", by: Person = SAM, decision: str = "approve", **changed: Any
) -> CallDecided:
    """With `changed`, an approval of these arguments instead of the quoted ones."""
    quote = next(quote for quote in quotes.quotes if quote.call_id == call_id)
    said = {"turn": 1, "call_id": call_id, "digest": quote.digest, "decision": decision, "by": by}
    return CallDecided.model_validate(said | ({"edited": quote.arguments | changed} if changed else {}))


async def held_refund(others: Others, acme: Shop, minor: int = 18000) -> tuple[TurnQuoted, Event]:
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET, refund(minor=minor))
    return quotes, await others.say(held(quotes, "b"), event)


async def quoted_anew(others: Others, attempt: int = 2) -> tuple[Event, TurnQuoted]:
    event = await others.hear("tools.turn-quoted", count=attempt)
    assert isinstance(event.fact, TurnQuoted)
    assert event.fact.attempt == attempt
    return event, event.fact


async def executed(others: Others) -> TurnExecuted:
    fact = (await others.hear("tools.turn-executed")).fact
    assert isinstance(fact, TurnExecuted)
    return fact


async def test_less_than_was_asked_for_is_quoted_anew_and_paid_on_the_word_of_who_changed_it(
    others: Others, acme: Shop, running: Bus
):
    # given a held refund of £180.00
    quotes, hold = await held_refund(others, acme)
    # when a person approves £120.00
    decision = await others.say(decided(quotes, amount_pence=12000), hold)
    # then the turn is quoted as it would be now
    event, again = await quoted_anew(others)
    assert event.cause == decision.id
    read, pay = again.quotes
    assert (read.edited, read.digest) == (None, quotes.quotes[0].digest)
    assert pay.edited == quotes.quotes[1].digest != pay.digest
    assert pay.arguments["amount_pence"] == pay.effect.amount_minor == 12000
    # and once policy forwards that, it is paid, and the model is told what was changed
    await others.say(forwarded(again), event)
    done = await executed(others)
    assert done.results[1].content.startswith(
        "A person changed amount_pence from 18000 to 12000 before approving. Refunded £120.00"
    )
    assert not done.results[0].content.startswith("A person")
    assert done.approved_by == {"b": ["sam"]}
    assert acme.refunds() == [12000]
    assert verify.verify(await others.events()) == []


@pytest.mark.parametrize(
    ("minor", "by", "changed", "paid"),
    [
        pytest.param(18000, SAM, {"amount_pence": 12000}, [12000], id="less"),
        pytest.param(18000, SAM, {"reason": "too tight"}, [18000], id="as much, in other words"),
        pytest.param(15000, SAM, {"amount_pence": 15001}, [], id="more"),
        pytest.param(18000, SAM, {"order_reference": "ORD-10099", "amount_pence": 100}, [], id="another order"),
        pytest.param(18000, OPERATOR, {"amount_pence": 12000}, [], id="who may not release"),
        pytest.param(18000, CAREFUL, {"amount_pence": 12000}, [12000], id="within their own limit"),
        pytest.param(18000, CAREFUL, {"amount_pence": 12001}, [], id="above their own limit"),
    ],
)
async def test_the_word_of_who_changed_a_call_counts_for_less_money_on_the_same_object_and_within_their_limit(
    others: Others, acme: Shop, running: Bus, minor: int, by: Person, changed: dict[str, Any], paid: list[int]
):
    quotes, hold = await held_refund(others, acme, minor)
    await others.say(decided(quotes, by=by, **changed), hold)
    event, again = await quoted_anew(others)
    await others.say(forwarded(again), event)
    done = await executed(others)
    assert acme.refunds() == paid
    assert done.approved_by == ({"b": ["sam"]} if paid else {})
    assert done.results[1].is_error is not bool(paid)


@pytest.mark.parametrize(("by", "paid"), [(SAM, []), (SUE, [15000])])
async def test_who_asked_for_more_does_not_release_it(
    others: Others, acme: Shop, running: Bus, by: Person, paid: list[int]
):
    # given a change that does not carry over, so that policy holds it anew and names who changed it
    quotes, hold = await held_refund(others, acme, 14000)
    await others.say(decided(quotes, amount_pence=15000), hold)
    event, again = await quoted_anew(others)
    anew = held(again, "b")
    named = [one.model_copy(update={"edited_by": SAM}) for one in anew.holds]
    hold = await others.say(anew.model_copy(update={"holds": named}), event)
    # when somebody approves it as it is now
    await others.say(decided(again, by=by), hold)
    await others.say(forwarded(again), hold)
    # then only another person's word counts
    await executed(others)
    assert acme.refunds() == paid


async def test_where_policy_forgets_to_name_who_changed_it_their_word_counts_no_more_for_that(
    others: Others, acme: Shop, running: Bus
):
    quotes, hold = await held_refund(others, acme, 14000)
    await others.say(decided(quotes, amount_pence=15000), hold)
    event, again = await quoted_anew(others)
    hold = await others.say(held(again, "b"), event)
    await others.say(decided(again, by=SAM), hold)
    await others.say(forwarded(again), hold)
    await executed(others)
    assert acme.refunds() == []


def _by_two(fact: TurnHeld) -> TurnHeld:
    holds = [hold.model_copy(update={"needs": Needs(people=2)}) for hold in fact.holds]
    return fact.model_copy(update={"holds": holds})


def _all_held(quotes: TurnQuoted) -> TurnHeld:
    holds = [Hold(call_id=q.call_id, digest=q.digest, rule="above-limit", reason="much") for q in quotes.quotes]
    return held(quotes, quotes.quotes[0].call_id).model_copy(update={"holds": holds})


async def test_where_two_are_needed_who_changed_it_is_one_of_them(others: Others, acme: Shop, running: Bus):
    # given a hold that asks for two
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET, refund(minor=18000))
    hold = await others.say(_by_two(held(quotes, "b")), event)
    # when one of them lowers it, and it is held anew
    await others.say(decided(quotes, amount_pence=12000), hold)
    event, again = await quoted_anew(others)
    hold = await others.say(_by_two(held(again, "b")), event)
    # and another approves the lower amount / then it is paid on the word of both
    await others.say(decided(again, by=SUE), hold)
    await others.say(forwarded(again), hold)
    assert (await executed(others)).approved_by == {"b": ["sam", "sue"]}
    assert acme.refunds() == [12000]


async def test_of_a_turn_with_several_held_calls_each_gets_what_people_made_of_it(
    others: Others, acme: Shop, running: Bus
):
    # given three held refunds
    await others.say(started_for(acme.email))
    calls = [refund(name, minor) for name, minor in (("a", 4000), ("b", 5000), ("c", 6000))]
    event, quotes = await quoted(others, *calls)
    hold = await others.say(_all_held(quotes), event)
    # when one is declined, one is approved and one is lowered, to what the declined one was
    no = decided(quotes, "a", decision="decline").model_copy(update={"note": " Worn, see the photos. "})
    await others.say(no, hold)
    await others.say(decided(quotes, "b"), hold)
    await others.say(decided(quotes, "c", amount_pence=4000), hold)
    # then the new quote shows what would come of it: the third repeats nothing, since the first will not run
    event, again = await quoted_anew(others)
    assert [quote.duplicate_of for quote in again.quotes] == [None, None, None]
    assert [quote.edited for quote in again.quotes] == [None, None, quotes.quotes[2].digest]
    await others.say(forwarded(again, declined="a"), event)
    done = await executed(others)
    assert [result.is_error for result in done.results] == [True, False, False]
    assert done.results[0].content == f"A person declined this. {WHAT_FOLLOWS} They said: Worn, see the photos."
    assert done.approved_by == {"b": ["sam"], "c": ["sam"]}
    assert sorted(acme.refunds()) == [4000, 5000]


async def test_changes_of_two_calls_come_into_one_quote_however_they_are_heard(open_fresh):
    shop, handlers, others = await open_fresh()
    await others.say(started_for(shop.email))
    await handlers.hear(await others.say(proposed(refund("a", 7000), refund("b", 8000))))
    quotes = (await others.events())[-1]
    hold = await others.say(_all_held(quotes.fact), quotes)
    heard = [
        await others.say(decided(quotes.fact, "a", amount_pence=3000), hold),
        await others.say(decided(quotes.fact, "b", by=SUE, amount_pence=2000), hold),
        await others.say(decided(quotes.fact, "b", amount_pence=1000), hold),
    ]
    for event in (heard[1], heard[0], heard[2], heard[1]):
        await handlers.hear(event)
    again = [event.fact for event in await others.events() if isinstance(event.fact, TurnQuoted)]
    assert [fact.attempt for fact in again] == [1, 2]
    # The first change of a call is the one that counts.
    assert [quote.arguments["amount_pence"] for quote in again[1].quotes] == [3000, 2000]


@pytest.mark.parametrize("late", ["expired", "another digest", "forwarded", "ended", "unchanged"])
async def test_a_change_that_comes_too_late_or_is_about_something_else_is_no_quote(open_fresh, late: str):
    shop, handlers, others = await open_fresh()
    await others.say(started_for(shop.email))
    await handlers.hear(await others.say(proposed(refund(minor=18000))))
    quotes = (await others.events())[-1]
    hold_fact = held(quotes.fact, "b")
    if late == "expired":
        hold_fact = hold_fact.model_copy(update={"expires_at": hold_fact.remind_at})
    hold = await others.say(hold_fact, quotes)
    if late == "forwarded":
        await others.say(forwarded(quotes.fact), hold)
    if late == "ended":
        await others.say(RunCancelled(by=OPERATOR))
    decision = decided(quotes.fact, amount_pence=12000)
    if late == "another digest":
        decision = decision.model_copy(update={"digest": "0" * 64})
    if late == "unchanged":
        decision = decision.model_copy(update={"edited": None})
    before = await others.events()
    await handlers.hear(await others.say(decision, hold))
    assert [event.kind for event in (await others.events())[len(before) :]] == ["approvals.call-decided"]


async def test_a_change_outlives_a_world_that_changes_and_the_word_of_who_made_it_does_not(
    others: Others, acme: Shop, running: Bus
):
    # given a changed refund, and another of the same order before it is forwarded
    quotes, hold = await held_refund(others, acme)
    await others.say(decided(quotes, amount_pence=12000), hold)
    event, again = await quoted_anew(others)
    await acme.run(("issue_refund", {**refund().arguments, "amount_pence": 100}), run="TCK-9-1")
    await others.say(forwarded(again), event)
    # then it is quoted as a person changed it, with another effect
    event, third = await quoted_anew(others, 3)
    assert third.quotes[1].arguments["amount_pence"] == 12000
    assert third.quotes[1].edited == quotes.quotes[1].digest
    assert third.quotes[1].effect.before["refunded_minor"] == 100
    # and it is not paid on what was said of the former one
    await others.say(forwarded(third), event)
    await executed(others)
    assert acme.refunds() == [100]


async def test_a_change_that_was_made_in_other_words_than_it_is_quoted_in_carries_nothing_over(
    others: Others, acme: Shop, running: Bus
):
    quotes, hold = await held_refund(others, acme)
    await others.say(decided(quotes, amount_pence=12000, order_reference="ord-10042 "), hold)
    event, again = await quoted_anew(others)
    await others.say(forwarded(again), event)
    await executed(others)
    assert acme.refunds() == []


_POINTS = (
    "before-read", "after-read", "after-quote", "before-append", "after-append", "before-ack", "after-ack",
)  # fmt: skip


@pytest.mark.parametrize(
    "point",
    ["after-quote", *(pytest.param(p, marks=pytest.mark.slow) for p in _POINTS if p != "after-quote")],
)
async def test_killed_anywhere_a_change_is_quoted_once(
    others: Others, acme: Shop, nats_server: NatsAccess, postgres: Database, data_dir: Path, point: str
):
    stops = data_dir / "stops"
    stops.mkdir()
    async with restarted(nats_server, postgres, stops):
        quotes, hold = await held_refund(others, acme)
        armed = stops / f"tools-shop.{point}"
        armed.write_text(f"1 {others.key.run} approvals.call-decided")
        await others.say(decided(quotes, amount_pence=12000), hold)
        event, again = await quoted_anew(others)
        await others.say(forwarded(again), event)
        await executed(others)
    assert armed.with_name(f"{armed.name}.reached").exists()
    assert [e.kind for e in await others.events()].count("tools.turn-quoted") == 2
    assert acme.refunds() == [12000]


def test_what_was_changed_is_said_in_a_sentence():
    asked = {"order_reference": "ORD-1", "amount_pence": 18000, "reason": "unworn"}
    assert edits.change(asked, asked | {"amount_pence": 12000, "again_after": "RF-0123456789"}) == (
        "A person changed amount_pence from 18000 to 12000 and again_after from nothing to "
        '"RF-0123456789" before approving. '
    )
    assert edits.change(asked, {"order_reference": "ORD-1", "amount_pence": 18000}) == (
        'A person changed reason from "unworn" to nothing before approving. '
    )
    assert edits.change(asked, asked) == "A person approved this as it was asked for. "
