"""The limits beside the amount: each kept, passed and not known; and what of them is guarded until it is paid."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contracts.facts import TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import CallQuote, Guard, Needs
from policy.limits import About
from policy.pack import PolicyPack, parse
from policy.rules import AskPeople, Judgement, Refuse, Run, judge

from .quotes import ABOUT, NEVER, PACK, read, refund, write
from .told import LEE, SAM, Told


def limited(*lines: str, mode: str = "enforce") -> PolicyPack:
    """The usual pack with these lines of limits."""
    return parse(
        PACK.replace("writes:", "\n".join(["limits:", *(f"  {line}" for line in lines), f"mode: {mode}", "writes:"]))
    )


def only(pack: PolicyPack, quote: CallQuote, about: About = ABOUT) -> Judgement:
    [judgement] = judge([quote], pack, about)
    return judgement


def ago(**span: int) -> datetime:
    return ABOUT.now - timedelta(**span)


CUSTOMER = "customer_day: {amount: 4000, refunds: 2}"
PROFILE = "profile_day: {support: {amount: 30000}}"
TENANT = "tenant_day: {amount: 90000, refunds: 20}"
COOLING = "cooling_off: {after_refund_seconds: 600, after_decline_seconds: 3600}"
WINDOW = "refund_window: {days: 30}"


@pytest.mark.parametrize(
    ("limit", "facts"),
    [
        (CUSTOMER, {"refunds_today_by_customer": 2}),
        (PROFILE, {"refunded_today_by_profile_minor": 30_000}),
        (TENANT, {"refunded_today_of_tenant_minor": 90_000, "refunds_today_of_tenant": 20}),
        (COOLING, {"last_refund_at": ago(minutes=10), "last_declined_at": ago(hours=1)}),
        (COOLING, {"last_refund_at": NEVER, "last_declined_at": NEVER}),
        (WINDOW, {"window_from": ago(days=30)}),
        ("own_customer_only: true", {}),
    ],
)
def test_what_keeps_a_limit_runs(limit: str, facts: dict[str, Any]) -> None:
    judgement = only(limited(limit), refund(amount=900, facts=facts))

    assert isinstance(judgement, Run), judgement
    assert judgement.pays


@pytest.mark.parametrize(
    ("limit", "facts", "rule", "says"),
    [
        (CUSTOMER, {"refunds_today_by_customer": 3}, "customer-day-count", "3 refunds to this customer today"),
        (CUSTOMER, {}, "customer-day-count", "not known"),
        (PROFILE, {"refunded_today_by_profile_minor": 30_001}, "profile-day-amount", "limit of £300.00"),
        (PROFILE, {}, "profile-day-amount", "agents of the profile support today is not known"),
        (COOLING, {"last_refund_at": ago(minutes=9), "last_declined_at": NEVER}, "cooling-off-after-refund", "600 s"),
        (COOLING, {"last_refund_at": NEVER, "last_declined_at": ago(minutes=59)}, "cooling-off-after-decline", "3600"),
        (COOLING, {"last_refund_at": NEVER}, "cooling-off-after-decline", "not known"),
        (COOLING, {"last_declined_at": NEVER}, "cooling-off-after-refund", "not known"),
        (WINDOW, {"window_from": ago(days=30, seconds=1)}, "refund-window", "30 days"),
        (WINDOW, {}, "refund-window", "not known"),
    ],
)
def test_what_passes_a_limit_or_may_is_held_or_refused_as_the_pack_says(
    limit: str, facts: dict[str, Any], rule: str, says: str
) -> None:
    quote = refund(amount=900, facts=facts)

    held = only(limited(limit), quote)
    refused = only(
        limited(limit.replace("}}", ", then: refuse}}") if "}}" in limit else limit.replace("}", ", then: refuse}")),
        quote,
    )

    assert isinstance(held, AskPeople)
    assert (held.rule, held.needs) == (rule, Needs(amount_minor=900))
    assert says in held.reason
    assert isinstance(refused, Refuse)
    assert (refused.rule, refused.reason) == (rule, held.reason)


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"refunded_today_of_tenant_minor": 90_001, "refunds_today_of_tenant": 1}, "tenant-day-amount"),
        ({"refunded_today_of_tenant_minor": 900, "refunds_today_of_tenant": 21}, "tenant-day-count"),
        ({"refunded_today_of_tenant_minor": 900}, "tenant-day-count"),
        ({"refunds_today_of_tenant": 1}, "tenant-day-amount"),
    ],
)
def test_the_shops_own_day_is_a_hard_cap_that_nothing_unknown_passes(facts: dict[str, Any], rule: str) -> None:
    judgement = only(limited(TENANT), refund(amount=900, facts=facts))

    assert isinstance(judgement, Refuse)
    assert judgement.rule == rule


def test_a_customers_amount_of_the_day_is_limited_beside_the_automatic_limit() -> None:
    held = only(limited("customer_day: {amount: 30000, role: lead}"), refund(amount=900, today=30_001))
    refused = only(limited("customer_day: {amount: 30000, then: refuse}"), refund(amount=900, today=30_001))

    assert isinstance(held, AskPeople)
    assert (held.rule, held.needs.role) == ("customer-day-amount", "lead")
    assert "above the £50.00 that needs no person" in held.reason, "all that people are asked about is named"
    assert isinstance(refused, Refuse)


def test_a_limit_that_asks_for_a_lead_is_met_by_the_lead_that_the_tier_asks_for_and_never_lowers_it() -> None:
    pack = limited("customer_day: {refunds: 1, role: lead}")

    large = only(pack, refund(amount=60_000, facts={"refunds_today_by_customer": 2}))

    assert isinstance(large, AskPeople)
    assert large.needs == Needs(people=2, one_of_role="lead", amount_minor=60_000)


def test_another_profile_is_not_limited() -> None:
    other = About(ABOUT.tenant, "triage-team", ABOUT.customer, ABOUT.now)

    assert isinstance(only(limited(PROFILE), refund(amount=900), other), Run)


def test_totals_that_forget_the_turns_earlier_calls_are_corrected() -> None:
    pack = limited("customer_day: {refunds: 1}", "tenant_day: {amount: 1700}")
    facts = {"refunds_today_by_customer": 1, "refunded_today_of_tenant_minor": 900}
    calls = [refund("a", 900, facts=facts), refund("b", 900, customer="C-2", facts=facts)]

    by_customer, of_tenant = judge([*calls[:1], refund("c", 1, facts=facts)], pack, ABOUT), judge(calls, pack, ABOUT)

    assert [type(judgement) for judgement in by_customer] == [Run, AskPeople]
    assert [type(judgement) for judgement in of_tenant] == [Run, Refuse]


@pytest.mark.parametrize(
    "quote",
    [
        refund(amount=900, customer="C-1013"),
        refund(amount=60_000, customer="C-1013"),
        write("cancel_subscription").model_copy(update={"subject": "C-1013"}),
        write("unheard_of").model_copy(update={"subject": "C-1013"}),
        read().model_copy(update={"subject": "C-1013"}),
    ],
)
def test_what_is_about_another_customer_than_the_tickets_is_refused(quote: CallQuote) -> None:
    judgement = only(limited("own_customer_only: true"), quote)

    assert isinstance(judgement, Refuse)
    assert judgement.rule == "own-customer"
    assert "C-1013" not in judgement.reason, "the model has no use for whose it is"
    assert not isinstance(only(parse(PACK), quote), Refuse), "unless the pack does not ask for it"


def test_a_ticket_that_knows_only_an_email_address_has_nobody_to_compare_with() -> None:
    unknown = About(ABOUT.tenant, ABOUT.profile, None, ABOUT.now)

    assert isinstance(only(limited("own_customer_only: true"), refund(amount=900), unknown), Run)


@pytest.mark.parametrize(
    "quote",
    [
        refund(amount=900, facts={"stopped": "all refunds, by ada: a wave of false claims"}),
        refund(facts={"stopped": "s"}),
    ],
)
def test_what_a_stop_covers_is_refused_whatever_the_mode(quote: CallQuote) -> None:
    for pack in (parse(PACK), limited(WINDOW, mode="audit")):
        judgement = only(pack, quote)

        assert isinstance(judgement, Refuse)
        assert judgement.rule == "stopped"
        assert quote.facts.stopped
        assert quote.facts.stopped in judgement.reason


def test_a_limit_of_money_does_not_hold_what_moves_none() -> None:
    pack = limited(CUSTOMER, PROFILE, TENANT, COOLING, WINDOW)

    for quote in (read(), write("escalate_to_human"), refund(will_fail="No such order."), refund(duplicate_of="RF-1")):
        judgement = only(pack, quote)
        assert isinstance(judgement, Run)
        assert judgement.bounds == ()


# Guards

EVERYTHING = (
    "customer_day: {amount: 20000, refunds: 3}",
    "profile_day: {support: {amount: 30000, then: refuse}}",
    TENANT,
    COOLING,
)
FRESH = {
    "refunds_today_by_customer": 1,
    "refunded_today_by_profile_minor": 900,
    "refunded_today_of_tenant_minor": 900,
    "refunds_today_of_tenant": 1,
    "last_refund_at": NEVER,
    "last_declined_at": NEVER,
}
HARD = {"refunded_today_by_profile": 30_000, "refunded_today_of_tenant": 90_000, "refunds_today_of_tenant": 20}


def guarded(answer: object) -> dict[str, int]:
    assert isinstance(answer, TurnForwarded), answer
    return {guard.name: guard.at_most for guard in answer.guards}


def test_each_limit_that_was_judged_is_guarded_for_whom_it_is_about() -> None:
    run = Told(limited(*EVERYTHING))
    answer = run.quote(refund("a", 900, facts=FRESH))

    seconds = int(run.now.timestamp())
    assert guarded(answer) == {
        "refunded_today_by_customer": 5000,
        "refunds_today_by_customer": 3,
        **HARD,
        "last_refund_of_customer": seconds - 600,
        "last_decline_of_customer": seconds - 3600,
    }
    assert isinstance(answer, TurnForwarded)
    subjects = {guard.name: guard.subject for guard in answer.guards}
    assert {subjects[name] for name in subjects if name.endswith("customer")} == {"C-1004"}
    assert (subjects["refunded_today_by_profile"], subjects["refunded_today_of_tenant"]) == ("support", "acme")


def test_a_release_waives_what_its_hold_named_and_no_more_and_never_a_hard_cap() -> None:
    run = Told(limited(*EVERYTHING))
    quote = refund("a", 900, facts=FRESH | {"refunds_today_by_customer": 4})
    held = run.quote(quote)
    assert isinstance(held, TurnHeld)
    assert held.holds[0].rule == "customer-day-count"

    seconds = int(run.now.timestamp())
    assert guarded(run.decide(SAM, quote)) == {
        "refunded_today_by_customer": 20_000,  # the automatic limit is for what no person looks at
        **HARD,
        "last_refund_of_customer": seconds - 600,
        "last_decline_of_customer": seconds - 3600,
    }


def test_beside_a_released_call_the_others_keep_their_limits_with_room_for_it() -> None:
    run = Told(limited("customer_day: {refunds: 3}", "tenant_day: {amount: 90000}"))
    small = refund("a", 900, facts=FRESH | {"refunds_today_by_customer": 3})
    fourth = refund("b", 900, today=1800, facts=FRESH | {"refunds_today_by_customer": 4})
    run.quote(small, fourth)

    answer = run.decide(SAM, fourth)

    assert guarded(answer) == {
        "refunded_today_by_customer": 5900,
        "refunds_today_by_customer": 4,
        "refunded_today_of_tenant": 90_000,
    }


def test_a_guard_that_fails_on_a_released_call_asks_again_and_the_approval_stands_if_it_is_enough() -> None:
    run = Told(limited("customer_day: {refunds: 3}"))
    run.quote(refund("a", 6000, facts={"refunds_today_by_customer": 3}))
    run.decide(SAM, refund("a", 6000))

    answer = run.quote(refund("a", 6000, facts={"refunds_today_by_customer": 4}), attempt=2)

    assert guarded(answer) == {"refunded_today_by_customer": 50_000}

    stricter = Told(limited("customer_day: {refunds: 3, role: lead}"))
    stricter.quote(refund("a", 6000, facts={"refunds_today_by_customer": 3}))
    stricter.decide(SAM, refund("a", 6000))
    held = stricter.quote(refund("a", 6000, facts={"refunds_today_by_customer": 4}), attempt=2)
    assert isinstance(held, TurnHeld)
    assert held.holds[0].needs.role == "lead"
    assert guarded(stricter.decide(LEE, refund("a", 6000))) == {"refunded_today_by_customer": 50_000}


def test_a_hard_cap_that_was_reached_meanwhile_refuses_what_people_had_released() -> None:
    run = Told(limited(TENANT))
    known = {"refunds_today_of_tenant": 1, "refunded_today_of_tenant_minor": 18_000}
    run.quote(refund(facts=known))
    assert guarded(run.decide(SAM, refund())) == {
        "refunded_today_by_customer": 50_000,
        "refunded_today_of_tenant": 90_000,
        "refunds_today_of_tenant": 20,
    }

    refused = run.quote(refund(facts=known | {"refunded_today_of_tenant_minor": 90_001}), attempt=2)

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "tenant-day-amount"


def test_of_two_limits_on_the_same_total_the_lower_is_guarded() -> None:
    run = Told(limited("customer_day: {amount: 3000, then: refuse}"))

    answer = run.quote(refund("a", 900))

    assert isinstance(answer, TurnForwarded)
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=3000)]


def test_a_hold_says_when_the_next_role_is_asked() -> None:
    run = Told(parse(PACK.replace("  expires", "  escalate_after_seconds: 79200\n  expires")))

    held = run.quote(refund())

    assert isinstance(held, TurnHeld)
    assert held.escalate_at == run.now + timedelta(hours=22)
    assert Told(parse(PACK)).pack.hold.escalate_after_seconds is None
    assert run.now.tzinfo == UTC
