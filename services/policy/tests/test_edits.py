"""Approved with changed arguments: quoted and judged anew; whose word still counts, and who has become a requester."""

from datetime import timedelta
from typing import Any

import pytest
from contracts.facts import CallDecided, TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import CallQuote, Guard, Person
from contracts.testing import person
from policy.pack import parse

from .quotes import PACK, read, refund
from .told import ALEX, LEE, LIA, SAM, SUE, Told, by_address_only, verdicts


def edit(run: Told, by: Person, quote: CallQuote, amount: int = 12_000, **more: Any) -> object:
    return run.decide(by, quote, edited={"order_reference": "ORD-10042", "amount_pence": amount}, **more)


def changed(was: CallQuote, amount: int, **more: Any) -> CallQuote:
    """What the shop makes of a call that a person changed."""
    return refund(was.call_id, amount, edited=was.digest, **more)


def test_a_changed_call_says_nothing_until_it_is_quoted_and_then_runs_by_its_editors_word(run: Told) -> None:
    run.quote(read("r"), refund("a"))

    assert edit(run, SAM, refund("a")) is None
    answer = run.quote(read("r"), changed(refund("a"), 12_000), attempt=2)

    assert verdicts(answer) == {"r": "run", "a": "run"}
    assert isinstance(answer, TurnForwarded)
    assert answer.verdicts[1].digest == changed(refund("a"), 12_000).digest
    assert answer.verdicts[1].reason == "Released by sam."
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=50_000)]


def test_a_call_that_a_person_lowered_below_the_automatic_limit_is_still_theirs(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"), 900)

    answer = run.quote(changed(refund("a"), 900), attempt=2)

    assert isinstance(answer, TurnForwarded)
    assert (answer.verdicts[0].rule, answer.verdicts[0].reason) == ("changed-by-a-person", "Released by sam.")


@pytest.mark.parametrize(
    "now",
    [
        changed(refund("a"), 18_001),
        changed(refund("a"), 12_000, customer="C-2"),
        changed(refund("a"), 12_000, tool="other_refund"),
        changed(refund("a"), 12_000).model_copy(
            update={"effect": refund("a", 12_000).effect.model_copy(update={"object": "ORD-1"})}  # type: ignore[union-attr]
        ),
    ],
    ids=["more money", "another customer", "another tool", "another order"],
)
def test_what_is_more_or_something_else_is_held_anew_and_its_editor_has_asked_for_it(now: CallQuote) -> None:
    run = Told(parse(PACK.replace("issue_refund: refund", "issue_refund: refund\n  other_refund: refund")))
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))

    held = run.quote(now, attempt=2)

    assert isinstance(held, TurnHeld)
    assert (held.holds[0].digest, held.holds[0].edited_by) == (now.digest, SAM)
    assert run.decide(SAM, now) is None
    assert verdicts(run.decide(SUE, now)) == {"a": "run"}


def test_a_small_amount_of_something_else_is_held_too_though_it_would_have_run_if_the_model_had_asked(
    run: Told,
) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))

    held = run.quote(changed(refund("a"), 900, customer="C-2"), attempt=2)

    assert isinstance(held, TurnHeld)
    assert (held.holds[0].rule, held.holds[0].edited_by) == ("changed-by-a-person", SAM)


def test_where_two_are_needed_the_editor_fills_one_seat(run: Told) -> None:
    large, less = refund("a", 60_000), changed(refund("a", 60_000), 55_000)
    run.quote(large)
    edit(run, SAM, large, 55_000)

    held = run.quote(less, attempt=2)

    assert isinstance(held, TurnHeld)
    assert (held.holds[0].needs.people, held.holds[0].edited_by) == (2, None)
    assert run.decide(SUE, less) is None, "a lead has to be among them"
    assert verdicts(run.decide(LEE, less)) == {"a": "run"}


@pytest.mark.parametrize("amount", [900, 40_000])
def test_lowering_a_call_does_not_do_away_with_the_people_who_were_asked_about_it(run: Told, amount: int) -> None:
    run.quote(refund("a", 60_000))
    edit(run, SAM, refund("a", 60_000), amount)

    held = run.quote(changed(refund("a", 60_000), amount), attempt=2)

    assert isinstance(held, TurnHeld)
    needs = held.holds[0].needs
    assert (needs.people, needs.one_of_role, needs.amount_minor) == (2, "lead", amount)
    assert verdicts(run.decide(LEE, changed(refund("a", 60_000), amount))) == {"a": "run"}


def test_an_approval_from_before_the_change_does_not_count_for_what_it_became(run: Told) -> None:
    large, less = refund("a", 60_000), changed(refund("a", 60_000), 55_000)
    run.quote(large)
    run.decide(LEE, large)
    edit(run, SAM, large, 55_000)

    assert isinstance(run.quote(less, attempt=2), TurnHeld)
    assert verdicts(run.decide(LIA, less)) == {"a": "run"}


def test_an_editors_own_limit_is_held_against_what_the_call_became(run: Told) -> None:
    limited = SAM.model_copy(update={"limit_minor": 12_000})
    run.quote(refund("a"))
    assert run.decide(limited, refund("a")) is None, "£180.00 is above their limit"
    edit(run, limited, refund("a"), 12_000)
    assert verdicts(run.quote(changed(refund("a"), 12_000), attempt=2)) == {"a": "run"}

    again = Told(run.pack)
    again.quote(refund("a"))
    edit(again, limited, refund("a"), 12_001)
    held = again.quote(changed(refund("a"), 12_001), attempt=2)
    assert isinstance(held, TurnHeld)
    assert held.holds[0].edited_by == limited
    assert again.decide(limited, changed(refund("a"), 12_001), "decline") is None, "by now they have asked for it"


def test_own_limits_are_not_split_away_over_a_turns_calls(run: Told) -> None:
    limited = SAM.model_copy(update={"limit_minor": 15_000})
    calls = [refund("a", 10_000), refund("b", 10_000, today=20_000)]
    run.quote(*calls)

    assert run.decide(limited, calls[0]) is None
    assert run.decide(limited, calls[1]) is None
    assert run.decide(limited, calls[0], "decline") is None
    assert verdicts(run.decide(SUE, calls[1])) == {"a": "declined", "b": "run"}, "who may release nothing may decline"


def test_an_editors_own_limit_is_held_against_all_that_the_customer_is_refunded_today(run: Told) -> None:
    limited = SAM.model_copy(update={"limit_minor": 12_000})
    small = changed(refund("a"), 900, today=12_000)
    run.quote(refund("a", today=29_100))
    edit(run, limited, refund("a"), 900)
    answer = run.quote(small, attempt=2)
    assert verdicts(answer) == {"a": "run"}
    assert isinstance(answer, TurnForwarded)
    assert [guard.at_most for guard in answer.guards] == [12_000], "and no more by the time when it is paid"

    held = run.quote(changed(refund("a"), 900, today=12_001), attempt=3)
    assert isinstance(held, TurnHeld)
    assert (held.holds[0].edited_by, held.holds[0].needs.amount_minor) == (limited, 12_001)
    assert verdicts(run.decide(SUE, small)) == {"a": "run"}


def test_an_editors_word_for_a_little_does_not_stand_where_it_is_a_little_more_than_their_limit(run: Told) -> None:
    limited = SAM.model_copy(update={"limit_minor": 4000})
    run.quote(refund("a", today=21_000))
    edit(run, limited, refund("a"), 900)

    held = run.quote(changed(refund("a"), 900, today=4001), attempt=2)

    assert isinstance(held, TurnHeld), "though the automatic limit would let it run"
    assert (held.holds[0].rule, held.holds[0].needs.amount_minor) == ("changed-by-a-person", 4001)


@pytest.mark.parametrize("by", [ALEX, person("alex", "lead"), person("C-1004", "lead"), person("ada", "admin")])
def test_a_change_by_someone_who_may_decide_nothing_releases_nothing(run: Told, by: Person) -> None:
    run.quote(refund("a"))
    edit(run, by, refund("a"))

    held = run.quote(changed(refund("a"), 12_000), attempt=2)

    assert isinstance(held, TurnHeld)
    assert held.holds[0].edited_by == by
    assert run.decide(by, changed(refund("a"), 12_000)) is None
    assert verdicts(run.decide(SAM, changed(refund("a"), 12_000))) == {"a": "run"}


def test_a_change_by_whom_the_call_is_about_releases_nothing(run: Told) -> None:
    tom, by_address = person("C-1004", "lead"), Told(run.pack, begun=by_address_only())
    by_address.quote(refund("a"))
    edit(by_address, tom, refund("a"))

    held = by_address.quote(changed(refund("a"), 12_000), attempt=2)

    assert isinstance(held, TurnHeld)
    assert held.holds[0].edited_by == tom


def test_a_quote_that_claims_an_edit_that_nobody_made_is_held(run: Told) -> None:
    run.quote(refund("a"))

    held = run.quote(changed(refund("a"), 900), attempt=2)

    assert isinstance(held, TurnHeld)
    assert (held.holds[0].needs.role, held.holds[0].edited_by) == ("approver", None)

    unheard_of = Told(run.pack)
    held = unheard_of.quote(changed(refund("a"), 900))
    assert isinstance(held, TurnHeld)
    assert held.holds[0].needs.role == "lead"


def test_a_late_change_counts_for_nothing(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"), after=timedelta(hours=24))

    held = run.quote(changed(refund("a"), 12_000), attempt=2)

    assert isinstance(held, TurnHeld)


def test_a_change_of_another_effect_counts_for_nothing(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a", state="cancelled"))

    assert verdicts(run.decide(SUE, refund("a"))) == {"a": "run"}


def test_while_a_change_waits_for_its_quote_the_old_attempt_is_left_alone(run: Told) -> None:
    run.quote(refund("a"), refund("b", 9000, today=27_000))
    edit(run, SAM, refund("a"))

    assert run.decide(SUE, refund("a")) is None
    assert run.decide(SUE, refund("b", 9000, today=27_000)) is None
    assert run.expire("a", "b") is None
    answer = run.quote(changed(refund("a"), 12_000), refund("b", 9000, today=21_000), attempt=2)

    assert verdicts(answer) == {"a": "run", "b": "run"}
    assert isinstance(answer, TurnForwarded)
    assert [verdict.reason for verdict in answer.verdicts] == ["Released by sam.", "Released by sue."]


def test_an_expiry_of_what_was_changed_in_time_changes_nothing(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))

    assert run.expire("a") is None
    assert verdicts(run.quote(changed(refund("a"), 12_000), attempt=2)) == {"a": "run"}


def test_an_expiry_beside_a_change_declines_only_what_nobody_decided(run: Told) -> None:
    run.quote(refund("a"), refund("b", 9000, today=27_000))
    edit(run, SAM, refund("a"))
    run.expire("b")

    answer = run.quote(changed(refund("a"), 12_000), refund("b", 9000, today=21_000), attempt=2)

    assert verdicts(answer) == {"a": "run", "b": "declined"}


def test_one_call_changed_one_declined_and_one_open_make_one_turn(run: Told) -> None:
    quotes = [refund("a"), refund("b", 9000, today=27_000), refund("c", 8000, today=35_000)]
    run.quote(*quotes)
    run.decide(SUE, quotes[1], "decline", note="Not this one.")
    edit(run, SAM, quotes[0])

    held = run.quote(changed(quotes[0], 12_000), *quotes[1:], attempt=2)

    assert isinstance(held, TurnHeld)
    assert ([hold.call_id for hold in held.holds], held.will_run) == (["c"], ["a"])
    assert verdicts(run.decide(LEE, quotes[2])) == {"a": "run", "b": "declined", "c": "run"}


def test_a_changed_call_beside_a_small_one_leaves_it_its_guard(run: Told) -> None:
    small, large = refund("a", 900), refund("b", 18_000, today=18_900)
    run.quote(small, large)
    edit(run, SAM, large)

    answer = run.quote(small, changed(large, 12_000, today=12_900), attempt=2)

    assert isinstance(answer, TurnForwarded)
    assert answer.guards == [Guard(name="refunded_today_by_customer", subject="C-1004", at_most=17_000)]


def test_a_changed_call_stays_released_while_its_effect_is_the_same_and_no_longer(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))
    less = changed(refund("a"), 12_000)
    assert verdicts(run.quote(less, attempt=2)) == {"a": "run"}

    assert verdicts(run.quote(less, attempt=3)) == {"a": "run"}

    again = Told(run.pack)
    again.quote(refund("a"))
    edit(again, SAM, refund("a"))
    again.quote(less, attempt=2)
    other = changed(refund("a"), 12_000, state="partly refunded")
    held = again.quote(other, attempt=3)
    assert isinstance(held, TurnHeld)
    assert held.holds[0].edited_by == SAM
    assert verdicts(again.decide(SUE, other)) == {"a": "run"}


def test_a_changed_call_can_be_changed_again_by_another(run: Told) -> None:
    large, less, least = refund("a", 60_000), changed(refund("a", 60_000), 55_000), refund("a", 52_000)
    run.quote(large)
    edit(run, SAM, large, 55_000)
    run.quote(less, attempt=2)
    edit(run, LEE, less, 52_000)
    least = changed(less, 52_000)

    held = run.quote(least, attempt=3)

    assert isinstance(held, TurnHeld)
    assert held.holds[0].edited_by is None
    assert run.decide(SAM, least) is None, "what they changed it into was not this"
    assert verdicts(run.decide(SUE, least)) == {"a": "run"}


def test_who_changed_a_call_on_its_way_declines_it_no_more_than_they_approve_it(run: Told) -> None:
    large, less = refund("a", 60_000), changed(refund("a", 60_000), 55_000)
    least = changed(less, 52_000)
    run.quote(large)
    edit(run, SAM, large, 55_000)
    run.quote(less, attempt=2)
    edit(run, LEE, less, 52_000)
    run.quote(least, attempt=3)

    assert run.decide(SAM, least, "decline") is None, "it is theirs as well"
    assert verdicts(run.decide(SUE, least, "decline")) == {"a": "declined"}


def test_a_no_takes_the_role_and_no_limit(run: Told) -> None:
    large, limited = refund("a", 60_000), SAM.model_copy(update={"limit_minor": 100})
    run.quote(large)

    assert run.decide(limited, large) is None
    assert verdicts(run.decide(limited, large, "decline")) == {"a": "declined"}


def test_a_changed_call_that_will_fail_moves_nothing_and_is_explained(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))

    answer = run.quote(refund("a", 12_000, edited=refund("a").digest, will_fail="It was refunded."), attempt=2)

    assert verdicts(answer) == {"a": "run"}


def test_a_change_does_not_lift_what_nobody_can_release(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))

    refused = run.quote(changed(refund("a"), 12_000, facts={"stopped": "all refunds"}), attempt=2)

    assert isinstance(refused, TurnRefused)


def test_a_decline_that_brings_arguments_is_a_decline(run: Told) -> None:
    run.quote(refund("a"))

    assert verdicts(run.decide(SAM, refund("a"), "decline", edited={"amount_pence": 1})) == {"a": "declined"}


def test_of_two_who_change_the_same_call_the_first_is_the_one(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, SAM, refund("a"))
    edit(run, SUE, refund("a"), 11_000)

    answer = run.quote(changed(refund("a"), 12_000), attempt=2)

    assert isinstance(answer, TurnForwarded)
    assert answer.verdicts[0].reason == "Released by sam."
    assert isinstance(run.history.events[-1].fact, TurnForwarded)
    assert len(run.history.all(CallDecided)) == 2


def test_whoever_changes_a_call_that_another_has_changed_already_is_not_taken_for_them(run: Told) -> None:
    run.quote(refund("a"))
    edit(run, ALEX, refund("a"), 17_000)
    edit(run, SAM, refund("a"), 12_000)

    held = run.quote(changed(refund("a"), 17_000), attempt=2)

    assert isinstance(held, TurnHeld), "sam never saw what alex made of it"
    assert held.holds[0].edited_by == ALEX
