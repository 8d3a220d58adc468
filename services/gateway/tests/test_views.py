"""What a run looks like from outside, fact by fact."""

from contracts.facts import CustomerSaid, HoldExpired, RunCancelled, RunErased, RunTakenOver, TurnRefused
from contracts.parts import CallQuote, Needs
from gateway.console import words
from gateway.folding import evolve, fold
from gateway.held import HeldCall, Seat
from gateway.redaction import Redaction
from gateway.shown import Sight
from gateway.views import Moved, RunView

from .facts import (
    ALEX,
    LEE,
    PACK,
    SAM,
    SUE,
    decided,
    ended,
    executed,
    forwarded,
    held,
    proposed,
    quoted,
    read,
    refund,
    replied,
    started,
    story_from_the_hold,
    story_to_the_hold,
)
from .told import Told

POUNDS = 18000
MONEY = refund("c-2")


def test_nothing_is_known_of_a_run_without_facts() -> None:
    assert fold(()) is None


def test_a_run_that_has_begun_says_what_it_works_on_and_who_asked() -> None:
    view = Told(started()).view

    assert (view.run, view.ticket, view.status, view.steps) == ("TCK-2004-1", "TCK-2004", "running", 0)
    assert view.requested_by == ALEX


def test_a_held_refund_waits_with_its_digest_its_effect_and_what_it_needs() -> None:
    view = Told(*story_to_the_hold()).view

    [hold] = view.holds
    assert view.status == "awaiting_approval"
    assert (hold.turn, hold.call_id, hold.hold.digest) == (2, "c-2", MONEY.digest)
    assert hold.quote.effect is not None
    assert hold.quote.effect.amount_minor == POUNDS
    assert view.at_stake == (Moved(currency="GBP", amount_minor=POUNDS),)
    assert view.moved == ()


def test_each_model_call_is_a_step_and_its_cost_adds_up() -> None:
    view = Told(*story_to_the_hold(), *story_from_the_hold()).view

    assert view.steps == 3
    assert view.cost_micro_usd == 2 * 8120 + 5100
    assert (view.usage.input, view.usage.output) == (2 * 1812 + 2400, 2 * 164 + 90)


def test_an_approved_refund_is_money_moved_and_the_run_ends_resolved() -> None:
    view = Told(*story_to_the_hold(), *story_from_the_hold()).view

    assert view.status == "resolved"
    assert view.moved == (Moved(currency="GBP", amount_minor=POUNDS),)
    assert view.holds == ()
    assert view.ended_at is not None
    assert view.reply is not None


def test_a_declined_refund_moves_no_money() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, decision="decline", note="worn"))
    assert told.view.status == "running"

    told.say(
        forwarded(2, MONEY, declined=("c-2",)),
        executed(2, ("c-2", "A person declined this: worn")),
        replied(),
        ended(),
    )

    assert told.view.moved == ()


def test_a_repeated_or_failed_refund_moves_no_money() -> None:
    for result in ({"duplicate": True}, {"is_error": True}):
        told = Told(*story_to_the_hold(), decided(2, MONEY), forwarded(2, MONEY))
        told.say(executed(2, ("c-2", "not now"), **result))
        assert told.view.moved == ()


def test_a_hold_for_two_waits_until_two_have_approved_one_of_them_a_lead() -> None:
    needs = Needs(role="approver", people=2, one_of_role="lead")
    told = Told(*story_to_the_hold()[:-1], held(2, MONEY, needs=needs))

    told.say(decided(2, MONEY, SAM))
    assert len(told.view.holds) == 1
    told.say(decided(2, MONEY, SUE))
    assert len(told.view.holds) == 1
    told.say(decided(2, MONEY, LEE))
    assert told.view.holds == ()


def test_a_call_that_is_held_again_keeps_who_approved_that_very_effect() -> None:
    needs = Needs(role="approver", people=2)
    told = Told(*story_to_the_hold()[:-1], held(2, MONEY, needs=needs), decided(2, MONEY, SAM))

    told.say(quoted(2, MONEY, attempt=2), held(2, MONEY, needs=needs))
    assert [seat.by for call in told.view.holds for seat in call.seats] == [SAM]

    other = refund("c-2", amount=9000)
    told.say(quoted(2, other, attempt=3), held(2, other, needs=needs))
    assert [seat.by for call in told.view.holds for seat in call.seats] == []


def test_two_held_calls_wait_for_a_decision_each() -> None:
    one, two, order = refund("a", 6000), refund("b", 7000), read("r")
    told = Told(
        started(),
        proposed(1, ("a", "issue_refund", {}), ("b", "issue_refund", {}), ("r", "get_order", {})),
        quoted(1, one, two, order),
        held(1, one, two, will_run=("r",)),
    )
    assert [call.call_id for call in told.view.holds] == ["a", "b"]
    assert [quote.call_id for quote in told.view.others] == ["r"]

    assert told.view.at_stake == (Moved(currency="GBP", amount_minor=13000),)

    told.say(decided(1, two, decision="decline", note="no"))

    assert told.view.at_stake == (Moved(currency="GBP", amount_minor=6000),)
    assert [call.call_id for call in told.view.holds] == ["a"]
    assert told.view.status == "awaiting_approval"


def test_an_expired_hold_no_longer_waits() -> None:
    told = Told(*story_to_the_hold(), HoldExpired(turn=2, call_ids=["c-2"]))

    assert told.view.holds == ()
    assert told.view.status == "running"


def test_a_refused_turn_lets_the_run_go_on() -> None:
    told = Told(*story_to_the_hold()[:-1])
    told.say(
        TurnRefused(
            turn=2, attempt=1, pack=PACK, rule="refund.above_last_tier", results=executed(2, ("c-2", "no")).results
        )
    )

    assert told.view.status == "running"
    assert "refund.above_last_tier" in told.view.last_step


def less(amount: int = 10000) -> CallQuote:
    """What the held refund comes to when a person lowers it."""
    return refund("c-2", amount).model_copy(update={"edited": MONEY.digest})


def refused(rule: str = "stopped", attempt: int = 2) -> TurnRefused:
    results = executed(2, ("c-2", "It is stopped. Nothing was done."), is_error=True).results
    return TurnRefused(turn=2, attempt=attempt, pack=PACK, rule=rule, results=results)


def test_an_approval_with_changes_is_shown_by_what_it_came_to() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, edited=less().arguments), quoted(2, less(), attempt=2))
    [call] = told.view.held
    assert call.came_to == less()
    assert words.decided_amount([call]) == "£100.00 of £180.00 asked"

    told.say(forwarded(2, less()), executed(2, ("c-2", "Refunded £100.00.")), ended())
    assert told.view.moved == (Moved(currency="GBP", amount_minor=10000),)
    assert words.decided_amount(told.view.held) == "£100.00 of £180.00 asked"
    told.say(RunErased(by=LEE))
    assert words.decided_amount(told.view.held) == "£100.00 of £180.00 asked"
    assert "0937" not in told.view.model_dump_json()


async def test_what_a_change_came_to_names_no_customer_to_who_may_not_see_them() -> None:
    effect = less().effect
    assert effect is not None
    named = less().model_copy(update={"effect": effect.model_copy(update={"summary": "Refund to Tom Whitfield"})})
    told = Told(*story_to_the_hold(), decided(2, MONEY, edited=named.arguments), quoted(2, named, attempt=2))
    assert "Whitfield" in str(told.view.held)

    assert "Whitfield" not in str((await Sight(Redaction(b"k" * 32, "GBP")).run(told.view)).held)


def test_an_approval_with_changes_that_waits_for_another_person_is_shown_by_what_it_came_to() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, edited=less().arguments), quoted(2, less(), attempt=2))
    told.say(held(2, less(), attempt=2, needs=Needs(people=2)), decided(2, less(), LEE))
    assert words.decided_amount(told.view.held) == "£100.00 of £180.00 asked"


def test_what_was_approved_as_it_was_asked_for_is_one_amount_and_so_is_what_was_declined() -> None:
    for decision in ("approve", "decline"):
        told = Told(*story_to_the_hold(), decided(2, MONEY, decision=decision, note="worn"))
        assert words.decided_amount(told.view.held) == "£180.00"


def test_what_is_refused_after_its_approval_moved_nothing_and_says_so() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY), quoted(2, MONEY, attempt=2), refused(), ended())
    [call] = told.view.held
    assert (call.came_to_nothing, call.refused) == (True, "stopped")
    assert words.decided_amount([call]) == "nothing of £180.00 asked"
    assert told.view.moved == ()


def test_what_failed_after_its_approval_moved_nothing_either() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY), forwarded(2, MONEY))
    told.say(executed(2, ("c-2", "The card is closed."), is_error=True))
    [call] = told.view.held
    assert (call.came_to_nothing, call.failed) == (True, True)


def test_what_is_declined_and_then_refused_along_with_its_turn_was_declined() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, decision="decline", note="worn"), refused(attempt=1))
    [call] = told.view.held
    assert not call.came_to_nothing


def test_what_is_refused_while_half_of_it_is_approved_waits_no_longer() -> None:
    told = Told(*story_to_the_hold()[:-1], held(2, MONEY, needs=Needs(people=2)), decided(2, MONEY))
    assert len(told.view.holds) == 1
    told.say(refused("policy-changed", attempt=1))
    assert not told.view.held[0].pending


def test_what_was_paid_behind_a_cancel_is_recorded_but_the_run_stays_cancelled() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY), forwarded(2, MONEY), RunCancelled(by=ALEX, reason="oops"))

    told.say(executed(2, ("c-2", "Refunded.")))

    assert told.view.status == "cancelled"
    assert told.view.reason == "oops"
    assert told.view.moved == (Moved(currency="GBP", amount_minor=POUNDS),)


def test_a_chat_waits_for_the_customer_after_each_reply() -> None:
    told = Told(started(channel="chat"), replied("Hello Tom."))
    assert told.view.status == "awaiting_customer"

    told.say(CustomerSaid(text="And now?", message_id="m-1"))

    assert told.view.status == "running"


def test_a_chat_goes_on_while_a_message_that_came_during_an_answer_is_unanswered() -> None:
    told = Told(started(channel="chat"), CustomerSaid(text="By the way", message_id="m-1"), replied("Hello Tom."))
    assert told.view.status == "running"

    told.say(replied("As to the other thing: yes."))
    assert told.view.status == "awaiting_customer"

    told.say(CustomerSaid(text="And now?", message_id="m-2"), CustomerSaid(text="Hm?", message_id="m-3"))
    assert told.view.status == "running"
    look = read("c-1")
    told.say(proposed(1, ("c-1", "get_order", {})), quoted(1, look), forwarded(1, look), executed(1, ("c-1", "Sent.")))
    told.say(replied("It is on its way."))
    assert told.view.status == "awaiting_customer"


def test_a_message_does_not_lift_a_hold() -> None:
    told = Told(started(channel="chat"), *story_to_the_hold()[1:], CustomerSaid(text="Hello?", message_id="m-1"))

    assert told.view.status == "awaiting_approval"
    assert len(told.view.holds) == 1


def test_a_run_taken_over_has_ended_for_the_agent() -> None:
    assert Told(started(), RunTakenOver(by=ALEX)).view.ended


def test_a_fact_seen_twice_changes_nothing() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())
    view = told.view

    for event in told.events:
        assert evolve(view, event) is view


def test_a_view_survives_being_stored() -> None:
    view = Told(*story_to_the_hold()).view

    assert RunView.model_validate_json(view.model_dump_json()) == view


def test_of_an_erased_run_the_view_keeps_what_was_done_and_nothing_of_whom() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())
    before = told.view
    told.say(RunErased(by=LEE))

    view = told.view
    said = view.model_dump_json()
    for word in ("Whitfield", "tom.", "Jacket", "Fell", "ending 0937", "Return scanned", "amount_pence"):
        assert word in before.model_dump_json(), word
        assert word not in said, word
    assert (view.status, view.moved, view.customer.id) == (before.status, before.moved, "C-1004")
    assert [call.hold for call in view.held] == [call.hold for call in before.held]
    assert [seat.by for call in view.held for seat in call.seats] == [SAM]


def test_whoever_adds_to_the_view_has_to_say_what_becomes_of_it_when_the_customer_is_erased() -> None:
    emptied = {
        RunView: "subject body customer reason handover reply last_step quotes quotes_before held along",
        HeldCall: "quote was came_to seats lapsed",
        Seat: "note",
    }
    kept = {
        RunView: "tenant run ticket channel profile model prompt_version policy_pack toolset limits requested_by "
        "started_at started_event updated_at sequence ordinal status ended_at steps cost_micro_usd uncertain_micro_usd "
        "usage turn moved agent locale written read dropped undone",
        HeldCall: "turn attempt call_id hold held_at expires_at expired escalate_at reminded_at escalated_to "
        "changed_by refused failed",
        Seat: "by decision edited at carried",
    }
    for part, fields in emptied.items():
        assert set(part.model_fields) == set(f"{fields} {kept[part]}".split())
