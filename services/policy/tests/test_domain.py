"""What policy says of a run, fact by fact."""

from datetime import timedelta

import pytest
from contracts.facts import CallDecided, RunCancelled, TurnForwarded, TurnHeld, TurnQuoted, TurnRefused
from contracts.parts import CallQuote, Guard, Person, Verdict
from contracts.testing import person
from policy import domain
from policy.pack import PolicyPack, parse

from .quotes import PACK, read, refund, write
from .told import ALEX, LEE, LIA, SAM, SUE, Told, by_address_only, verdicts


def approval(quote: CallQuote, by: Person) -> CallDecided:
    return CallDecided(turn=1, call_id=quote.call_id, digest=quote.digest, decision="approve", by=by)


# A fresh quote


def test_reads_are_forwarded_with_their_digests_and_without_guards(run: Told, pack: PolicyPack) -> None:
    answer = run.quote(read("a"), read("b"))

    assert answer == TurnForwarded(
        turn=1,
        attempt=1,
        pack=pack.stamp,
        verdicts=[
            Verdict(call_id="a", verdict="run", digest=read("a").digest, rule="read"),
            Verdict(call_id="b", verdict="run", digest=read("b").digest, rule="read"),
        ],
    )


def test_without_a_pack_nothing_runs_and_each_call_is_told_why(run: Told) -> None:
    event = run.say(TurnQuoted(turn=1, attempt=1, quotes=[read("a"), refund("b", 900)]))

    draft = domain.react(run.history, event, None)

    assert draft is not None
    assert isinstance(draft.fact, TurnRefused)
    assert (draft.fact.rule, draft.fact.pack.name) == ("no-policy", "none")
    assert [(result.call_id, result.is_error) for result in draft.fact.results] == [("a", True), ("b", True)]
    assert all("no policy" in result.content for result in draft.fact.results)


def test_a_hold_whose_pack_is_gone_is_refused_by_the_next_decision(run: Told) -> None:
    run.quote(refund("a"))
    event = run.say(approval(refund("a"), SAM))

    draft = domain.react(run.history, event, None)

    assert draft is not None
    assert isinstance(draft.fact, TurnRefused)


def test_a_small_refund_is_forwarded_with_a_guard_over_the_customers_day(run: Told) -> None:
    answer = run.quote(refund("a", 900))

    assert isinstance(answer, TurnForwarded)
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=5000)]


def test_a_large_refund_is_held_with_all_of_its_turn(run: Told) -> None:
    jacket = refund("b", 18000)

    held = run.quote(read("a"), jacket)

    assert isinstance(held, TurnHeld)
    [hold] = held.holds
    assert (hold.call_id, hold.digest, hold.rule) == ("b", jacket.digest, "above-automatic-limit")
    assert held.will_run == ["a"]


def test_a_holds_clock_runs_from_the_quote(run: Told) -> None:
    quoted = run.say(TurnQuoted(turn=1, attempt=1, quotes=[refund()]))
    run.now += timedelta(hours=3)

    held = run.hear(quoted)

    assert isinstance(held, TurnHeld)
    assert held.remind_at == quoted.time + timedelta(hours=18)
    assert held.expires_at == quoted.time + timedelta(hours=24)


def test_one_refused_call_takes_its_turn_down_and_every_call_gets_a_result(run: Told) -> None:
    refused = run.quote(read("a"), refund("b", 300_000), write("cancel_subscription", "c"))

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "above-every-tier"
    assert [result.call_id for result in refused.results] == ["a", "b", "c"]
    assert all(result.is_error for result in refused.results)
    assert "£3,000.00 to this customer today is more than £2,000.00" in refused.results[1].content
    assert "another call of this turn was refused" in refused.results[0].content


def test_the_same_quote_heard_twice_is_answered_once(run: Told) -> None:
    for quote in (refund("a", 18000), refund("a", 900), refund("a", 300_000)):
        again = Told(run.pack)
        event = again.say(TurnQuoted(turn=1, attempt=1, quotes=[quote]))
        assert again.hear(event) is not None
        assert again.hear(event) is None


def test_a_quote_that_the_run_has_moved_past_is_not_answered(run: Told) -> None:
    old = run.say(TurnQuoted(turn=1, attempt=1, quotes=[read()]))
    run.quote(read(), attempt=2)

    assert run.hear(old) is None


def test_nothing_is_said_of_a_run_that_has_ended(run: Told) -> None:
    run.quote(refund())
    run.say(RunCancelled(by=ALEX))

    assert run.decide(SAM, refund()) is None
    assert run.quote(read(), turn=2) is None


def test_of_two_quotes_that_wait_only_the_later_is_answered(run: Told) -> None:
    old, new = (run.say(TurnQuoted(turn=1, attempt=attempt, quotes=[read()])) for attempt in (1, 2))

    assert run.hear(old) is None
    assert isinstance(run.hear(new), TurnForwarded)


def test_a_quote_that_was_held_brings_nothing_more_when_it_is_heard_again(run: Told) -> None:
    quoted = run.say(TurnQuoted(turn=1, attempt=1, quotes=[refund()]))
    run.hear(quoted)
    decided = run.say(approval(refund(), SAM))

    assert run.hear(quoted) is None
    assert verdicts(run.hear(decided)) == {"a": "run"}


def test_a_decision_that_is_heard_before_anything_was_held_says_nothing(run: Told) -> None:
    quoted = run.say(TurnQuoted(turn=1, attempt=1, quotes=[refund()]))
    decided = run.say(approval(refund(), SAM))

    assert run.hear(decided) is None
    assert isinstance(run.hear(quoted), TurnHeld)


def test_a_decision_on_an_earlier_turn_says_nothing_of_a_later_one_that_waits(run: Told) -> None:
    run.quote(refund("a"))
    decided = run.say(approval(refund("a"), SAM))
    run.hear(decided)
    run.quote(refund("b"), turn=2)
    run.pack = parse(PACK.replace("50000", "6000").replace("200000", "7000"))

    assert run.hear(decided) is None


def test_a_later_turn_is_judged_by_itself(run: Told) -> None:
    run.quote(refund("a", 18000))
    run.decide(SAM, refund("a", 18000), "decline")

    assert isinstance(run.quote(refund("a", 18000), turn=2), TurnHeld)


# Decisions


def test_an_approved_hold_is_forwarded_with_who_released_it_and_the_tier_for_its_only_guard(run: Told) -> None:
    run.quote(read("r"), refund("a"))

    answer = run.decide(SAM, refund("a"))

    assert isinstance(answer, TurnForwarded)
    assert verdicts(answer) == {"r": "run", "a": "run"}
    assert answer.verdicts[1].reason == "Released by sam."
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=50_000)]


def test_a_declined_hold_is_forwarded_as_declined_without_a_word_of_the_note(run: Told) -> None:
    run.quote(read("r"), refund("a"))

    answer = run.decide(SAM, refund("a"), "decline", note="  The jacket was worn. ")

    assert isinstance(answer, TurnForwarded)
    assert verdicts(answer) == {"r": "run", "a": "declined"}
    assert answer.verdicts[1].rule == "declined"
    assert answer.verdicts[1].reason == "A person declined this, so it was not done."


def test_a_turn_that_is_wholly_declined_is_still_forwarded(run: Told) -> None:
    run.quote(refund("a"))

    assert verdicts(run.decide(SAM, refund("a"), "decline")) == {"a": "declined"}


def test_a_turn_waits_until_each_of_its_holds_is_settled(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36000))

    assert run.decide(SAM, refund("b", today=36000), "decline") is None
    assert verdicts(run.decide(SUE, refund("a"))) == {"a": "run", "b": "declined"}


def test_both_decisions_being_there_the_first_to_be_heard_ends_the_hold_and_the_other_says_nothing(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36000))
    events = [run.say(approval(quote, by)) for quote, by in ((refund("a"), SAM), (refund("b"), SUE))]

    assert verdicts(run.hear(events[0])) == {"a": "run", "b": "run"}
    assert run.hear(events[1]) is None


def test_what_enough_people_have_approved_is_settled_though_one_more_declines_it(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36000))
    run.decide(SAM, refund("a"))

    assert run.decide(SUE, refund("a"), "decline") is None
    assert verdicts(run.decide(SUE, refund("b"))) == {"a": "run", "b": "run"}


def test_an_expired_hold_counts_as_declined_and_the_rest_runs(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36000))
    run.decide(SAM, refund("a"))

    answer = run.expire("b")

    assert isinstance(answer, TurnForwarded)
    assert verdicts(answer) == {"a": "run", "b": "declined"}
    assert answer.verdicts[1].rule == "expired"


def test_an_expiry_does_not_undo_an_approval(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36000))
    run.decide(SAM, refund("a"))

    assert verdicts(run.expire("a", "b")) == {"a": "run", "b": "declined"}


def test_a_small_refund_beside_an_approved_one_keeps_a_guard_that_leaves_room_for_it(run: Told) -> None:
    run.quote(refund("a", 900), refund("b", 18000, today=18900))

    answer = run.decide(SAM, refund("b", 18000))

    assert isinstance(answer, TurnForwarded)
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=23_000)]


@pytest.mark.parametrize(
    ("by", "why"),
    [
        (ALEX, "an operator decides nothing"),
        (person("alex", "lead"), "whoever asked does not decide, whatever their role"),
        (person("C-1004", "approver"), "it is their own ticket"),
        (person("cust-C-1004", "approver"), "it is their own ticket"),
        (person("x", "admin"), "an admin decides nothing"),
        (person("x", "king"), "there is no such role"),
    ],
)
def test_a_decision_by_someone_who_may_not_counts_for_nothing(run: Told, by: Person, why: str) -> None:
    run.quote(refund())

    assert run.decide(by, refund()) is None, why
    assert run.decide(by, refund(), "decline") is None, why
    assert verdicts(run.decide(SAM, refund())) == {"a": "run"}


def test_neither_the_tickets_customer_nor_whom_the_call_is_about_decides_on_it(run: Told) -> None:
    anothers, by_address = refund(customer="C-2"), Told(run.pack, begun=by_address_only())
    run.quote(anothers)
    by_address.quote(refund())

    for decision in ("approve", "decline"):
        assert [run.decide(person(who, "lead"), anothers, decision) for who in ("C-1004", "C-2")] == [None, None]
        assert by_address.decide(person("C-1004", "lead"), refund(), decision) is None
    assert verdicts(by_address.decide(SAM, refund())) == {"a": "run"}


def test_the_requesters_namesake_of_another_issuer_is_another_person(run: Told) -> None:
    run.quote(refund())

    assert verdicts(run.decide(person("alex", "approver", "https://other.example"), refund())) == {"a": "run"}


def test_a_decision_for_another_digest_counts_for_nothing(run: Told) -> None:
    run.quote(refund())

    assert run.decide(SAM, refund(state="cancelled")) is None
    assert run.decide(SAM, refund(state="cancelled"), "decline") is None


def test_a_decision_with_changed_arguments_does_not_release_the_unchanged_call(run: Told) -> None:
    run.quote(refund())

    assert run.decide(SAM, refund(), edited={"amount_pence": 100}) is None


def test_a_decision_after_the_expiry_counts_for_nothing(run: Told) -> None:
    run.quote(refund())

    assert run.decide(SAM, refund(), after=timedelta(hours=24)) is None


def test_a_decision_on_a_call_that_is_not_held_counts_for_nothing(run: Told) -> None:
    run.quote(read("r"), refund("a"))

    assert run.decide(SAM, read("r"), "decline") is None
    assert verdicts(run.decide(SAM, refund("a"))) == {"r": "run", "a": "run"}


def test_an_approver_does_not_release_what_needs_a_lead(run: Told) -> None:
    run.quote(write("unheard_of"))

    assert run.decide(SAM, write("unheard_of")) is None
    assert verdicts(run.decide(LEE, write("unheard_of"))) == {"w": "run"}


# Two people


@pytest.mark.parametrize(("first", "second"), [(SAM, LEE), (LEE, SAM), (LEE, LIA)])
def test_two_people_release_a_very_large_refund_if_one_is_a_lead(run: Told, first: Person, second: Person) -> None:
    run.quote(refund(amount=60_000))

    assert run.decide(first, refund(amount=60_000)) is None
    assert verdicts(run.decide(second, refund(amount=60_000))) == {"a": "run"}


@pytest.mark.parametrize(
    "people",
    [(SAM, SAM), (LEE, LEE), (SAM, SUE), (LEE, person("lee", "approver")), (LEE, ALEX)],
)
def test_these_do_not_release_a_very_large_refund(run: Told, people: tuple[Person, Person]) -> None:
    run.quote(refund(amount=60_000))

    assert [run.decide(by, refund(amount=60_000)) for by in people] == [None, None]


def test_who_has_approved_fills_no_second_seat_once_they_are_a_lead(run: Told) -> None:
    large = refund(amount=60_000)
    run.quote(large)

    assert [run.decide(by, large) for by in (SAM, SUE, person("sam", "lead"))] == [None] * 3
    assert verdicts(run.decide(LEE, large)) == {"a": "run"}


def test_one_of_two_people_is_enough_to_decline(run: Told) -> None:
    run.quote(refund(amount=60_000))
    run.decide(LEE, refund(amount=60_000))

    assert verdicts(run.decide(SAM, refund(amount=60_000), "decline")) == {"a": "declined"}
