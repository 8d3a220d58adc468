"""Approving while a stop stands: it is refused with what stands in the way, and the approval is not spent."""

from typing import Any

import pytest
from approvals.answers import Recorded
from contracts.answers import No
from contracts.asks import QUOTE
from contracts.events import Event
from contracts.facts import CallDecided, TurnQuoted
from contracts.kill_switch import Stop
from contracts.parts import CallQuote, Json, QuoteFacts
from contracts.testing import World
from turngate.testing import NatsAccess

from .house import Gateway, answering, approvals, held
from .tokens import Mint
from .told import KEY, LEE, SAM, SUE, TWO, Told, detail, hold, hold_of, quote, status

ALL = Stop(None, None, "s-1", "a wave", "ada")
STOP: Json = {"say": "stop-set", "stop_id": "s-1", "tool": "issue_refund", "reason": "a wave of false claims"}
LIFT: Json = {"say": "stop-lifted", "stop_id": "s-1"}


def refund(call_id: str, pence: int = 18000, today: int | None = None, **more: Any) -> CallQuote:
    facts = QuoteFacts(refunded_today_minor=pence if today is None else today)
    return quote(call_id, pence, facts=facts, **more)


def cancel(call_id: str) -> CallQuote:
    return quote(call_id, None, tool="cancel_subscription")


@pytest.fixture
def waiting(run: Told) -> Told:
    run.quote(refund("a"))
    run.hold(hold("a"))
    return run


@pytest.mark.parametrize(
    "stop", [ALL, Stop("issue_refund", None), Stop(None, 17_999), Stop("issue_refund", 17_999, "s", "why", "ada")]
)
def test_an_approval_of_what_is_stopped_is_refused_and_the_same_person_approves_it_once_it_is_lifted(
    waiting: Told, stop: Stop
) -> None:
    refused = waiting.ask(SAM, hold("a"), stops=[stop])

    assert status(refused) == 409
    assert isinstance(refused, No)
    assert refused.title == "Stopped"
    assert "not recorded" in refused.detail
    assert "stopped for now" in refused.detail
    assert waiting.history.all(CallDecided) == []
    assert isinstance(waiting.ask(SAM, hold("a"), stops=[]), Event)


@pytest.mark.parametrize("stop", [Stop("cancel_subscription", None), Stop(None, 18_000)])
def test_a_stop_that_does_not_cover_it_stands_in_nobodys_way(waiting: Told, stop: Stop) -> None:
    assert isinstance(waiting.ask(SAM, hold("a"), stops=[stop]), Event)


def test_a_decline_is_taken_whatever_is_stopped(waiting: Told) -> None:
    assert isinstance(waiting.ask(SAM, hold("a"), "decline", stops=[ALL]), Event)


def test_what_runs_along_unasked_is_in_the_way_as_well_and_what_can_still_be_declined_is_not(run: Told) -> None:
    stop = Stop("cancel_subscription", None)
    run.quote(refund("a"), cancel("b"))
    run.hold(hold("a"))
    refused = run.ask(SAM, hold("a"), stops=[stop])

    both = Told()
    both.quote(refund("a"), cancel("b"))
    both.hold(hold("a"), hold("b"))
    first = both.ask(SAM, hold("a"), stops=[stop])
    stopped = both.ask(SAM, hold("b"), stops=[stop])
    no = both.ask(SUE, hold("b"), "decline", stops=[stop])

    assert (status(refused), "a turn runs whole or not at all" in detail(refused)) == (409, True)
    assert isinstance(first, Event)
    assert status(stopped) == 409
    assert isinstance(no, Event)


def test_the_second_approval_is_not_taken_where_a_stop_came_behind_the_first(run: Told) -> None:
    run.quote(refund("a"))
    run.hold(hold("a", TWO))
    first = run.ask(SAM, hold("a"), stops=[])
    repeated = run.ask(SAM, hold("a"), stops=[ALL])
    second = run.ask(LEE, hold("a"), stops=[ALL])

    assert isinstance(first, Event)
    assert isinstance(repeated, Recorded), "said again it is answered with its fact"
    assert status(second) == 409
    assert len(run.history.all(CallDecided)) == 1


def test_a_customers_day_is_what_is_held_against_an_amount_without_what_was_declined(run: Told) -> None:
    stop = Stop(None, 20_000)
    run.quote(refund("a", 15_000), refund("b", 15_000, today=30_000))
    run.hold(hold_of(refund("a", 15_000)), hold_of(refund("b", 15_000)))

    assert status(run.ask(SAM, hold_of(refund("b", 15_000)), stops=[stop])) == 409
    run.decide(SUE, hold_of(refund("a", 15_000)), decision="decline")
    assert isinstance(run.ask(SAM, hold_of(refund("b", 15_000)), stops=[stop]), Event)


def test_approved_with_less_it_is_looked_at_as_it_would_be_then(waiting: Told) -> None:
    stop = Stop(None, 10_000)
    digest = hold("a").digest
    edited = {"amount_pence": 12_000}

    more = waiting.ask(SAM, hold("a"), quoted=refund("a", 12_000, edited=digest), edited=edited, stops=[stop])
    less = waiting.ask(
        SAM, hold("a"), quoted=refund("a", 9_000, edited=digest), edited={"amount_pence": 9_000}, stops=[stop]
    )

    assert (status(more), waiting.history.all(CallDecided)[:0]) == (409, [])
    assert isinstance(less, Event)


async def test_a_stop_that_was_set_a_moment_ago_is_known_to_who_records_the_approval(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[refund("a")]))
    await held(others, hold("a"))
    async with approvals(fresh_nats, mint):
        assert (await gateway.say("ada", "admin", STOP))["status"] == 200
        stopped = await gateway.ask("sam", hold("a"))
        nothing = (await others.history(KEY)).all(CallDecided)
        assert (await gateway.say("ada", "admin", LIFT))["status"] == 200
        approved = await gateway.ask("sam", hold("a"))

    assert (stopped["status"], stopped["title"]) == (409, "Stopped")
    assert "ada set it: “a wave of false claims”" in stopped["detail"]
    assert nothing == []
    assert approved["status"] == 200


async def test_a_change_that_the_shop_says_is_stopped_is_refused_as_a_stop_is(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[refund("a")]))
    await held(others, hold("a"))
    facts = QuoteFacts(refunded_today_minor=12_000, stopped="issue_refund is stopped for now.")
    changed = quote("a", 12_000, edited=hold("a").digest, facts=facts)
    answer: Json = {"status": 200, "quote": changed.model_dump(mode="json")}
    async with approvals(fresh_nats, mint), answering(fresh_nats, "tools-shop", QUOTE, lambda body: answer):
        stopped = await gateway.ask("sam", hold("a"), edited={"amount_pence": 12_000})

    assert (stopped["status"], stopped["title"]) == (409, "Stopped")
    assert (await others.history(KEY)).all(CallDecided) == []


async def test_what_other_runs_paid_since_a_call_was_held_counts_towards_a_stop_above_an_amount(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[refund("a")]))
    await held(others, hold("a"))
    facts = QuoteFacts(refunded_today_minor=30_000, stopped="issue_refund above £200.00 is stopped for now.")
    answer: Json = {"status": 200, "quote": quote("a", 18_000, facts=facts).model_dump(mode="json")}
    async with approvals(fresh_nats, mint), answering(fresh_nats, "tools-shop", QUOTE, lambda body: answer) as asked:
        assert (await gateway.say("ada", "admin", STOP | {"above_minor": 20_000}))["status"] == 200
        stopped = await gateway.ask("sam", hold("a"))
        declined = await gateway.ask("sue", hold("a"), "decline")

    assert (stopped["status"], stopped["title"]) == (409, "Stopped")
    assert [body["edited"] for body in asked] == [refund("a").arguments]
    assert declined["status"] == 200
    assert [fact.decision for _, fact in (await others.history(KEY)).of(CallDecided)] == ["decline"]
