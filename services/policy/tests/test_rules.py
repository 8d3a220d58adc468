"""What may run, what a person must release, what is refused: one quote at a time, then whole turns."""

from dataclasses import replace

import pytest
from contracts.money import Money
from contracts.parts import CallQuote, Guard, Needs
from policy.pack import PolicyPack, parse
from policy.rules import AskPeople, Refuse, Run, guards, judge

from .quotes import ABOUT, PACK, read, refund, write
from .told import LEE, SAM

ONE = Needs(role="approver", people=1)
TWO = Needs(role="approver", people=2, one_of_role="lead")
FLOOR = {"decided_above_minor": 10_000}


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        (read(), "read"),
        (write("cancel_subscription"), "automatic-write"),
        (write("escalate_to_human"), "automatic-write"),
        (write("unheard_of", will_fail="No such thing."), "explains-why-not"),
        (refund(amount=900_000, will_fail="That order was £180.00."), "explains-why-not"),
        (refund(amount=None, currency=None, will_fail="No such order."), "explains-why-not"),
        (refund(amount=900_000, duplicate_of="RF-1"), "already-done"),
        (refund(amount=0, again_after="RF-1", duplicate_of="RF-2"), "already-done"),
        (refund(amount=1), "within-automatic-limit"),
        (refund(amount=5000), "within-automatic-limit"),
        (refund(amount=900, today=5000), "within-automatic-limit"),
    ],
)
def test_it_runs_without_a_person(pack: PolicyPack, quote: CallQuote, rule: str) -> None:
    [judgement] = judge([quote], pack, ABOUT)

    assert isinstance(judgement, Run)
    assert judgement.rule == rule
    assert judgement.pays == (rule == "within-automatic-limit")


@pytest.mark.parametrize(
    ("quote", "rule", "needs"),
    [
        (refund(amount=5001), "above-automatic-limit", ONE),
        (refund(amount=900, today=5001), "above-automatic-limit", ONE),
        (refund(amount=50_000), "above-automatic-limit", ONE),
        (refund(amount=50_001), "above-automatic-limit", TWO),
        (refund(amount=200_000), "above-automatic-limit", TWO),
        (refund(amount=900, again_after="RF-1"), "pays-again", ONE),
        (refund(amount=60_000, again_after="RF-1"), "pays-again", TWO),
        (refund(amount=900, again_after="RF-1", duplicate_of="RF-2"), "pays-again", ONE),
        (refund(amount=900, today=None), "day-total-missing", ONE),
        (write("unheard_of"), "unlisted-write", Needs(role="lead")),
        (refund(amount=900, tool="unheard_of"), "unlisted-write", Needs(role="lead")),
        (refund(amount=60_000, tool="unheard_of"), "unlisted-write", TWO),
        (refund(amount=18_000, tool="cancel_subscription"), "above-automatic-limit", ONE),
    ],
)
def test_people_must_release_it(pack: PolicyPack, quote: CallQuote, rule: str, needs: Needs) -> None:
    [judgement] = judge([quote], pack, ABOUT)

    assert isinstance(judgement, AskPeople)
    assert (judgement.rule, judgement.needs.model_copy(update={"amount_minor": None})) == (rule, needs)
    assert judgement.reason


@pytest.mark.parametrize(
    ("quote", "rule", "says"),
    [
        (refund(amount=200_001), "above-every-tier", "£2,000.01 to this customer today is more than £2,000.00"),
        (refund(amount=200_001, again_after="RF-1"), "above-every-tier", "£2,000.00"),
        (refund(amount=200_001, tool="unheard_of"), "above-every-tier", "£2,000.00"),
        (refund(amount=0), "amount-not-positive", "more than nothing"),
        (refund(amount=-900), "amount-not-positive", "more than nothing"),
        (refund(amount=-900, tool="cancel_subscription"), "amount-not-positive", "more than nothing"),
        (refund(amount=None), "amount-missing", "how much"),
        (refund(amount=None, again_after="RF-1", duplicate_of="RF-2"), "amount-missing", "how much"),
        (write("issue_refund"), "amount-missing", "how much"),
        (refund(amount=900, currency="USD"), "other-currency", "GBP here, not in USD"),
        (refund(amount=900, currency=None), "other-currency", "GBP"),
        (refund(amount=900, customer=None), "customer-missing", "which customer"),
    ],
)
def test_nobody_can_release_it(pack: PolicyPack, quote: CallQuote, rule: str, says: str) -> None:
    [judgement] = judge([quote], pack, ABOUT)

    assert isinstance(judgement, Refuse)
    assert judgement.rule == rule
    assert says in judgement.reason


LOOSE = PACK.replace("automatic_up_to: 5000", "automatic_up_to: 40000")


@pytest.mark.parametrize(
    ("quote", "needs"),
    [
        (refund(amount=10_001, facts=FLOOR), Needs(amount_minor=10_001)),
        (refund(amount=10_001, today=40_000, facts=FLOOR), Needs(amount_minor=40_000)),
        (refund(amount=10_001, tool="cancel_subscription", facts=FLOOR), Needs(amount_minor=10_001)),
    ],
)
def test_what_the_shop_pays_only_by_a_persons_word_is_held_where_the_pack_would_let_it_run(
    quote: CallQuote, needs: Needs
) -> None:
    [judgement] = judge([quote], parse(LOOSE), ABOUT)

    assert isinstance(judgement, AskPeople)
    assert (judgement.rule, judgement.needs) == ("shop-floor", needs)
    assert judgement.reason == (
        "The policy would pay £100.01 unasked, but above £100.00 this shop pays only what a person has approved."
    )


def test_what_the_shop_pays_only_by_a_persons_word_waits_for_the_people_of_the_packs_first_tier() -> None:
    two = parse(LOOSE.replace("- up_to: 50000", "- up_to: 50000\n      people: 2"))

    [judgement] = judge([refund(amount=18_000, facts=FLOOR)], two, ABOUT)

    assert isinstance(judgement, AskPeople)
    assert judgement.needs == Needs(people=2, amount_minor=18_000)


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        (refund(amount=10_000, facts=FLOOR), "within-automatic-limit"),
        (refund(amount=10_000, today=40_000, facts=FLOOR), "within-automatic-limit"),
        (refund(amount=18_000), "within-automatic-limit"),
        (refund(amount=18_000, facts=FLOOR, will_fail="No such order."), "explains-why-not"),
        (refund(amount=18_000, facts=FLOOR, duplicate_of="RF-1"), "already-done"),
    ],
)
def test_what_is_within_the_shops_own_floor_or_moves_nothing_is_the_packs_to_say(quote: CallQuote, rule: str) -> None:
    [judgement] = judge([quote], parse(LOOSE), ABOUT)

    assert isinstance(judgement, Run)
    assert judgement.rule == rule


def test_the_shops_floor_is_of_each_call_and_every_other_rule_comes_first(pack: PolicyPack) -> None:
    by_call = judge([refund("a", 9000, facts=FLOOR), refund("b", 9000, facts=FLOOR)], parse(LOOSE), ABOUT)
    [above] = judge([refund(amount=18_000, facts=FLOOR)], pack, ABOUT)
    [never] = judge([refund(amount=200_001, facts=FLOOR)], pack, ABOUT)

    assert [type(judgement) for judgement in by_call] == [Run, Run]
    assert isinstance(above, AskPeople)
    assert (above.rule, "has approved" in above.reason) == ("above-automatic-limit", False)
    assert isinstance(never, Refuse)


def test_two_small_refunds_of_one_turn_do_not_slip_under_the_limit(pack: PolicyPack) -> None:
    first, second = judge([refund("a", 4000), refund("b", 4000, today=8000)], pack, ABOUT)

    assert isinstance(first, Run)
    assert first.pays
    assert isinstance(second, AskPeople)
    assert second.reason == "£80.00 to this customer today is above the £50.00 that needs no person."


def test_a_day_total_that_forgets_the_turns_earlier_calls_is_corrected(pack: PolicyPack) -> None:
    _, second = judge([refund("a", 4000), refund("b", 4000, today=4000)], pack, ABOUT)

    assert isinstance(second, AskPeople)


def test_splitting_an_amount_reaches_no_lower_tier(pack: PolicyPack) -> None:
    calls = [refund(f"c{n}", 20_000, today=20_000 * n) for n in range(1, 4)]

    needs = [judgement.needs for judgement in judge(calls, pack, ABOUT) if isinstance(judgement, AskPeople)]
    assert needs == [TWO.model_copy(update={"amount_minor": 60_000})] * 3


def test_splitting_an_amount_does_not_pass_the_last_tier(pack: PolicyPack) -> None:
    calls = [refund(f"c{n}", 90_000, today=90_000 * n) for n in range(1, 4)]

    assert all(isinstance(judgement, Refuse) for judgement in judge(calls, pack, ABOUT))


def test_customers_are_judged_apart(pack: PolicyPack) -> None:
    calls = [refund("a", 4000, customer="C-1"), refund("b", 4000, customer="C-2"), refund("c", 40_000, customer="C-3")]

    first, second, third = judge(calls, pack, ABOUT)

    assert isinstance(first, Run)
    assert isinstance(second, Run)
    assert isinstance(third, AskPeople)
    assert third.needs == ONE.model_copy(update={"amount_minor": 40_000})


def test_what_moves_no_money_counts_towards_nothing(pack: PolicyPack) -> None:
    calls = [refund("a", 150_000, will_fail="no"), refund("b", 150_000, duplicate_of="RF-1"), refund("c", 40_000)]

    third = judge(calls, pack, ABOUT)[2]

    assert isinstance(third, AskPeople)
    assert third.needs == ONE.model_copy(update={"amount_minor": 40_000})


def test_a_guard_is_kept_for_each_customer_who_is_paid_without_a_person(pack: PolicyPack) -> None:
    calls = [
        refund("a", 900, customer="C-2"),
        refund("b", 800, customer="C-1"),
        refund("c", 100, customer="C-2", today=1000),
        refund("d", 18_000, customer="C-2", today=19_000),
        refund("e", 18_000, customer="C-3"),
    ]
    judged = [judgement for judgement in judge(calls, pack, ABOUT) if not isinstance(judgement, Refuse)]

    released = [(judgement, [SAM] if isinstance(judgement, AskPeople) else []) for judgement in judged]
    assert guards(released, pack) == [
        Guard(name="refunded_today_by_customer", subject="C-1", at_most=5000),
        Guard(name="refunded_today_by_customer", subject="C-2", at_most=23_000),
        Guard(name="refunded_today_by_customer", subject="C-3", at_most=50_000),
    ]


def test_what_people_release_is_guarded_by_their_tier_and_the_least_of_their_own_limits(pack: PolicyPack) -> None:
    [judgement] = judge([refund(amount=60_000)], pack, ABOUT)
    assert isinstance(judgement, AskPeople)
    limited = [by.model_copy(update={"limit_minor": most}) for by, most in ((SAM, 70_000), (LEE, 80_000))]

    most = [
        guard.at_most
        for people in ([SAM, LEE], limited, [SAM, limited[1]])
        for guard in guards([(judgement, people)], pack)
    ]

    assert most == [200_000, 70_000, 80_000]


def test_what_people_release_is_the_turns_sum_to_the_customer_so_that_own_limits_are_not_split_away(
    pack: PolicyPack,
) -> None:
    calls = [refund("a", 6000, today=6000), refund("b", 7000, today=13_000), refund("c", 9000, customer="C-2")]

    asked = [judgement.needs for judgement in judge(calls, pack, ABOUT) if isinstance(judgement, AskPeople)]

    assert [needs.amount_minor for needs in asked] == [13_000, 13_000, 9000]


@pytest.mark.parametrize(
    ("quote", "needs", "today"),
    [
        (refund(amount=45_000, today=90_000), TWO, 90_000),
        (refund(amount=900, today=50_001), TWO, 50_001),
        (refund(amount=5000, today=50_000), ONE, 50_000),
        (refund(amount=60_000, today=900), TWO, 60_000),
        (refund(amount=60_000, today=None), TWO, 60_000),
        (refund(amount=900, today=50_001, again_after="RF-1"), TWO, 50_001),
        (refund(amount=900, today=50_001, tool="unheard_of"), TWO, 50_001),
    ],
)
def test_what_was_paid_earlier_today_counts_towards_the_tier_and_own_limits(
    pack: PolicyPack, quote: CallQuote, needs: Needs, today: int
) -> None:
    [judgement] = judge([quote], pack, ABOUT)

    assert isinstance(judgement, AskPeople)
    assert judgement.needs == needs.model_copy(update={"amount_minor": today})


def test_what_was_paid_earlier_counts_for_every_call_of_the_turn(pack: PolicyPack) -> None:
    calls = [refund("a", 10_000, today=45_000), refund("b", 10_000, today=55_000), refund("c", 9000, customer="C-2")]

    asked = [judgement.needs for judgement in judge(calls, pack, ABOUT) if isinstance(judgement, AskPeople)]

    assert [(needs.people, needs.amount_minor) for needs in asked] == [(2, 55_000), (2, 55_000), (1, 9000)]


def test_nobody_releases_more_to_a_customer_in_a_day_than_the_last_tier(pack: PolicyPack) -> None:
    [within], [above] = (judge([refund(amount=900, today=today)], pack, ABOUT) for today in (200_000, 200_001))

    assert isinstance(within, AskPeople)
    assert isinstance(above, Refuse)
    assert above.reason == (
        "£2,000.01 to this customer today is more than £2,000.00, "
        "the most that anybody here may refund to one customer in a day."
    )


@pytest.mark.parametrize(
    ("currency", "locale", "amounts"),
    [
        ("XOF", "fr_SN", ("18\u202f000\u00a0XOF", "5\u202f000\u00a0XOF")),
        ("JPY", "ja_JP", ("￥18,000", "￥5,000")),
        ("EUR", "de_DE", ("180,00\u00a0€", "50,00\u00a0€")),
        ("GBP", "", ("£180.00", "£50.00")),
    ],
)
def test_reasons_give_amounts_in_the_packs_currency_as_the_runs_locale_writes_them(
    currency: str, locale: str, amounts: tuple[str, str]
) -> None:
    pack = parse(PACK.replace("currency: GBP", f"currency: {currency}"))
    asked = refund(amount=18_000, today=18_000, currency=currency)

    [held] = judge([asked], pack, replace(ABOUT, locale=locale))
    [over] = judge([refund(amount=300_000, currency=currency)], pack, replace(ABOUT, locale=locale))

    assert isinstance(held, AskPeople)
    assert held.reason == f"{amounts[0]} to this customer today is above the {amounts[1]} that needs no person."
    assert isinstance(over, Refuse)
    assert Money(300_000, currency).text(locale) in over.reason
