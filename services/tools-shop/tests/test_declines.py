"""What people declined is kept when it is heard, whatever becomes of the turn."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contracts.declines import WHAT_FOLLOWS
from contracts.events import Event
from contracts.facts import CallDecided, HoldExpired, RunCancelled, TurnExecuted, TurnForwarded, TurnQuoted
from contracts.parts import Person
from contracts.testing import PATIENCE
from tools_shop.handlers import Handlers
from tools_shop.turn import Executed

from .others import GET, SAM, Fresh, Others, forwarded, held, proposed, refund
from .shops import OPERATOR, Shop, started_for


async def held_refund(shop: Shop, handlers: Handlers, others: Others, call_id: str = "b") -> tuple[Event, TurnQuoted]:
    """A turn of a read and a refund, one of which is held."""
    await others.say(started_for(shop.email))
    await handlers.hear(await others.say(proposed(GET, refund(minor=18000))))
    quoted = (await others.events())[-1]
    assert isinstance(quoted.fact, TurnQuoted)
    return await others.say(held(quoted.fact, call_id), quoted), quoted.fact


def decided(
    quotes: TurnQuoted, decision: str = "decline", call_id: str = "b", digest: str = "", by: Person = SAM
) -> CallDecided:
    digest = digest or next(quote.digest for quote in quotes.quotes if quote.call_id == call_id)
    said = {"turn": 1, "call_id": call_id, "digest": digest, "decision": decision, "by": by}
    return CallDecided.model_validate(said)


def declines(shop: Shop) -> list[dict[str, Any]]:
    return shop.rows("select run, turn, call_id, customer_id, declined_at from shop.declines")


async def test_a_decline_is_kept_once_though_the_run_is_cancelled_before_its_turn_is_executed(open_fresh: Fresh):
    # given a held refund that a person declines, and a run that is cancelled before that is heard
    shop, handlers, others = await open_fresh()
    hold, quotes = await held_refund(shop, handlers, others)
    decision = await others.say(decided(quotes), hold)
    await others.say(RunCancelled(by=OPERATOR))
    # when it is heard, twice
    await handlers.hear(decision)
    await handlers.hear(decision)
    # then it is known once, as of when it was said
    [kept] = declines(shop)
    assert kept == {
        "run": "TCK-2004-1", "turn": 1, "call_id": "b", "customer_id": "C-1004", "declined_at": decision.time
    }  # fmt: skip
    # and the customer's next run is told of it
    [quote] = await shop.quote(shop.turn((refund().tool, refund().arguments), run="TCK-2004-2"))
    assert quote.facts.last_declined_at == decision.time


async def test_a_decline_is_kept_once_though_its_turn_is_executed_too(open_fresh: Fresh):
    shop, handlers, others = await open_fresh()
    hold, quotes = await held_refund(shop, handlers, others)
    decision = await others.say(decided(quotes), hold)
    await handlers.hear(decision)
    await handlers.hear(await others.say(forwarded(quotes, declined="b"), decision))
    assert isinstance((await others.events())[-1].fact, TurnExecuted)
    assert [kept["declined_at"] for kept in declines(shop)] == [decision.time]


async def test_a_decline_waits_for_what_is_about_to_be_committed_for_its_customer(
    acme: Shop,
):
    turn = acme.turn((refund().tool, refund().arguments))
    async with acme.about_to_commit(turn) as execution, asyncio.timeout(PATIENCE):
        other = acme.turn(run="TCK-2-1").caller
        keeping = asyncio.create_task(acme.turns.keep_decline(other, acme.toolset, "b", datetime.now(UTC)))
        await acme.waits(keeping)
    await keeping
    assert isinstance(execution.result(), Executed)
    assert [kept["run"] for kept in declines(acme)] == ["TCK-2-1"]


@pytest.mark.parametrize(
    ("held_call", "said"),
    [
        pytest.param("b", {"decision": "approve"}, id="it was approved"),
        pytest.param("b", {"digest": "0" * 64}, id="something else was declined"),
        pytest.param("b", {"by": OPERATOR}, id="who asked for it declined it"),
        pytest.param("b", {"by": SAM.model_copy(update={"subject": "C-1004"})}, id="its customer did"),
        pytest.param("b", {"call_id": "a"}, id="what was declined was not held"),
        pytest.param("a", {"call_id": "a"}, id="it changes nothing"),
    ],
)
async def test_what_is_no_decline_of_a_held_write_is_not_kept(open_fresh: Fresh, held_call: str, said: dict[str, Any]):
    shop, handlers, others = await open_fresh()
    hold, quotes = await held_refund(shop, handlers, others, held_call)
    await handlers.hear(await others.say(decided(quotes, **said), hold))
    assert declines(shop) == []


async def test_a_decline_behind_the_expiry_of_its_hold_is_not_kept(open_fresh: Fresh):
    shop, handlers, others = await open_fresh()
    await others.say(started_for(shop.email))
    await handlers.hear(await others.say(proposed(GET, refund(minor=18000))))
    quoted = (await others.events())[-1]
    assert isinstance(quoted.fact, TurnQuoted)
    expired = held(quoted.fact, "b").model_copy(update={"expires_at": datetime.now(UTC) - timedelta(seconds=1)})
    hold = await others.say(expired, quoted)
    await handlers.hear(await others.say(decided(quoted.fact), hold))
    assert declines(shop) == []


def ran_out(quotes: TurnQuoted) -> TurnForwarded:
    """What policy says of a refund that nobody decided in time."""
    fact = forwarded(quotes, declined="b")
    verdicts = [one.model_copy(update={"rule": "expired", "reason": "Nobody released this."}) for one in fact.verdicts]
    return fact.model_copy(update={"verdicts": verdicts})


@pytest.mark.parametrize("by", [None, OPERATOR], ids=["nobody said anything", "who asked said no"])
async def test_a_hold_that_expired_starts_no_cooling_off(open_fresh: Fresh, by: Person | None):
    # given a held refund that nobody who may has decided
    shop, handlers, others = await open_fresh()
    hold, quotes = await held_refund(shop, handlers, others)
    if by is not None:
        await handlers.hear(await others.say(decided(quotes, by=by), hold))
    expired = await others.say(HoldExpired(turn=1, call_ids=["b"]), hold)
    # when the rest is executed without it
    await handlers.hear(await others.say(ran_out(quotes), expired))
    done = (await others.events())[-1].fact
    assert isinstance(done, TurnExecuted)
    assert done.results[1].content == f"Nobody released this. {WHAT_FOLLOWS}"
    # then no decline is known, and the customer's next run is told of none
    assert declines(shop) == []
    [quote] = await shop.quote(shop.turn((refund().tool, refund().arguments), run="TCK-2004-2"))
    assert quote.facts.last_declined_at == datetime.fromtimestamp(0, UTC)
