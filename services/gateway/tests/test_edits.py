"""Approving with changes: the form's fields, what is typed, and whose approval stands for what."""

import pytest
from contracts.facts import Fact, HoldEscalated
from contracts.identity import Principal
from contracts.parts import CallQuote, Effect, Needs, QuoteFacts
from gateway import domain
from gateway.console import cards, edits, words
from gateway.console.trajectory import Trajectory
from gateway.edits import in_words
from gateway.held import HeldCall
from gateway.problems import Problem
from gateway.views import RunView

from .conftest import World
from .facts import ALEX, LEE, SAM, SUE, decided, forwarded, held, quoted, refund, story_to_the_hold
from .test_api import problem
from .test_domain import asker
from .told import Told

HELD = refund("c-2")


def less(amount: int = 12000, before: int = 0) -> CallQuote:
    return refund("c-2", amount, before=before).model_copy(update={"edited": HELD.digest})


def view_of(*facts: Fact) -> RunView:
    return Told(*facts).view


def call_of(view: RunView) -> HeldCall:
    [call] = view.holds
    return call


def test_an_amount_is_typed_in_the_currency_and_what_the_call_is_about_stays() -> None:
    by_name = {field.name: field for field in edits.fields(HELD)}
    assert (by_name["amount_pence"].kind, by_name["amount_pence"].value) == ("money", "180.00")
    assert by_name["reason"].kind == "text"
    assert by_name["order_reference"].kind == "fixed"
    changed = edits.arguments(HELD, {"argument.amount_pence": "£120", "argument.order_reference": "ORD-1"})
    assert changed == HELD.arguments | {"amount_pence": 12000}
    assert in_words(HELD, changed) == "amount £120.00 instead of £180.00"


@pytest.mark.parametrize(
    ("typed", "minor"),
    [("120", 12000), ("120.5", 12050), ("£1,120.00", 112000), (" GBP 3 ", 300), ("0.01", 1), ("12.", 1200)],
)
def test_amounts_are_read_as_people_write_them(typed: str, minor: int) -> None:
    assert words.minor(typed, "GBP") == minor


@pytest.mark.parametrize("typed", ["", "1,20", "12.345", "-5", "1e3", "abc", "٣", "1 000"])
def test_an_amount_that_is_not_clear_is_no_amount(typed: str) -> None:
    assert words.minor(typed, "GBP") is None
    with pytest.raises(Problem, match="422"):
        edits.arguments(HELD, {"argument.amount_pence": typed})


def test_yen_have_no_minor_units() -> None:
    assert words.minor("¥1,200", "JPY") == 1200
    assert words.minor("12.5", "JPY") is None


def test_francs_of_a_currency_without_a_minor_unit_are_whole() -> None:
    assert words.money(18_000, "XOF").endswith("18,000")
    assert words.minor("18,000", "XOF") == 18_000
    assert words.minor("180.00", "XOF") is None


def outcome(now: CallQuote, by: Principal | None = None, needs: Needs | None = None) -> domain.Edited:
    view = view_of(*story_to_the_hold()[:-1], held(2, HELD, needs=needs))
    return domain.edited(view, call_of(view), HELD, now, by or asker(SAM))


def test_less_money_on_the_same_order_is_what_the_approval_stands_for() -> None:
    lower = outcome(less())
    assert (lower.refused, lower.stands) == (None, True)
    assert cards.label(lower) == "Approve £120.00 instead of £180.00"


def test_more_money_another_order_and_what_fails_cannot_be_approved() -> None:
    stopped = less().model_copy(update={"facts": QuoteFacts(stopped="issue_refund is stopped for now.")})
    other = refund("c-2", 12000, order="ORD-10041").model_copy(update={"edited": HELD.digest})
    failing = less().model_copy(update={"will_fail": "only £90.00 is left"})
    for now, why in (
        (less(20000), "that was asked for"),
        (other, "ORD-10041"),
        (failing, "only £90.00"),
        (stopped, "is stopped"),
        (HELD, "Nothing was changed"),
    ):
        found = outcome(now)
        assert not found.stands
        assert why in str(found.refused)


def test_who_may_not_release_the_call_may_not_release_it_changed() -> None:
    assert "You started this run" in str(outcome(less(), asker(ALEX.model_copy(update={"role": "approver"}))).refused)
    assert "needs the role lead" in str(outcome(less(), needs=Needs(role="lead")).refused)


def test_the_last_seat_of_a_lead_is_nobodys_concern_who_changes_the_call() -> None:
    needs = Needs(people=2, one_of_role="lead")
    view = view_of(*story_to_the_hold()[:-1], held(2, HELD, needs=needs), decided(2, HELD, SUE))
    assert domain.edited(view, call_of(view), HELD, less(), asker(SAM)).stands


def test_a_button_that_does_nothing_names_nothing() -> None:
    failing = HELD.model_copy(update={"effect": None, "will_fail": "only £90.00 is left", "digest": "1" * 64})
    found = outcome(failing)
    assert cards.label(found) == "Approve with these changes"
    [line] = words.moved_on(found.was, found.now)
    assert line == words.Change("Would do", "Refund £180.00 to Mastercard ending 0937", "nothing: it would fail")


def test_an_own_limit_is_held_against_what_is_left_of_the_amount() -> None:
    limited = asker(SAM.model_copy(update={"limit_minor": 15000}))
    assert outcome(less(), limited).stands
    assert "it is £160.00 to this customer today; your own limit is £150.00" in str(
        outcome(less(16000), limited).refused
    )


def test_an_own_limit_is_held_against_what_the_customer_is_refunded_today_all_together() -> None:
    limited, needs = asker(SAM.model_copy(update={"limit_minor": 15000})), Needs(amount_minor=28000)
    assert outcome(less(5000), limited, needs=needs).stands
    assert "it is £150.01 to this customer today" in str(outcome(less(5001), limited, needs=needs).refused)


def test_a_call_without_less_money_is_held_anew() -> None:
    effect = Effect(summary="Cancel SUB-1 at the end of the month", object="SUB-1")
    was = HELD.model_copy(update={"effect": effect})
    now = was.model_copy(update={"arguments": {"reason": "other"}, "digest": "0" * 64, "edited": was.digest})
    view = view_of(*story_to_the_hold())
    found = domain.edited(view, call_of(view), was, now, asker(SAM))
    assert (found.refused, found.stands) == (None, False)
    assert "somebody else" in cards.label(found)


# The stale world


def test_what_changed_since_it_was_shown_stands_beside_it_and_an_approval_of_that_has_lapsed() -> None:
    now = refund("c-2", 15000, before=3000)
    view = view_of(
        *story_to_the_hold(), decided(2, HELD), forwarded(2, HELD), quoted(2, now, attempt=2), held(2, now, attempt=2)
    )
    call = call_of(view)
    assert call.was == HELD
    assert [seat.by for seat in call.lapsed] == [SAM]
    assert call.seats == ()
    changes = {change.name: (change.was, change.now) for change in words.moved_on(HELD, now)}
    assert changes["Amount"] == ("£180.00", "£150.00")
    assert changes["Refundable before it"] == ("£180.00", "£150.00")


def test_an_approval_stands_where_the_effect_is_the_same() -> None:
    needs = Needs(people=2)
    view = view_of(
        *story_to_the_hold()[:-1],
        held(2, HELD, needs=needs),
        decided(2, HELD),
        quoted(2, HELD, attempt=2),
        held(2, HELD, needs=needs, attempt=2),
    )
    call = call_of(view)
    assert (call.was, call.lapsed) == (None, ())
    assert [(seat.by, seat.carried) for seat in call.seats] == [(SAM, True)]
    assert words.seats_left(call) == "needs 2 people, approvers or above; sam has approved"


def test_an_approval_with_changes_stands_for_what_they_came_to_and_the_earlier_ones_do_not() -> None:
    needs = Needs(people=2, one_of_role="lead")
    view = view_of(
        *story_to_the_hold()[:-1],
        held(2, HELD, needs=needs),
        decided(2, HELD, SUE),
        decided(2, HELD, SAM, edited=less().arguments),
        quoted(2, less(), attempt=2),
        held(2, less(), needs=needs, attempt=2),
    )
    call = call_of(view)
    assert [(seat.by, seat.carried) for seat in call.seats] == [(SAM, True)]
    assert [seat.by for seat in call.lapsed] == [SUE]
    assert call.pending
    assert words.seats_left(call) == "needs 2 people, one of them a lead; sam has approved"
    assert domain.may_decide(view, call, asker(LEE), "approve") is None
    assert "Another person" in str(domain.may_decide(view, call, asker(SAM), "approve"))


def test_who_changed_it_into_what_is_held_does_not_release_it() -> None:
    view = view_of(
        *story_to_the_hold(),
        decided(2, HELD, SAM, edited={}),
        quoted(2, less(), attempt=2),
        held(2, less(), attempt=2, edited_by=SAM),
    )
    assert "You changed this call" in str(domain.may_decide(view, call_of(view), asker(SAM), "decline"))
    assert domain.may_decide(view, call_of(view), asker(SUE), "approve") is None


def test_the_trajectory_says_what_a_person_changed_and_what_the_world_did() -> None:
    events = Told(
        *story_to_the_hold(),
        decided(2, HELD, LEE, edited=less().arguments),
        quoted(2, refund("c-2", 12000, before=3000), attempt=2),
    )
    trajectory = Trajectory()
    for event in events.events:
        trajectory.see(event)
    rows = list(trajectory.rows.values())
    assert "amount £120.00 instead of £180.00" in next(row for row in rows if "lee" in row.title).detail
    box = next(row.turn for row in rows if row.turn and row.turn.number == 2)
    assert "amount was £180.00, is £120.00" in box.strips[-1].detail


def test_the_queue_says_for_whom_a_call_waits() -> None:
    one = call_of(view_of(*story_to_the_hold()))
    assert words.awaited(one) == "An approver"
    passed_on = view_of(*story_to_the_hold(), HoldEscalated(turn=2, call_ids=["c-2"], role="lead"))
    assert words.awaited(call_of(passed_on)) == "A lead"
    assert passed_on.last_step == "Passed on to leads: Refund £180.00 to Mastercard ending 0937"
    two = view_of(*story_to_the_hold()[:-1], held(2, HELD, needs=Needs(people=2)), decided(2, HELD))
    assert words.awaited(call_of(two)) == "1 more person"


# Over HTTP


async def test_a_changed_call_is_quoted_with_the_askers_token(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    answer = {"status": 200, "was": HELD.model_dump(mode="json"), "quote": less().model_dump(mode="json")}
    asked = await world.answering("tools-shop", "ask.tools.quote", answer)
    wanted = {"turn": 2, "call_id": "c-2", "edited": less().arguments}
    async with world.client("sam") as sam, world.client("alex") as alex, world.client("gus") as gus:
        quote = (await sam.post("/v1/runs/TCK-2004-1/quotes", json=wanted)).json()
        problem(await alex.post("/v1/runs/TCK-2004-1/quotes", json=wanted), 403)
        problem(await gus.post("/v1/runs/TCK-2004-1/quotes", json=wanted), 404)
        problem(await sam.post("/v1/runs/TCK-2004-1/quotes", json=wanted | {"call_id": "c-9"}), 409)
    assert quote["you"] == {"may": True, "why": None}
    assert quote["quote"]["effect"]["amount_minor"] == 12000
    assert asked[0]["token"].count(".") == 2
    assert asked[0]["edited"] == less().arguments


async def test_what_the_tools_service_refuses_to_quote_is_said_in_its_words(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    no = {"status": 422, "title": "Not a call", "detail": "amount_pence has to be a whole number of pence."}
    await world.answering("tools-shop", "ask.tools.quote", no)
    async with world.client("sam") as sam:
        wanted = {"turn": 2, "call_id": "c-2", "edited": {"amount_pence": "much"}}
        said = problem(await sam.post("/v1/runs/TCK-2004-1/quotes", json=wanted), 422)
    assert "whole number" in said["detail"]
