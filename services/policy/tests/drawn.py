"""Packs, turns and decisions of every kind, for the properties that hold for all of them."""

from datetime import timedelta
from typing import Any

from contracts.canonical import sha256
from contracts.parts import CallQuote, Person
from contracts.testing import person
from hypothesis import strategies as st
from policy.pack import PolicyPack

from .quotes import ABOUT, NEVER, read, refund, write
from .told import ALEX, LEE, LIA, SAM, SUE

PEOPLE = [
    *(ALEX, SAM, SAM, SUE, LEE, LIA),
    *(person("alex", "lead"), person("C-1004", "lead"), person("lee", "approver")),
    *(by.model_copy(update={"limit_minor": limit}) for by in (SAM, LEE) for limit in (4000, 12_000)),
]
ROLES = {"approver": 1, "lead": 2}


def _then(draw: st.DrawFn) -> dict[str, Any]:
    then = draw(st.sampled_from(["hold", "hold", "refuse"]))
    return {"then": then, "role": draw(st.sampled_from(["approver", "lead"])) if then == "hold" else "approver"}


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    pounds = st.integers(1, 400).map(lambda pounds: pounds * 100)
    every: dict[str, Any] = {
        "own_customer_only": draw(st.booleans()),
        "customer_day": {"amount": draw(pounds), "refunds": draw(st.integers(1, 4)), **_then(draw)},
        "profile_day": {"support": {"amount": draw(pounds), **_then(draw)}},
        "tenant_day": {"amount": draw(pounds), "refunds": draw(st.integers(1, 6))},
        "cooling_off": {"after_refund_seconds": 600, "after_decline_seconds": 3600, **_then(draw)},
        "refund_window": {"days": draw(st.integers(1, 60)), **_then(draw)},
    }
    return {name: limit for name, limit in every.items() if draw(st.sampled_from([False, False, True]))}


@st.composite
def packs(draw: st.DrawFn, modes: tuple[str, ...] = ("enforce", "enforce", "audit")) -> PolicyPack:
    tops = sorted(draw(st.sets(st.integers(0, 300), min_size=2, max_size=4)))
    people = sorted(draw(st.lists(st.integers(1, 3), min_size=3, max_size=3)))
    seats = sorted(draw(st.lists(st.sampled_from([0, 1, 2]), min_size=3, max_size=3)))
    tiers = [
        {
            "up_to": limit * 100,
            "people": count,
            "role": "lead" if seat == 2 else "approver",
            "one_of_role": "lead" if seat == 1 else None,
        }
        for limit, count, seat in zip(tops[1:], people, seats, strict=False)
    ]
    return PolicyPack.model_validate(
        {
            "name": "acme",
            "version": 1,
            "mode": draw(st.sampled_from(modes)),
            "currency": "GBP",
            "refund": {"automatic_up_to": tops[0] * 100, "tiers": tiers},
            "limits": draw(limits()),
            "writes": {"issue_refund": "refund", "cancel_subscription": "automatic"},
            "hold": {"remind_after_seconds": 3600, "expires_after_seconds": 7200},
            "digest": sha256("pack"),
        }
    )


@st.composite
def facts(draw: st.DrawFn) -> dict[str, Any]:
    """What the shop may tell beside the customer's total of the day: mostly little, at times too much or nothing."""
    total, count = st.sampled_from([100, 100, 100, 15_000, None]), st.sampled_from([1, 1, 1, 5, None])
    times = st.sampled_from([NEVER, NEVER, NEVER, ABOUT.now - timedelta(seconds=60), None])
    return {
        "refunds_today_by_customer": draw(count),
        "refunded_today_of_tenant_minor": draw(total),
        "refunds_today_of_tenant": draw(count),
        "refunded_today_by_profile_minor": draw(total),
        "last_refund_at": draw(times),
        "last_declined_at": draw(times),
        "window_from": draw(st.sampled_from([ABOUT.now, ABOUT.now, ABOUT.now, NEVER, None])),
        "decided_above_minor": draw(st.sampled_from([None, None, None, 500, 10_000])),
        "stopped": draw(st.sampled_from([None] * 19 + ["all refunds"])),
    }


@st.composite
def quotes(draw: st.DrawFn, call_id: str) -> CallQuote:
    kind = draw(st.sampled_from(["read", "write", "unlisted", "refund", "refund", "refund"]))
    if kind == "read":
        return read(call_id)
    if kind in ("write", "unlisted"):
        return write("cancel_subscription" if kind == "write" else "unheard_of", call_id)
    amount = draw(st.one_of(st.integers(1, 400).map(lambda pounds: pounds * 100), st.sampled_from([None, 0, -100])))
    return refund(
        call_id,
        amount,
        today=draw(st.one_of(st.none(), st.integers(0, 400).map(lambda pounds: pounds * 100))),
        customer=draw(st.sampled_from(["C-1004", "C-1004", "C-2", None])),
        currency=draw(st.sampled_from(["GBP"] * 9 + ["USD"])),
        tool=draw(st.sampled_from(["issue_refund"] * 5 + ["unheard_of"])),
        will_fail=draw(st.sampled_from([None] * 9 + ["No."])),
        duplicate_of=draw(st.sampled_from([None] * 9 + ["RF-1"])),
        again_after=draw(st.sampled_from([None] * 9 + ["RF-0"])),
        facts=draw(facts()),
    )


@st.composite
def turns(draw: st.DrawFn) -> list[CallQuote]:
    """Anything at all; or an amount split into ordinary refunds to one customer, whose total may be told wrong."""
    ids = [f"call-{n}" for n in range(draw(st.integers(1, 4)))]
    if draw(st.booleans()):
        return [draw(quotes(call_id)) for call_id in ids]
    pounds = draw(st.lists(st.integers(1, 150), min_size=len(ids), max_size=len(ids)))
    return [
        refund(call_id, 100 * each, today=100 * draw(st.sampled_from([each, sum(pounds)])), facts=draw(facts()))
        for call_id, each in zip(ids, pounds, strict=True)
    ]


@st.composite
def days(draw: st.DrawFn) -> list[CallQuote]:
    """A turn's ordinary refunds to one customer who was paid something earlier that day."""
    today, calls = draw(st.sampled_from([0, 0, 50, 100, 150])), []
    for number, pounds in enumerate(draw(st.lists(st.integers(1, 80), min_size=1, max_size=3))):
        today += pounds
        calls.append(refund(f"call-{number}", 100 * pounds, today=100 * today))
    return calls


@st.composite
def approvals(draw: st.DrawFn) -> list[tuple[int, Person, str, bool, int]]:
    """These people approve every call of a turn, as far as they are asked."""
    limited = [by.model_copy(update={"limit_minor": 15_000}) for by in (SAM, LEE)]
    people = draw(st.lists(st.sampled_from([SAM, SUE, LEE, LIA, *limited]), min_size=1, max_size=3))
    return [(which, by, "approve", True, 1) for by in people for which in range(4)]


@st.composite
def decisions(draw: st.DrawFn) -> tuple[int, Person, str, bool, int]:
    """Which call, by whom, what, for the digest as quoted or another, and how many minutes later."""
    return (
        draw(st.integers(0, 3)),
        draw(st.sampled_from(PEOPLE)),
        draw(st.sampled_from(["approve", "approve", "approve", "edit", "edit", "decline"])),
        draw(st.sampled_from([True] * 5 + [False])),
        draw(st.sampled_from([0, 1, 1, 30, 100])),
    )
