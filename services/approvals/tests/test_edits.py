"""An approval with changes: what it may change, what it ends, and whose seat it fills when the turn is quoted anew."""

from typing import Any, Literal

import pytest
from approvals import domain, waiting
from approvals.answers import Recorded
from approvals.domain import MayChange, NoOnRecord
from approvals.holds import held_turn
from contracts.answers import No
from contracts.edits import objection
from contracts.events import Event
from contracts.facts import CallDecided, DecisionRefused, HoldExpired, RunCancelled, TurnForwarded
from contracts.parts import CallQuote, Effect, Needs, Person, Verdict
from contracts.testing import person
from pydantic import ValidationError

from .told import (
    ALEX,
    LEE,
    LIA,
    PACK,
    SAM,
    SUE,
    TWO,
    Told,
    detail,
    hold,
    hold_of,
    limited,
    principal,
    quote,
    request,
    status,
)

WAS = quote()
LESS = quote(pence=12000, edited=WAS.digest)
EDIT = {"amount_pence": 12000}


@pytest.fixture
def held(run: Told) -> Event:
    run.quote(WAS)
    return run.hold(hold())


def edit(
    run: Told, by: Person = SAM, quoted: CallQuote = LESS, was: CallQuote = WAS, **more: Any
) -> Event | Recorded | No:
    return run.ask(by, hold_of(was), quoted=quoted, edited=EDIT, **more)


def anew(run: Told, *quotes: CallQuote, needs: Needs | None = None, attempt: int = 2, **more: Any) -> None:
    """The turn is quoted again, and held again for what has an entry in `quotes`."""
    run.quote(*quotes, attempt=attempt)
    run.hold(*(hold_of(quoted, needs or Needs(), **more) for quoted in quotes), attempt=attempt)


def _verdict(quoted: CallQuote, verdict: Literal["run", "declined"] = "run") -> Verdict:
    return Verdict(call_id=quoted.call_id, verdict=verdict, digest=quoted.digest, rule="x")


# What may be changed


def test_an_edited_approval_is_a_decision_with_the_arguments_as_the_tool_read_them(run: Told, held: Event) -> None:
    event = edit(run, note="Only the jacket, not the postage.")

    assert isinstance(event, Event)
    assert event.cause == held.id
    assert event.fact == CallDecided(
        turn=1,
        call_id="a",
        digest=WAS.digest,
        decision="approve",
        by=SAM,
        note="Only the jacket, not the postage.",
        edited=LESS.arguments,
    )


def effect(**more: Any) -> Effect:
    assert WAS.effect is not None
    return WAS.effect.model_copy(update={"amount_minor": 12000} | more)


@pytest.mark.parametrize(
    ("quoted", "says"),
    [
        (quote(pence=20000, edited=WAS.digest), "would move £200.00, more than the £180.00 that was asked for"),
        (quote(pence=0, edited=WAS.digest), "would move nothing. Decline it instead"),
        (quote(pence=-100, edited=WAS.digest), "would move nothing"),
        (quote(pence=None, edited=WAS.digest), "another kind of amount"),
        (WAS, "Nothing was changed. Approve it as it is instead."),
        (WAS.model_copy(update={"digest": LESS.digest}), "Nothing was changed"),
        (LESS.model_copy(update={"digest": WAS.digest}), "Nothing was changed"),
        (LESS.model_copy(update={"will_fail": "Only £100.00 is left."}), "would fail: Only £100.00 is left."),
        (LESS.model_copy(update={"effect": effect(object="ORD-10041")}), "would be about ORD-10041, not ORD-10042"),
        (LESS.model_copy(update={"effect": effect(currency="USD")}), "would move USD, not GBP"),
        (LESS.model_copy(update={"subject": "C-1005"}), "would be about"),
        (LESS.model_copy(update={"tool": "issue_voucher"}), "another call"),
        (LESS.model_copy(update={"call_id": "b"}), "another call"),
        (LESS.model_copy(update={"kind": "read"}), "another call"),
        (LESS.model_copy(update={"effect": None}), "is not known"),
        (LESS.model_copy(update={"duplicate_of": "RF-1"}), "repeat what was done"),
    ],
)
def test_what_may_not_be_changed_is_refused_with_the_reason_and_decides_nothing(
    run: Told, held: Event, quoted: CallQuote, says: str
) -> None:
    no = edit(run, quoted=quoted)

    assert status(no) == 422
    assert says in detail(no)
    assert run.history.all(CallDecided) == []
    assert status(run.ask(SUE, hold())) == 200, "the hold waits as before"


def test_a_change_that_moves_the_same_or_no_money_is_no_objection() -> None:
    reason = LESS.model_copy(update={"effect": effect(amount_minor=18000), "arguments": {"reason": "other"}})
    moneyless = WAS.model_copy(update={"effect": effect(amount_minor=None, currency=None)})
    changed = moneyless.model_copy(update={"arguments": {"reason": "other"}, "digest": LESS.digest})

    assert objection(WAS, reason) is None
    assert objection(moneyless, changed) is None


@pytest.mark.parametrize(
    ("by", "expected"),
    [(ALEX, 403), (person("C-1004", "lead"), 403), (person("sam", "approver"), 403), (person("gus", "operator"), 403)],
)
def test_who_may_not_decide_may_not_change_either_and_the_shop_is_not_asked(
    run: Told, by: Person, expected: int
) -> None:
    run.quote(WAS)
    run.hold(hold(needs=Needs(role="lead")))

    outcome = domain.decide(run.history, request(hold(), edited=EDIT), principal(by), run.now)

    assert isinstance(outcome, NoOnRecord)
    assert outcome.no.status == expected


def test_a_limit_of_ones_own_is_held_against_what_the_call_was_changed_into(run: Told) -> None:
    run.quote(WAS)
    run.hold(hold(needs=Needs(amount_minor=18000)))

    no = edit(run, by=limited(SAM, 11999))

    assert status(no) == 403
    assert detail(no).startswith("With this it is £120.00 to this customer today; your own limit is £119.99.")
    assert [fact.by.limit_minor for fact in run.history.all(DecisionRefused)] == [11999]
    assert status(edit(run, by=limited(SAM, 12000))) == 200


def test_a_limit_of_ones_own_is_held_against_all_that_the_customer_would_be_refunded_today(run: Told) -> None:
    run.quote(WAS)
    run.hold(hold(needs=Needs(amount_minor=28000)))

    no = edit(run, by=limited(SAM, 21999))

    assert status(no) == 403
    assert detail(no).startswith("With this it is £220.00 to this customer today; your own limit is £219.99.")
    assert status(edit(run, by=limited(SAM, 22000))) == 200
    assert run.look() is None
    assert status(run.ask(SUE, hold())) == 409
    anew(run, LESS, needs=Needs(people=2, amount_minor=12000))
    assert seats(run) == ["sam"]


@pytest.mark.parametrize("state", ["cancelled", "delivered"])
def test_a_change_to_another_effect_or_behind_the_expiry_is_too_late(run: Told, held: Event, state: str) -> None:
    run.wait(hours=24 if state == "delivered" else 1)
    outcome = domain.decide(run.history, request(hold(state=state), edited=EDIT), principal(SAM), run.now)

    assert isinstance(outcome, NoOnRecord)
    assert outcome.no.status == (410 if state == "delivered" else 409)


def test_what_the_log_holds_no_quote_of_is_not_changed(run: Told) -> None:
    run.hold(hold())

    outcome = domain.decide(run.history, request(hold(), edited=EDIT), principal(SAM), run.now)

    assert isinstance(outcome, No)
    assert outcome.status == 409


def test_a_turn_that_was_quoted_three_times_is_decided_as_it_is(run: Told) -> None:
    run.quote(WAS, attempt=3)
    run.hold(hold(), attempt=3)

    outcome = domain.decide(run.history, request(hold(), edited=EDIT), principal(SAM), run.now)

    assert isinstance(outcome, NoOnRecord)
    assert (outcome.no.status, outcome.no.title) == (409, "Not to be changed again")
    assert status(run.ask(SAM, hold())) == 200


def test_a_decline_changes_nothing() -> None:
    with pytest.raises(ValidationError, match="a decline changes nothing"):
        request(hold(), "decline", edited=EDIT)


def test_arguments_of_any_size_are_not_taken() -> None:
    with pytest.raises(ValidationError, match="at most 20,000 bytes"):
        request(hold(), edited={"reason": "x" * 20_000})


def test_the_last_seat_of_a_lead_is_nobodys_concern_who_changes_the_call(run: Told) -> None:
    run.quote(WAS)
    run.hold(hold(needs=TWO))
    run.ask(SUE, hold())

    assert status(edit(run, by=SAM)) == 200


# The same again


def test_the_same_change_again_is_the_fact_that_there_was_however_it_is_spelt(run: Told, held: Event) -> None:
    spelt = {"amount_pence": 12000, "order_reference": " ord-10042 "}
    first = run.decide(SAM, hold(), quoted=LESS, edited=spelt)
    anew(run, LESS)
    run.say(RunCancelled(by=ALEX))
    run.wait(hours=30)

    for edited in (spelt, LESS.arguments):
        assert domain.decide(run.history, request(hold(), edited=edited), principal(SAM), run.now) == Recorded(
            first, repeated=True
        )
    assert len(run.history.all(CallDecided)) == 1


def test_another_change_by_the_same_person_and_a_plain_approval_are_other_decisions(run: Told, held: Event) -> None:
    edit(run)
    run.wait(seconds=5)

    other = domain.decide(run.history, request(hold(), edited={"amount_pence": 100}), principal(SAM), run.now)
    plain = run.ask(SAM, hold())

    assert isinstance(other, NoOnRecord)
    for no in (other.no, plain):
        assert status(no) == 409
        assert detail(no).startswith(
            "You changed this and approved it 5 s ago. What it would do now is being looked at"
        )


def test_two_who_change_the_same_call_do_not_both(run: Told, held: Event) -> None:
    edit(run, SAM)
    run.wait(seconds=2)

    assert detail(run.ask(SUE, hold(), edited={"amount_pence": 9000})).startswith("sam changed this and approved it")
    assert status(run.ask(SUE, hold(), "decline")) == 409


# What it ends


def test_a_change_ends_the_waiting_of_its_hold(run: Told, held: Event) -> None:
    edit(run)
    run.wait(hours=24)

    assert run.look() is None
    assert waiting.next_look(run.history, run.now) is None


def test_a_change_by_one_ends_the_waiting_of_a_hold_that_needs_two(run: Told) -> None:
    run.quote(WAS)
    run.hold(hold(needs=TWO))
    edit(run)

    assert detail(run.ask(LEE, hold())).startswith("sam changed this and approved it")
    run.wait(hours=24)
    assert run.look() is None


def test_a_change_ends_the_waiting_of_the_whole_turn_which_is_quoted_anew(run: Told) -> None:
    run.quote(WAS, quote("b"))
    run.hold(hold("a"), hold("b"), escalates=True)
    edit(run)
    for _ in range(3):
        run.wait(hours=9)
        assert run.look() is None

    assert status(run.ask(SUE, hold("b"))) == 409, "not expired: it has not been asked of anybody yet"


def test_a_change_that_was_recorded_too_late_ends_nothing(run: Told, held: Event) -> None:
    run.wait(hours=24)
    run.say(
        CallDecided(turn=1, call_id="a", digest=WAS.digest, decision="approve", by=SAM, edited=LESS.arguments),
    )

    assert run.look() == HoldExpired(turn=1, call_ids=["a"], hands_over=True)


# The turn quoted anew


def seats(run: Told) -> list[str]:
    turn = held_turn(run.history)
    assert turn is not None
    return [person.subject for person in turn.calls["a"].approvers]


def test_a_change_that_only_lowers_the_money_fills_a_seat_of_the_new_hold(run: Told, held: Event) -> None:
    edit(run)
    anew(run, LESS, needs=TWO)

    assert seats(run) == ["sam"]
    assert detail(run.ask(SAM, hold_of(LESS))).startswith("You approved this")
    assert status(run.ask(SUE, hold_of(LESS))) == 403, "the seat that is left is the lead's"
    assert status(run.ask(LEE, hold_of(LESS))) == 200
    assert status(run.ask(LIA, hold_of(LESS))) == 409


@pytest.mark.parametrize(
    "now",
    [
        LESS.model_copy(update={"effect": effect(object="ORD-10041")}),
        LESS.model_copy(update={"effect": effect(currency="USD")}),
        LESS.model_copy(update={"subject": "C-1005"}),
        LESS.model_copy(update={"edited": None}),
        LESS.model_copy(update={"edited": hold("zzz").digest}),
        quote(pence=19000, edited=WAS.digest),
        LESS.model_copy(update={"will_fail": "The order was cancelled."}),
        LESS.model_copy(update={"arguments": {"amount_pence": 12000, "reason": "other"}}),
    ],
)
def test_what_does_not_carry_over_fills_no_seat_and_its_editor_has_asked_for_it(
    run: Told, held: Event, now: CallQuote
) -> None:
    edit(run)
    anew(run, now)

    assert seats(run) == []
    no = run.ask(SAM, hold_of(now))
    assert status(no) == 403
    assert detail(no) == "You changed this call, so another person has to decide."
    assert status(run.ask(SAM, hold_of(now), "decline")) == 403
    assert status(run.ask(SUE, hold_of(now))) == 200


def test_whoever_recorded_it_an_approval_by_who_changed_the_call_fills_no_seat(run: Told, held: Event) -> None:
    edit(run)
    moved = LESS.model_copy(update={"effect": effect(object="ORD-10041")})
    anew(run, moved)
    run.say(CallDecided(turn=1, call_id="a", digest=moved.digest, decision="approve", by=SAM))

    assert seats(run) == []
    assert status(run.ask(SUE, hold_of(moved))) == 200


def test_who_is_named_as_the_editor_of_a_hold_may_not_decide_on_it(run: Told, held: Event) -> None:
    anew(run, LESS, edited_by=SAM)

    assert detail(run.ask(SAM, hold_of(LESS))) == "You changed this call, so another person has to decide."
    assert status(run.ask(person("sam", "lead"), hold_of(LESS))) == 403
    assert status(run.ask(person("sam", "approver", "https://other.example"), hold_of(LESS))) == 200


def test_a_hold_that_names_the_editor_has_no_seat_for_their_change(run: Told, held: Event) -> None:
    edit(run)
    anew(run, LESS, edited_by=SAM)

    assert seats(run) == []


def test_a_change_carries_to_the_first_quote_that_it_brought_and_to_no_later_effect(run: Told, held: Event) -> None:
    edit(run)
    anew(run, LESS, needs=TWO)
    run.say(TurnForwarded(turn=1, attempt=2, pack=PACK, verdicts=[_verdict(LESS)]))
    moved = quote(pence=12000, state="partly refunded", edited=WAS.digest)
    anew(run, moved, needs=TWO, attempt=3)

    assert seats(run) == []
    assert status(run.ask(SAM, hold_of(moved))) == 403
    assert status(run.ask(SUE, hold_of(moved))) == 200


def test_a_change_carries_on_where_a_later_quote_says_the_same(run: Told, held: Event) -> None:
    edit(run)
    anew(run, LESS, needs=TWO)
    run.say(TurnForwarded(turn=1, attempt=2, pack=PACK, verdicts=[_verdict(LESS)]))
    anew(run, LESS, needs=TWO, attempt=3)

    assert seats(run) == ["sam"]


def test_a_change_of_a_change_carries_over_and_the_first_one_no_more(run: Told, held: Event) -> None:
    edit(run, SAM)
    anew(run, LESS, needs=Needs(people=2))
    least = quote(pence=9000, edited=LESS.digest)
    assert status(run.ask(SUE, hold_of(LESS), quoted=least, edited={"amount_pence": 9000})) == 200
    anew(run, least, needs=Needs(people=2), attempt=3)

    assert seats(run) == ["sue"]
    assert status(run.ask(SAM, hold_of(least))) == 403
    assert status(run.ask(LEE, hold_of(least))) == 200


def test_an_approval_of_what_was_asked_for_fills_no_seat_of_what_it_was_changed_into(run: Told) -> None:
    run.quote(WAS)
    run.hold(hold(needs=TWO))
    run.ask(LEE, hold())
    edit(run, SAM)
    anew(run, LESS, needs=TWO)

    assert seats(run) == ["sam"]
    assert status(run.ask(LEE, hold_of(LESS))) == 200


def test_of_one_turn_one_call_is_changed_one_declined_and_one_left_and_each_gets_its_end(run: Told) -> None:
    run.quote(WAS, quote("b"), quote("c"))
    run.hold(hold("a"), hold("b"), hold("c"))
    assert status(run.ask(SUE, hold("b"), "decline")) == 200
    assert status(edit(run)) == 200
    moved_on = run.ask(SUE, hold("c"))
    assert detail(moved_on) == "sam changed a call of this turn, so all of it is quoted anew. Look at it then."
    run.quote(LESS, quote("b"), quote("c"), attempt=2)
    assert status(run.ask(SUE, hold("c"))) == 409, "and waits for policy's word then"
    run.hold(hold("c"), attempt=2)
    assert status(run.ask(SUE, hold("c"))) == 200

    decided = [(fact.call_id, fact.decision, fact.edited is not None) for fact in run.history.all(CallDecided)]
    assert decided == [("b", "decline", False), ("a", "approve", True), ("c", "approve", False)]
    run.say(
        TurnForwarded(
            turn=1,
            attempt=2,
            pack=PACK,
            verdicts=[_verdict(LESS), _verdict(quote("b"), "declined"), _verdict(quote("c"))],
        )
    )
    run.wait(hours=48)
    assert run.look() is None


def test_a_call_that_was_left_in_a_changed_turn_expires_by_its_new_hold(run: Told) -> None:
    run.quote(WAS, quote("c"))
    run.hold(hold("a"), hold("c"))
    edit(run)
    run.wait(hours=23)
    run.quote(LESS, quote("c"), attempt=2)
    run.hold(hold("c"), attempt=2)
    run.wait(hours=2)

    assert run.look() is None, "the first hold's timer finds the second one, which has time"
    run.wait(hours=22)
    assert run.look() == HoldExpired(turn=1, call_ids=["c"], hands_over=True)


def test_it_is_asked_what_a_change_would_do_only_of_what_is_held_now(run: Told, held: Event) -> None:
    outcome = domain.decide(run.history, request(hold(), edited=EDIT), principal(SAM), run.now)

    assert outcome == MayChange(WAS, Needs(), held)
