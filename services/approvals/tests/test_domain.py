"""Who may decide what, when; and what is owed when nobody does."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from approvals import domain, waiting
from approvals.answers import Recorded
from approvals.domain import NoOnRecord
from contracts import entitlement
from contracts.answers import No
from contracts.events import Event
from contracts.facts import (
    CallDecided,
    DecisionRefused,
    HoldEscalated,
    HoldExpired,
    ReminderSent,
    RunCancelled,
    TurnForwarded,
)
from contracts.history import History
from contracts.parts import Customer, Needs, Person, Verdict
from contracts.refused_decisions import CIRCUMSTANCES
from contracts.subjects import RunKey
from contracts.testing import person

from .told import (
    ALEX,
    LEE,
    LIA,
    ONE,
    PACK,
    SAM,
    SID,
    START,
    SUE,
    TWO,
    Told,
    detail,
    hold,
    limited,
    principal,
    quote,
    request,
    status,
)


def forwarded(attempt: int = 1) -> TurnForwarded:
    verdict = Verdict(call_id="a", verdict="run", digest=hold().digest, rule="x")
    return TurnForwarded(turn=1, attempt=attempt, pack=PACK, verdicts=[verdict])


# One person


def test_a_decision_becomes_a_fact_that_says_who_what_and_why(run: Told) -> None:
    held = run.hold(hold())

    event = run.ask(SAM, hold(), "decline", note="The jacket was worn.")

    assert isinstance(event, Event)
    assert event.cause == held.id
    assert event.fact == CallDecided(
        turn=1,
        call_id="a",
        digest=hold().digest,
        decision="decline",
        by=SAM,
        note="The jacket was worn.",
        hands_over=True,
    )


def test_the_same_decision_again_is_the_fact_that_there_was(run: Told) -> None:
    run.hold(hold())
    first = run.decide(SAM, hold())
    run.say(forwarded())
    run.say(RunCancelled(by=ALEX))
    run.wait(hours=30)

    again = run.ask(SAM, hold())

    assert again == Recorded(first, repeated=True)
    assert len(run.history.all(CallDecided)) == 1


def test_who_comes_second_is_told_who_was_first_and_that_nothing_changed(run: Told) -> None:
    run.hold(hold())
    run.ask(SAM, hold())
    run.wait(seconds=3)

    late = run.ask(SUE, hold(), "decline")

    assert status(late) == 409
    assert detail(late) == "sam approved this 3 s before you. Your click changed nothing."
    assert len(run.history.all(CallDecided)) == 1


def test_one_who_changes_their_mind_after_it_is_settled_changes_nothing(run: Told) -> None:
    run.hold(hold())
    run.ask(SAM, hold(), "decline")
    run.wait(minutes=4)

    assert detail(run.ask(SAM, hold())) == "You declined this 4 min ago. Your click changed nothing."


@pytest.mark.parametrize(
    ("by", "says"),
    [
        (person("alex", "lead"), "You started this run"),
        (person("C-1004", "approver"), "your own ticket"),
        (person("Tom@Example.org", "approver"), "your own ticket"),
        (person("cust-C-1004", "approver"), "your own ticket"),
    ],
)
@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_who_asked_and_whose_ticket_it_is_may_not_decide(run: Told, by: Person, says: str, decision: str) -> None:
    run.hold(hold())

    no = run.ask(by, hold(), decision)

    assert status(no) == 403
    assert says in detail(no)
    assert [fact.by for fact in run.history.all(DecisionRefused)] == [by]


def test_a_customer_who_works_here_is_known_by_their_verified_email(run: Told) -> None:
    run.hold(hold())

    no = domain.decide(run.history, request(hold()), principal(SAM, email="Tom@example.org"), run.now)

    assert isinstance(no, NoOnRecord)
    assert "your own ticket" in no.no.detail


def test_the_requesters_namesake_of_another_issuer_is_another_person(run: Told) -> None:
    run.hold(hold())

    assert status(run.ask(person("alex", "approver", "https://other.example"), hold())) == 200


def test_an_approver_may_not_release_what_needs_a_lead(run: Told) -> None:
    run.hold(hold(needs=Needs(role="lead")))

    assert status(run.ask(SAM, hold())) == 403
    assert status(run.ask(SAM, hold(), "decline")) == 403
    assert status(run.ask(LEE, hold())) == 200


def test_whom_a_quote_is_about_does_not_decide_on_it_where_the_ticket_names_an_address_only() -> None:
    run = Told(Customer(email="tom@example.org"))
    run.quote(quote())
    run.hold(hold())
    tom = person("C-1004", "lead")

    assert "your own ticket" in detail(run.ask(tom, hold()))
    assert "your own ticket" in detail(run.ask(tom, hold(), "decline"))
    run.say(CallDecided(turn=1, call_id="a", digest=hold().digest, decision="approve", by=tom))
    assert status(run.ask(SAM, hold())) == 200, "whoever recorded it, theirs fills no seat"
    run.say(RunCancelled(by=ALEX))
    assert "your own ticket" in detail(run.ask(tom, hold(), "decline")), "and they are told no more of it"


def test_an_unknown_run_is_not_found_and_nothing_is_recorded() -> None:
    unknown = History(RunKey("acme", "TCK-9999-1"))

    assert isinstance(domain.decide(unknown, request(hold()), principal(SAM), START), No)


@pytest.mark.parametrize("more", [{"call_id": "zzz"}, {"turn": 7}])
def test_a_call_that_is_not_held_is_not_found(run: Told, more: dict[str, Any]) -> None:
    run.hold(hold())

    assert status(run.ask(SAM, hold(), **more)) == 404


def test_a_decision_for_another_effect_than_the_one_that_waits_is_refused(run: Told) -> None:
    run.hold(hold())

    no = run.ask(SAM, hold(state="cancelled"))

    assert status(no) == 409
    assert "has changed" in detail(no)


def test_a_decision_for_the_effect_of_an_earlier_attempt_is_refused(run: Told) -> None:
    run.hold(hold(state="old"))
    run.ask(SAM, hold(state="old"))
    run.say(forwarded())
    run.hold(hold(state="new"), attempt=2)

    assert status(run.ask(SUE, hold(state="old"))) == 409
    assert status(run.ask(SAM, hold(state="new"))) == 200


def test_the_moment_of_expiry_is_too_late(run: Told) -> None:
    run.hold(hold())
    run.wait(hours=24)

    no = run.ask(SAM, hold())

    assert status(no) == 410
    assert "2026-11-03 09:00:00 UTC" in detail(no)


def test_just_before_the_expiry_is_in_time(run: Told) -> None:
    run.hold(hold())
    run.now += timedelta(hours=24) - timedelta(microseconds=1)

    assert status(run.ask(SAM, hold())) == 200


def test_a_recorded_expiry_binds_whatever_the_clock_says(run: Told) -> None:
    run.hold(hold())
    run.say(HoldExpired(turn=1, call_ids=["a"]))

    assert status(run.ask(SAM, hold())) == 410


def test_a_run_that_has_ended_takes_no_decision(run: Told) -> None:
    run.hold(hold())
    run.say(RunCancelled(by=ALEX))

    no = run.ask(SAM, hold())

    assert status(no) == 409
    assert "run-cancelled" in detail(no)


def test_a_turn_that_policy_has_moved_past_takes_no_decision(run: Told) -> None:
    run.hold(hold("a"), hold("b"))
    run.say(forwarded())

    assert status(run.ask(SAM, hold("b"))) == 409


def test_two_holds_of_one_turn_are_decided_apart(run: Told) -> None:
    run.hold(hold("a"), hold("b"))

    assert status(run.ask(SAM, hold("a"))) == 200
    assert status(run.ask(SAM, hold("b"), "decline")) == 200
    assert [fact.call_id for fact in run.history.all(CallDecided)] == ["a", "b"]


# Two people


@pytest.mark.parametrize(("first", "second"), [(SAM, LEE), (LEE, SAM), (LEE, LIA)])
def test_two_different_people_one_of_them_a_lead_fill_both_seats(run: Told, first: Person, second: Person) -> None:
    run.hold(hold(needs=TWO))

    assert status(run.ask(first, hold())) == 200
    assert status(run.ask(second, hold())) == 200
    assert detail(run.ask(SID, hold())).startswith(f"{second.subject} approved this")


def test_the_same_person_does_not_fill_two_seats(run: Told) -> None:
    run.hold(hold(needs=TWO))
    first = run.ask(LEE, hold())

    again = run.ask(LEE, hold())
    assert isinstance(again, Recorded)
    assert (again.event, again.repeated) == (first, True)
    assert status(run.ask(person("lee", "approver"), hold())) == 200
    assert len(run.history.all(CallDecided)) == 1


def test_who_has_approved_cannot_decline_as_the_second_person(run: Told) -> None:
    run.hold(hold(needs=TWO))
    run.ask(LEE, hold())
    run.wait(seconds=90)

    assert (
        detail(run.ask(LEE, hold(), "decline")) == "You approved this 1 min ago. Another person has to decide the rest."
    )


def test_the_last_seat_is_kept_for_a_lead(run: Told) -> None:
    run.hold(hold(needs=TWO))
    run.ask(SAM, hold())

    no = run.ask(SUE, hold())

    assert status(no) == 403
    assert detail(no) == "One of the 2 has to be a lead, and only one seat is left."
    assert status(run.ask(LEE, hold())) == 200


def test_any_of_two_may_decline(run: Told) -> None:
    run.hold(hold(needs=TWO))
    run.ask(SAM, hold())

    assert status(run.ask(SUE, hold(), "decline")) == 200
    assert detail(run.ask(LEE, hold())).startswith("sue declined this")


def test_an_approval_of_an_earlier_attempt_still_fills_a_seat(run: Told) -> None:
    run.hold(hold(needs=ONE))
    run.ask(SAM, hold())
    run.say(forwarded())
    run.hold(hold(needs=TWO), attempt=2)

    assert status(run.ask(SUE, hold())) == 403, "the seat that is left is the lead's"
    assert status(run.ask(LEE, hold())) == 200
    assert status(run.ask(LIA, hold())) == 409


# The same again, where more is needed now


def held_anew(run: Told, needs: Needs) -> None:
    """sam approves; then the same effect is held again, for more."""
    run.quote(quote())
    run.hold(hold(needs=ONE))
    run.ask(SAM, hold())
    run.say(forwarded())
    run.quote(quote(), attempt=2)
    run.hold(hold(needs=needs), attempt=2)


def test_whose_approval_stands_is_told_so_and_who_else_is_needed(run: Told) -> None:
    held_anew(run, TWO)
    [first] = [event for event, _ in run.history.of(CallDecided)]

    again = run.ask(SAM, hold())

    assert again == Recorded(
        first,
        repeated=True,
        detail="Your approval stands, and nothing new was recorded. The call still waits for somebody else: a lead.",
    )
    run.ask(LEE, hold())
    assert run.ask(SAM, hold()) == Recorded(first, repeated=True), "nobody else is needed now"
    assert len(run.history.all(CallDecided)) == 2


@pytest.mark.parametrize(
    ("needs", "by", "says"),
    [
        (Needs(role="lead"), SAM, "This needs the role lead; yours is approver."),
        (Needs(amount_minor=30000), limited(SAM, 20000), "your own limit is £200.00"),
    ],
)
def test_whose_approval_is_no_longer_enough_is_told_why(run: Told, needs: Needs, by: Person, says: str) -> None:
    run.quote(quote())
    run.hold(hold(needs=Needs(amount_minor=18000)))
    first = run.ask(by, hold())
    run.say(forwarded())
    run.quote(quote(), attempt=2)
    run.hold(hold(needs=needs), attempt=2)

    again = run.ask(by, hold())

    assert isinstance(again, Recorded)
    assert (again.event, again.repeated) == (first, True)
    assert detail(again).startswith("You have said this before, and it is no longer enough: nothing new was recorded.")
    assert says in detail(again)
    assert run.history.all(DecisionRefused) == []


def test_who_is_entitled_to_more_by_now_says_it_anew(run: Told) -> None:
    held_anew(run, Needs(role="lead"))

    anew = run.decide(person("sam", "lead"), hold())

    assert run.ask(person("sam", "lead"), hold()) == Recorded(anew, repeated=True)
    assert status(run.ask(LEE, hold())) == 409, "one lead was enough"


def test_who_repeats_what_they_said_of_another_effect_is_told_to_look_again(run: Told) -> None:
    run.hold(hold(state="old"))
    first = run.ask(SAM, hold(state="old"))
    run.say(forwarded())
    run.hold(hold(state="new"), attempt=2)

    again = run.ask(SAM, hold(state="old"))

    assert isinstance(again, Recorded)
    assert (again.event, again.repeated) == (first, True)
    assert "has changed since you decided" in detail(again)
    run.wait(hours=24)
    assert run.ask(SAM, hold(state="old")) == Recorded(again.event, repeated=True), "it waits no longer"


# A limit of one's own


def test_who_has_a_lower_limit_of_their_own_is_told_it_with_the_amount_and_what_they_may_do(run: Told) -> None:
    run.quote(quote())
    run.hold(hold(needs=Needs(amount_minor=18000)))

    no = run.ask(limited(SAM, 10000), hold())

    assert status(no) == 403
    assert detail(no).startswith("With this it is £180.00 to this customer today; your own limit is £100.00.")
    assert "You may decline it, or approve less." in detail(no)
    assert [fact.by.limit_minor for fact in run.history.all(DecisionRefused)] == [10000]


def test_a_no_is_said_and_counts_whatever_the_limit_of_who_says_it(run: Told) -> None:
    run.hold(hold("a", Needs(amount_minor=18000)), hold("b"))

    assert status(run.ask(limited(SAM, 10000), hold("a"), "decline")) == 200
    assert status(run.ask(limited(SAM, 0), hold("b"), "decline")) == 200, "of what moves an unknown amount, too"
    assert detail(run.ask(LIA, hold("a"))).startswith("sam declined this")
    run.wait(hours=24)
    assert run.look() is None


def test_a_limit_of_ones_own_that_just_reaches_is_enough_and_goes_on_record(run: Told) -> None:
    run.hold(hold(needs=Needs(amount_minor=18000)))

    event = run.ask(limited(SAM, 18000), hold())

    assert isinstance(event, Event)
    assert isinstance(event.fact, CallDecided)
    assert event.fact.by.limit_minor == 18000


def test_a_lead_has_no_more_than_a_limit_of_their_own_either(run: Told) -> None:
    run.hold(hold(needs=Needs(role="lead", amount_minor=60000)))

    assert status(run.ask(limited(LEE, 50000), hold())) == 403
    assert status(run.ask(LIA, hold())) == 200


def test_who_has_a_limit_does_not_release_an_amount_that_nobody_knows(run: Told) -> None:
    run.hold(hold())

    assert "is not known" in detail(run.ask(limited(SAM, 10000), hold()))


def test_of_two_each_has_to_be_within_their_own_limit(run: Told) -> None:
    needs = TWO.model_copy(update={"amount_minor": 60000})
    run.hold(hold(needs=needs))

    assert status(run.ask(limited(SAM, 50000), hold())) == 403
    assert status(run.ask(SUE, hold())) == 200
    assert status(run.ask(limited(LEE, 59999), hold())) == 403
    assert status(run.ask(LIA, hold())) == 200


def test_what_was_approved_within_a_limit_fills_no_seat_of_a_hold_that_moves_more(run: Told) -> None:
    run.hold(hold(needs=Needs(amount_minor=18000)))
    run.ask(limited(SAM, 18000), hold())
    run.say(forwarded())
    run.hold(hold(needs=Needs(people=2, amount_minor=30000)), attempt=2)

    assert status(run.ask(SUE, hold())) == 200
    assert status(run.ask(LEE, hold())) == 200, "both seats were free"


# What was stored with the hold is what is asked, each of it


def test_each_thing_that_a_hold_asks_for_is_asked(run: Told) -> None:
    """Whoever leaves one of these checks out makes one of these a 200."""
    asks_much = Needs(role="lead", people=2, amount_minor=18000)
    run.hold(hold("digest"), hold("role", Needs(role="lead")), hold("people", Needs(people=2)), hold("much", asks_much))
    run.hold(hold("late", state="x"), turn=2, hours=1)
    run.wait(hours=1)

    assert status(run.ask(SAM, hold("digest", state="cancelled"), turn=1)) == 409
    assert status(run.ask(SAM, hold("role"))) == 403
    assert status(run.ask(ALEX, hold("digest"))) == 403
    assert status(run.ask(limited(LEE, 17999), hold("much"))) == 403
    assert status(run.ask(SAM, hold("late", state="x"), turn=2)) == 410
    assert status(run.ask(SAM, hold("people"))) == 200
    assert run.ask(SUE, hold("people")) is not None
    assert status(run.ask(SID, hold("people"))) == 409, "two were enough"


# Refusals on record


def test_refusals_are_recorded_five_a_minute_for_each_person(run: Told) -> None:
    run.hold(hold())
    run.ask(SAM, hold())
    for _ in range(8):
        assert status(run.ask(SUE, hold())) == 409
    run.ask(SID, hold())
    run.wait(seconds=61)
    run.ask(SUE, hold())

    recorded = [fact.by.subject for fact in run.history.all(DecisionRefused)]
    assert recorded == ["sue"] * 5 + ["sid", "sue"]


def test_each_recorded_refusal_has_an_id_of_its_own(run: Told) -> None:
    run.hold(hold())
    run.ask(SAM, hold())
    for _ in range(3):
        run.ask(SUE, hold())

    assert len({event.id for event in run.history.events}) == len(run.history.events)


# When nobody decides


def test_nothing_is_owed_before_its_time(run: Told) -> None:
    held = run.hold(hold())

    assert run.look() is None
    assert waiting.next_look(run.history, run.now) == held.time + timedelta(hours=18)


def test_a_reminder_is_owed_once_and_names_what_waits_and_for_whom(run: Told) -> None:
    run.hold(hold("a"), hold("b", TWO), hold("c"))
    run.ask(SAM, hold("a"))
    run.wait(hours=18)

    assert run.look() == ReminderSent(turn=1, call_ids=["b", "c"], role="approver")
    assert run.look() is None
    assert waiting.next_look(run.history, run.now) == run.now + timedelta(hours=6)


def test_a_reminder_names_the_lead_where_the_other_seat_is_taken(run: Told) -> None:
    run.hold(hold(needs=TWO))
    run.ask(SAM, hold())
    run.wait(hours=18)

    assert run.look() == ReminderSent(turn=1, call_ids=["a"], role="lead")


def test_a_reminder_of_a_hold_of_one_lead_names_the_lead(run: Told) -> None:
    run.hold(hold(needs=Needs(role="lead", one_of_role="lead")))
    run.wait(hours=18)

    assert run.look() == ReminderSent(turn=1, call_ids=["a"], role="lead")


def test_what_nobody_decides_goes_to_the_next_role_behind_the_reminder_once(run: Told) -> None:
    run.hold(hold("a"), hold("b", TWO), hold("c"), escalates=True)
    run.ask(SAM, hold("a"))
    run.wait(hours=18)

    assert isinstance(run.look(), ReminderSent)
    assert run.look() is None
    assert waiting.next_look(run.history, run.now) == run.now + timedelta(hours=2)
    run.wait(hours=2)
    assert run.look() == HoldEscalated(turn=1, call_ids=["b", "c"], role="lead")
    assert run.look() is None
    assert waiting.next_look(run.history, run.now) == run.now + timedelta(hours=4)
    run.wait(hours=4)
    assert run.look() == HoldExpired(turn=1, call_ids=["b", "c"], hands_over=True)


def test_above_a_lead_there_is_nobody_so_that_hold_is_only_reminded_of(run: Told) -> None:
    run.hold(hold("a", Needs(role="lead")), escalates=True)
    run.wait(hours=20)

    assert run.look() == ReminderSent(turn=1, call_ids=["a"], role="lead")
    assert run.look() is None


def test_a_timer_that_comes_late_brings_the_next_role_and_reminds_only_of_the_rest(run: Told) -> None:
    run.hold(hold("a"), hold("b", Needs(role="lead")), escalates=True)
    run.wait(hours=21)

    assert run.look() == HoldEscalated(turn=1, call_ids=["a"], role="lead")
    assert run.look() == ReminderSent(turn=1, call_ids=["b"], role="lead")
    assert run.look() is None


def test_without_a_time_for_it_nothing_goes_to_the_next_role(run: Told) -> None:
    run.hold(hold())
    run.wait(hours=23)

    assert isinstance(run.look(), ReminderSent)
    assert run.look() is None


def test_who_could_decide_before_still_can_when_it_went_to_the_next_role(run: Told) -> None:
    run.hold(hold(), escalates=True)
    run.wait(hours=20)
    run.look()

    assert status(run.ask(SAM, hold())) == 200


def test_a_hold_ends_in_time_for_every_call_that_nobody_settled(run: Told) -> None:
    run.hold(hold("a"), hold("b", TWO), hold("c"))
    run.ask(SAM, hold("a"))
    run.ask(SAM, hold("b", TWO))
    run.wait(hours=24)

    assert run.look() == HoldExpired(turn=1, call_ids=["b", "c"], hands_over=True)
    assert run.look() is None


def test_a_late_timer_brings_the_expiry_and_no_belated_reminder(run: Told) -> None:
    run.hold(hold())
    run.wait(days=3)

    assert isinstance(run.look(), HoldExpired)


@pytest.mark.parametrize("decision", ["approve", "decline"])
def test_a_timer_that_was_outlived_finds_nothing(run: Told, decision: str) -> None:
    run.hold(hold())
    run.ask(SAM, hold(), decision)
    run.wait(hours=24)

    assert run.look() is None
    assert waiting.next_look(run.history, run.now) is None


def test_a_timer_of_a_run_that_has_ended_finds_nothing(run: Told) -> None:
    run.hold(hold())
    run.say(RunCancelled(by=ALEX))
    run.wait(hours=24)

    assert run.look() is None


def test_a_timer_of_an_earlier_attempt_does_not_end_the_new_hold(run: Told) -> None:
    run.hold(hold(state="old"))
    run.ask(SAM, hold(state="old"))
    run.wait(hours=20)
    run.say(forwarded())
    run.hold(hold(state="new"), attempt=2)
    run.wait(hours=4)

    assert run.look() is None


def test_a_decision_that_was_recorded_too_late_settles_nothing(run: Told) -> None:
    run.hold(hold())
    run.wait(hours=24)
    run.say(CallDecided(turn=1, call_id="a", digest=hold().digest, decision="approve", by=SAM))

    assert isinstance(run.look(), HoldExpired)


def test_every_reason_why_a_decision_does_not_count_has_words_of_its_own_in_the_audit() -> None:
    sources = "".join(Path(str(module.__file__)).read_text() for module in (domain, entitlement))
    titles = set(re.findall(r'\b(?:No\(\s*\d+,|Bar\()\s*"([^"]+)"', sources))
    assert "The run has ended" in titles
    assert titles - set(CIRCUMSTANCES) == set()
