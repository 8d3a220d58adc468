"""Between hold, decision and execution the world changes: what still stands, in every combination."""

from itertools import product

import pytest
from contracts.facts import TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import CallQuote, Guard, Needs
from policy.pack import parse

from .quotes import PACK, read, refund
from .told import LEE, SAM, SUE, Told, verdicts

SAID = ("approved", "declined", "expired")
NOW = ("the same", "another state", "less", "more", "small", "failing")


def seen(now: str, call_id: str) -> CallQuote:
    match now:
        case "another state":
            return refund(call_id, 18_000, today=36_000, state="partly refunded")
        case "less" | "more" | "small":
            amount = {"less": 16_000, "more": 20_000, "small": 900}[now]
            return refund(call_id, amount, today=36_000 if amount > 5000 else 900)
        case "failing":
            return refund(call_id, 18_000, will_fail="It was refunded elsewhere.", state="refunded")
    return refund(call_id, 18_000, today=36_000)


def say(run: Told, said: str, call_id: str) -> object:
    if said == "expired":
        return run.expire(call_id)
    return run.decide(SAM, seen("the same", call_id), "approve" if said == "approved" else "decline")


@pytest.mark.parametrize(("first", "second", "now"), list(product(SAID, SAID, NOW)))
def test_what_was_said_of_each_call_stands_or_falls_by_what_it_would_do_now(first: str, second: str, now: str) -> None:
    run = Told(parse(PACK))
    run.quote(seen("the same", "a"), seen("the same", "b"))
    # Who was in time decides before the others' time is up.
    for said, call_id in sorted([(first, "a"), (second, "b")], key=lambda each: each[0] == "expired"):
        answer = say(run, said, call_id)
    become = {"approved": "run", "declined": "declined", "expired": "declined"}
    assert verdicts(answer) == {"a": become[first], "b": become[second]}

    again = run.quote(seen(now, "a"), seen("the same", "b"), attempt=2)

    if first == "approved" and now in ("another state", "less", "more"):
        assert isinstance(again, TurnHeld)
        assert [hold.call_id for hold in again.holds] == ["a"], "only what it would do now is asked about"
        assert again.will_run == (["b"] if second == "approved" else [])
        assert run.decide(SAM, seen("the same", "a")) is None, "that is the old effect"
        again = run.decide(SUE, seen(now, "a"))
    assert verdicts(again) == {"a": become[first], "b": become[second]}


def test_each_effect_that_was_approved_in_time_stays_approved() -> None:
    run = Told(parse(PACK))
    for attempt, (now, by) in enumerate([("the same", SAM), ("another state", SUE)], 1):
        run.quote(seen(now, "a"), attempt=attempt)
        assert verdicts(run.decide(by, seen(now, "a"))) == {"a": "run"}

    answer = run.quote(seen("the same", "a"), attempt=3)

    assert isinstance(answer, TurnForwarded)
    assert answer.verdicts[0].reason == "Released by sam."


@pytest.mark.parametrize("call", ["a", "b"])
def test_a_hold_that_expires_between_two_attempts_declines_for_good(call: str) -> None:
    run = Told(parse(PACK))
    quotes = {"a": seen("the same", "a"), "b": seen("the same", "b")}
    run.quote(*quotes.values())
    for each in quotes.values():
        run.decide(SAM, each)
    changed = quotes | {call: seen("another state", call)}
    assert isinstance(run.quote(*changed.values(), attempt=2), TurnHeld)

    expired = run.expire(call)

    other = "b" if call == "a" else "a"
    assert verdicts(expired) == {call: "declined", other: "run"}
    assert verdicts(run.quote(*quotes.values(), attempt=3)) == {call: "declined", other: "run"}
    assert run.decide(SUE, changed[call]) is None


def test_a_released_call_that_has_become_small_runs_within_the_automatic_limit_and_its_guard() -> None:
    run = Told(parse(PACK))
    run.quote(seen("the same", "a"))
    run.decide(SAM, seen("the same", "a"))

    answer = run.quote(seen("small", "a"), attempt=2)

    assert isinstance(answer, TurnForwarded)
    assert (answer.verdicts[0].rule, answer.guards[0].at_most) == ("within-automatic-limit", 5000)


def approved(run: Told, quote: CallQuote) -> None:
    run.quote(quote)
    assert verdicts(run.decide(SAM, quote)) == {quote.call_id: "run"}


def test_an_approval_stands_for_a_further_attempt_with_the_same_digest(run: Told) -> None:
    approved(run, refund())

    answer = run.quote(refund(), attempt=2)

    assert verdicts(answer) == {"a": "run"}
    assert isinstance(answer, TurnForwarded)
    assert answer.attempt == 2
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=50_000)]


def test_an_approval_does_not_stand_for_another_effect(run: Told) -> None:
    approved(run, refund())

    held = run.quote(refund(state="partly refunded"), attempt=2)

    assert isinstance(held, TurnHeld)
    assert held.attempt == 2
    assert run.decide(SAM, refund()) is None, "that is the old effect"
    assert verdicts(run.decide(SAM, refund(state="partly refunded"))) == {"a": "run"}


def test_an_approval_that_stands_still_does_when_another_call_is_held_anew(run: Told) -> None:
    run.quote(refund("a"), refund("b", 20_000, today=38_000))
    run.decide(SAM, refund("a"))
    run.decide(SAM, refund("b", 20_000))

    changed = refund("b", 20_000, today=38_000, state="partly refunded")
    held = run.quote(refund("a"), changed, attempt=2)

    assert isinstance(held, TurnHeld)
    assert [hold.call_id for hold in held.holds] == ["b"]
    assert held.will_run == ["a"]
    answer = run.decide(SUE, changed)
    assert verdicts(answer) == {"a": "run", "b": "run"}
    assert isinstance(answer, TurnForwarded)
    assert [guard.at_most for guard in answer.guards] == [50_000], "people released both, up to there"


def test_an_approval_by_one_fills_one_seat_of_the_two_that_a_further_attempt_needs(run: Told) -> None:
    run.quote(refund("a", 30_000), refund("b", 10_000, today=40_000))
    run.decide(SAM, refund("a", 30_000))
    run.decide(SAM, refund("b", 10_000))

    more = refund("b", 30_000, today=60_000)
    held = run.quote(refund("a", 30_000), more, attempt=2)

    assert isinstance(held, TurnHeld)
    assert [(hold.call_id, hold.needs.people) for hold in held.holds] == [("a", 2), ("b", 2)]
    assert run.decide(LEE, refund("a", 30_000)) is None
    assert run.decide(LEE, more) is None
    assert verdicts(run.decide(SUE, more)) == {"a": "run", "b": "run"}


def test_a_decline_stands_whatever_the_call_would_do_by_now(run: Told) -> None:
    run.quote(read("r"), refund("a"))
    run.decide(SAM, refund("a"), "decline")

    assert verdicts(run.quote(read("r"), refund("a", 900), attempt=2)) == {"r": "run", "a": "declined"}
    assert verdicts(run.quote(read("r"), refund("a", 300_000), attempt=3)) == {"r": "run", "a": "declined"}


def test_what_was_declined_counts_towards_nothing_that_is_judged_after_it(run: Told) -> None:
    first, second = refund("a", 30_000), refund("b", 30_000, today=60_000)
    run.quote(first, second)
    run.decide(SAM, first, "decline")
    run.decide(SAM, second)
    run.decide(LEE, second)

    held = run.quote(first, refund("b", 30_000, state="partly refunded"), attempt=2)

    assert isinstance(held, TurnHeld)
    assert [(hold.call_id, hold.needs) for hold in held.holds] == [("b", Needs(amount_minor=30_000))]


def test_after_three_attempts_the_turn_is_refused(run: Told) -> None:
    for attempt in (1, 2, 3):
        assert isinstance(run.quote(refund(amount=900, state=str(attempt)), attempt=attempt), TurnForwarded)

    refused = run.quote(refund(amount=900), attempt=4)

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "keeps-changing"
    assert "keeps changing" in refused.results[0].content


def test_a_stop_is_named_though_the_world_keeps_changing_too_unless_what_it_covers_was_declined(run: Told) -> None:
    stopped = refund("a", facts={"stopped": "All refunds are stopped for now."})
    run.quote(refund("a"), refund("b", 900, today=18_900))

    refused = run.quote(stopped, refund("b", 900, today=18_900), attempt=4)

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "stopped"
    assert refused.results[0].content.endswith("Do not ask for the same again. If it is needed, pass it to a person.")
    declined = Told(run.pack)
    declined.quote(refund("a"), refund("b", 900, today=18_900))
    declined.decide(SAM, refund("a"), "decline")
    again = declined.quote(stopped, refund("b", 900), attempt=4)
    assert isinstance(again, TurnRefused)
    assert again.rule == "keeps-changing"
