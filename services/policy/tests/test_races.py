"""Several runs at once against one day's limits: whatever is quoted before whatever is paid, none is exceeded."""

from datetime import timedelta
from functools import cache
from typing import Any

from contracts.facts import Fact, TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import Person
from hypothesis import given
from hypothesis import strategies as st
from policy.pack import PolicyPack, parse

from .quotes import PACK
from .shop import Refund, all_at_once
from .told import LEE, LIA, SAM, SUE, Told

LIMITS = """\
limits:
  customer_day: {amount: 7000, refunds: 3, then: THEN}
  profile_day: {support: {amount: 9000, then: THEN}}
  tenant_day: {amount: 12000, refunds: 6}
writes:"""
refunds = st.tuples(
    st.sampled_from(["C-1", "C-1", "C-1", "C-2", "C-3"]), st.integers(1, 60).map(lambda pounds: pounds * 100)
)
at_once = st.lists(st.lists(refunds, min_size=1, max_size=2), min_size=2, max_size=8)


@cache
def limited(then: str) -> PolicyPack:
    return parse(PACK.replace("writes:", LIMITS.replace("THEN", then)))


def nobody(run: Told) -> Fact | None:
    return None


def everybody(run: Told) -> Fact | None:
    """Three people release all that is held."""
    held = run.history.last(TurnHeld)
    assert held is not None
    answer = None
    for hold in held.holds:
        quote = next(q for q in run.last_quotes if q.call_id == hold.call_id)
        for by in (SAM, LEE, LIA):
            answer = run.decide(by, quote) or answer
    return answer


@given(at_once, st.sampled_from(["hold", "refuse"]), st.randoms())
def test_runs_at_once_never_exceed_a_days_limit_where_nobody_releases_anything(
    turns: list[list[Refund]], then: str, chance: Any
) -> None:
    shop, _ = all_at_once(limited(then), turns, chance.shuffle, nobody)

    for customer in ("C-1", "C-2", "C-3"):
        assert shop.totals(customer)["refunded_today_by_customer"] <= 5000
        assert shop.totals(customer)["refunds_today_by_customer"] <= 3
    assert shop.totals("")["refunded_today_by_profile"] <= 9000
    assert shop.totals("")["refunds_today_of_tenant"] <= 6


@given(at_once, st.randoms())
def test_runs_at_once_never_exceed_a_hard_cap_whatever_people_release(turns: list[list[Refund]], chance: Any) -> None:
    shop, _ = all_at_once(limited("refuse"), turns, chance.shuffle, everybody)

    for customer in ("C-1", "C-2", "C-3"):
        assert shop.totals(customer)["refunded_today_by_customer"] <= 7000
        assert shop.totals(customer)["refunds_today_by_customer"] <= 3
    assert shop.totals("")["refunded_today_by_profile"] <= 9000
    assert shop.totals("")["refunded_today_of_tenant"] <= 12_000
    assert shop.totals("")["refunds_today_of_tenant"] <= 6


def test_fifty_runs_at_once_pay_as_many_small_refunds_as_the_day_allows_and_hold_the_rest() -> None:
    pack = parse(PACK.replace("writes:", "limits:\n  customer_day: {refunds: 3}\n  tenant_day: {refunds: 20}\nwrites:"))
    turns = [[(f"C-{number % 10}", 100)] for number in range(50)]

    shop, runs = all_at_once(pack, turns, lambda going: None, nobody)

    assert len(shop.paid) == 20
    ends = [run.history.events[-1].fact for run in runs]
    assert sum(isinstance(end, TurnRefused) for end in ends) == 30
    assert {end.rule for end in ends if isinstance(end, TurnRefused)} == {"tenant-day-count"}


def test_of_two_runs_at_once_the_second_waits_for_the_cooling_off_of_the_first() -> None:
    pack = parse(PACK.replace("writes:", "limits:\n  cooling_off: {after_refund_seconds: 600}\nwrites:"))

    shop, runs = all_at_once(pack, [[("C-1", 100)], [("C-1", 200)]], lambda going: None, nobody)

    assert len(shop.paid) == 1
    held = [run.history.last(TurnHeld) for run in runs]
    assert sorted(fact.holds[0].rule for fact in held if fact) == ["cooling-off-after-refund"]
    later = Told(pack)
    later.now += timedelta(minutes=11)
    assert isinstance(shop.quote(later, [("C-1", 300)], 1), TurnForwarded)


LOW_TIERS = parse(PACK.replace("up_to: 50000", "up_to: 10000").replace("up_to: 200000", "up_to: 15000"))
LIMITED = (SAM.model_copy(update={"limit_minor": 9000}), SUE, LEE)


@given(at_once, st.lists(st.sampled_from(LIMITED), min_size=1, max_size=3, unique=True), st.randoms())
def test_runs_at_once_pay_nothing_that_the_customers_day_all_together_needs_more_people_for(
    turns: list[list[Refund]], people: list[Person], chance: Any
) -> None:
    def some(run: Told) -> Fact | None:
        answers = [run.decide(by, quote) for quote in run.last_quotes for by in chance.sample(people, len(people))]
        return next((answer for answer in answers if answer), None)

    shop, _ = all_at_once(LOW_TIERS, turns, chance.shuffle, some)

    for _, today, word in shop.receipts:
        names = {by.subject for by in LIMITED if by.subject in word.split("Released by ")[-1]}
        assert today <= 15_000
        assert "sam" not in names or today <= 9000
        if len(names) == 1:
            assert today <= 10_000
        elif names:
            assert "lee" in names or today <= 10_000
