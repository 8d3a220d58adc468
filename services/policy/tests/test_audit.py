"""Mode audit: what would be refused runs and is put on record; holds still hold, and stops still refuse."""

from typing import Any

import pytest
from contracts.facts import TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import CallQuote
from policy.pack import PolicyPack, parse

from .quotes import PACK, read, refund, write
from .told import LEE, SAM, SUE, Told, verdicts

LIMITS = """\
limits:
  own_customer_only: true
  customer_day: {refunds: 3, then: refuse}
  tenant_day: {amount: 90000}
  refund_window: {days: 30}
mode: audit
"""
KNOWN: dict[str, Any] = {
    "refunds_today_by_customer": 1,
    "refunded_today_of_tenant_minor": 900,
    "window_from": "2026-11-01T00:00:00Z",
}


@pytest.fixture
def pack() -> PolicyPack:
    return parse(PACK.replace("writes:", f"{LIMITS}writes:"))


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        (refund("a", 900, customer="C-1013", facts=KNOWN), "own-customer"),
        (refund("a", 900, facts=KNOWN | {"refunds_today_by_customer": 4}), "customer-day-count"),
        (refund("a", 900, facts=KNOWN | {"refunded_today_of_tenant_minor": None}), "tenant-day-amount"),
        (write("cancel_subscription", "a").model_copy(update={"subject": "C-1013"}), "own-customer"),
        (read("a").model_copy(update={"subject": "C-1013"}), "own-customer"),
    ],
)
def test_what_would_have_been_refused_runs_and_the_record_says_so(run: Told, quote: CallQuote, rule: str) -> None:
    answer = run.quote(read("r"), quote)

    assert verdicts(answer) == {"r": "run", "a": "run"}
    assert isinstance(answer, TurnForwarded)
    [said] = answer.would_have
    assert said.startswith(f"a ({quote.tool}) would have been refused by {rule}: ")
    assert {guard.name for guard in answer.guards} <= {"refunded_today_by_customer"}, "what binds nothing is no guard"


def test_what_is_within_the_limits_has_nothing_on_record(run: Told) -> None:
    answer = run.quote(refund("a", 900, facts=KNOWN))

    assert isinstance(answer, TurnForwarded)
    assert answer.would_have == []


def test_what_is_held_stays_held_with_what_would_have_been_said(run: Told) -> None:
    quote = refund("a", 18_000, facts=KNOWN | {"refunds_today_by_customer": 4})

    held = run.quote(quote)

    assert isinstance(held, TurnHeld)
    assert held.holds[0].rule == "above-automatic-limit"
    assert held.would_have
    assert "customer-day-count" in held.would_have[0]
    answer = run.decide(SAM, quote)
    assert isinstance(answer, TurnForwarded)
    assert answer.would_have == held.would_have


def test_what_the_shop_pays_only_by_a_persons_word_is_held_under_audit_too(pack: PolicyPack) -> None:
    loose = pack.refund.model_copy(update={"automatic_up_to": 40_000})
    run = Told(pack.model_copy(update={"refund": loose}))
    facts = KNOWN | {"decided_above_minor": 10_000}
    within, refused = refund("a", 18_000, facts=facts), refund("b", 18_000, customer="C-1013", facts=facts)

    held = run.quote(within, refused)

    assert isinstance(held, TurnHeld)
    assert [(hold.call_id, hold.rule) for hold in held.holds] == [("a", "shop-floor"), ("b", "shop-floor")]
    assert held.would_have
    assert "own-customer" in held.would_have[0]
    assert run.decide(SAM, within) is None
    assert verdicts(run.decide(SUE, refused)) == {"a": "run", "b": "run"}


@pytest.mark.parametrize(
    ("quote", "rule"),
    [
        (refund("a", 300_000, facts=KNOWN), "above-every-tier"),
        (refund("a", None, facts=KNOWN), "amount-missing"),
        (refund("a", -900, facts=KNOWN), "amount-not-positive"),
        (refund("a", 900, currency="USD", facts=KNOWN), "other-currency"),
        (refund("a", 900, customer=None, facts=KNOWN), "customer-missing"),
    ],
)
def test_what_cannot_be_weighed_waits_for_those_who_release_the_most(run: Told, quote: CallQuote, rule: str) -> None:
    held = run.quote(quote)

    assert isinstance(held, TurnHeld)
    assert (held.holds[0].rule, held.holds[0].needs.people, held.holds[0].needs.one_of_role) == (rule, 2, "lead")
    assert held.would_have
    assert rule in held.would_have[0]
    assert run.decide(SAM, quote) is None
    answer = run.decide(LEE, quote)
    assert verdicts(answer) == {"a": "run"}
    assert isinstance(answer, TurnForwarded)
    assert all(guard.subject for guard in answer.guards)


def test_a_hold_that_is_declined_has_nothing_more_on_record(run: Told) -> None:
    run.quote(refund("a", 300_000, facts=KNOWN))

    answer = run.decide(SUE, refund("a", 300_000), "decline")

    assert verdicts(answer) == {"a": "declined"}
    assert isinstance(answer, TurnForwarded)
    assert answer.would_have == []


def test_stops_still_refuse_and_so_do_turns_that_keep_changing(run: Told) -> None:
    stopped = run.quote(refund("a", 900, facts=KNOWN | {"stopped": "all refunds"}))
    assert isinstance(stopped, TurnRefused)

    for attempt in (1, 2, 3):
        run.quote(refund("a", 900, state=str(attempt), facts=KNOWN), turn=2, attempt=attempt)
    assert isinstance(run.quote(refund("a", 900, facts=KNOWN), turn=2, attempt=4), TurnRefused)
