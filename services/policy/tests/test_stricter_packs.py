"""Packs against one another: what a stricter one, an audit or more money may never make easier."""

from datetime import timedelta

from contracts.facts import (
    TurnHeld,
)
from contracts.parts import CallQuote
from contracts.people import stricter
from hypothesis import assume, given
from hypothesis import strategies as st
from policy.pack import PolicyPack
from policy.rules import AskPeople, Judgement, Refuse, Run, judge
from pydantic import ValidationError

from .drawn import packs, turns
from .quotes import ABOUT, refund
from .told import Told


def at_least(judgement: Judgement, other: Judgement) -> bool:
    """Whether the first lets no more through than the second."""
    if isinstance(judgement, AskPeople) and isinstance(other, AskPeople):
        return stricter(judgement.needs, other.needs) == judgement.needs
    order = (Run, AskPeople, Refuse)
    return order.index(type(judgement)) >= order.index(type(other))


@given(packs(modes=("enforce",)), turns())
def test_audit_mode_lets_through_what_was_refused_and_never_what_was_held(
    pack: PolicyPack, calls: list[CallQuote]
) -> None:
    audit = pack.model_copy(update={"mode": "audit"})
    for enforced, audited, quote in zip(judge(calls, pack, ABOUT), judge(calls, audit, ABOUT), calls, strict=True):
        if quote.facts.stopped:
            assert audited == enforced
        elif isinstance(enforced, Refuse):
            assert isinstance(audited, Run | AskPeople)
            assert audited.instead_of == enforced
        else:
            assert audited == enforced
    held, under_audit = Told(pack).quote(*calls), Told(audit).quote(*calls)
    if isinstance(held, TurnHeld):
        assert isinstance(under_audit, TurnHeld)
        assert under_audit.holds == held.holds


def tightened(pack: PolicyPack, data: st.DataObject) -> PolicyPack:
    """The same pack with one limit lower, new or harder, or one more or higher person asked."""
    text = pack.model_dump()
    tiers, limits = text["refund"]["tiers"], text["limits"]
    tier = data.draw(st.sampled_from(tiers), "tier")
    ways = ["automatic", "tier", "people", "role", "one of", "new", "lower", "unnamed"]
    if not pack.audits:
        # Under audit a refusal is only put on record, so a hold that is made into one asks for less, not for more.
        ways.append("harder")
    what = data.draw(st.sampled_from(ways), "tighter")
    lower = data.draw(st.integers(1, 100), "lower")
    standing = [limit for name, limit in limits.items() if limit and name not in ("own_customer_only", "profile_day")]
    match what:
        case "automatic":
            text["refund"]["automatic_up_to"] = max(text["refund"]["automatic_up_to"] - lower * 100, 0)
        case "tier":
            tier["up_to"] = max(tier["up_to"] - lower * 100, 0)
        case "people":
            tier["people"] += 1
        case "role":
            tier |= {"role": "lead", "one_of_role": None}
        case "one of" if tier["role"] == "approver":
            tier["one_of_role"] = "lead"
        case "new":
            limits["own_customer_only"] = True
            limits["customer_day"] = limits["customer_day"] or {"refunds": 1, "amount": lower * 100}
            limits["tenant_day"] = limits["tenant_day"] or {"refunds": 1, "amount": lower * 100}
        case "lower" if standing:
            limit = data.draw(st.sampled_from(standing), "limit")
            for name in ("amount", "refunds", "days"):
                if limit.get(name):
                    limit[name] //= 2
        case "harder":
            for limit in standing:
                if "then" in limit:
                    limit |= {"then": "refuse", "role": "approver"}
        case "unnamed":
            del text["writes"]["cancel_subscription"]
    try:
        return PolicyPack.model_validate(text)
    except ValidationError:
        assume(False)
        raise


@given(packs(), turns(), st.data())
def test_a_stricter_pack_never_lets_more_through(pack: PolicyPack, calls: list[CallQuote], data: st.DataObject) -> None:
    stricter_pack = tightened(pack, data)

    for now, before in zip(judge(calls, stricter_pack, ABOUT), judge(calls, pack, ABOUT), strict=True):
        if pack.mode == "enforce":
            assert at_least(now, before), (now, before)
        elif isinstance(before, AskPeople):
            assert not isinstance(now, Run), "under audit a stricter pack may say more, and lets no hold go"


@given(packs(), st.integers(1, 40_000), st.integers(1, 40_000))
def test_more_money_is_never_easier(pack: PolicyPack, one: int, other: int) -> None:
    pack = pack.model_copy(update={"mode": "enforce"})
    known = {"refunds_today_by_customer": 1, "refunds_today_of_tenant": 1, "window_from": ABOUT.now}
    less, more = (
        judge(
            [
                refund(
                    amount=minor,
                    facts=known
                    | {
                        "refunded_today_of_tenant_minor": minor,
                        "refunded_today_by_profile_minor": minor,
                        "last_refund_at": ABOUT.now - timedelta(hours=1),
                        "last_declined_at": ABOUT.now - timedelta(hours=1),
                    },
                )
            ],
            pack,
            ABOUT,
        )[0]
        for minor in sorted((one, other))
    )
    assert at_least(more, less)
