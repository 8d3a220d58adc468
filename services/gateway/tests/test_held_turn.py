"""What a decision releases is what its button, its record and the lists name: the turn's total, with its parts."""

import re
from typing import Any

import pytest
from contracts.facts import Fact
from contracts.kill_switch import Stop
from contracts.parts import CallQuote, Effect, Needs, Person
from gateway import domain, shapes
from gateway.audit_run import of_run
from gateway.console import cards, pages, queue, render, words
from gateway.histories import History
from gateway.obstacles import Circumstances, obstacles
from gateway.tickets import TicketView
from gateway.views import Moved

from .facts import (
    ALEX,
    ISSUER,
    LEE,
    SAM,
    SUE,
    TOM,
    decided,
    ended,
    executed,
    forwarded,
    held,
    proposed,
    quoted,
    read,
    refund,
    refused,
    replied,
    started,
)
from .test_domain import asker
from .told import Told

ZONE = "Europe/London"
ONE, TWO = refund("c-1", 4000, "ORD-1"), refund("c-2", 4000, "ORD-2")
NONE = Circumstances()


def dollars(call_id: str, minor: int) -> CallQuote:
    effect = Effect(summary=f"Refund ${minor / 100:.2f}", object="ORD-9", amount_minor=minor, currency="USD")
    return refund(call_id, minor, "ORD-9").model_copy(update={"effect": effect})


def turn(*calls: CallQuote, holds: tuple[CallQuote, ...], needs: Needs | None = None, by: Person = ALEX) -> list[Fact]:
    asked = [(call.call_id, call.tool, call.arguments) for call in calls]
    return [started(by=by), proposed(1, *asked), quoted(1, *calls), held(1, *holds, needs=needs)]


def along() -> Told:
    """Two equal refunds of which the second is held, and the first would run unasked."""
    return Told(*turn(ONE, TWO, holds=(TWO,)))


def both(needs: Needs | None = None) -> Told:
    return Told(*turn(refund("c-1", 9000, "ORD-1"), refund("c-2", 8000, "ORD-2"), holds=BOTH, needs=needs))


BOTH = (refund("c-1", 9000, "ORD-1"), refund("c-2", 8000, "ORD-2"))


def page(told: Told, by: Person = SAM, circumstances: Circumstances = NONE) -> str:
    found = cards.card(told.view, told.events, asker(by))
    assert found is not None
    return str(render.part("card.html", "card", found, asker(by), ZONE, told.at, circumstances))


def buttons(told: Told, by: Person = SAM, circumstances: Circumstances = NONE) -> list[str]:
    return re.findall(r'data-do="approve"[^>]*>([^<]+)<', page(told, by, circumstances))


def shown(told: Told, by: Person = SAM, circumstances: Circumstances = NONE) -> dict[str, Any]:
    return shapes.approval(told.view, asker(by), History(), circumstances).model_dump(mode="json")


# Before it is decided


def test_the_button_of_one_held_call_names_all_that_its_turn_pays() -> None:
    told = along()

    assert buttons(told) == ["Approve £80.00"]
    assert "£80.00 in 2 payments" in page(told)
    assert "Refund £40.00 to Mastercard ending 0937" in page(told)
    assert told.view.at_stake == (Moved(currency="GBP", amount_minor=8000),)
    assert told.view.last_step.startswith("£80.00 in 2 calls: ")


def test_the_first_of_two_held_calls_is_told_to_release_nothing_yet_and_the_last_all_of_it() -> None:
    told = both()
    assert buttons(told) == ["Approve £90.00 of £170.00", "Approve £80.00 of £170.00"]
    assert page(told).count("Releases nothing before 1 other held call of this turn is decided.") == 2
    assert shown(told)["holds"][0]["releases"] == {
        "now": False,
        "total": [{"currency": "GBP", "amount_minor": 17000}],
        "waits_for": ["c-2"],
        "more_people": 0,
        "declining": [{"currency": "GBP", "amount_minor": 8000}],
    }

    told.say(decided(1, BOTH[0]))

    assert buttons(told, SUE) == ["Approve £170.00"]
    assert "It is approved, and runs with this." in page(told, SUE)


def test_where_one_was_declined_the_last_decision_releases_the_rest() -> None:
    told = both()
    told.say(decided(1, BOTH[0], decision="decline", note="worn"))

    assert buttons(told, SUE) == ["Approve £80.00"]
    assert told.view.at_stake == (Moved(currency="GBP", amount_minor=8000),)
    assert "It was declined, and does not run." in page(told, SUE)


def test_what_was_declined_stays_out_of_the_sum_when_the_turn_is_held_anew() -> None:
    less = refund("c-2", 5000, "ORD-2").model_copy(update={"edited": BOTH[1].digest})
    told = both(Needs(people=2))
    told.say(decided(1, BOTH[0], decision="decline"), decided(1, BOTH[1], SAM, edited=less.arguments))
    told.say(quoted(1, BOTH[0], less, attempt=2), held(1, less, attempt=2, needs=Needs(people=2)))

    assert told.view.at_stake == (Moved(currency="GBP", amount_minor=5000),)


def test_a_decline_is_told_what_of_the_turn_it_pays_all_the_same() -> None:
    assert "The rest of the turn still runs and pays £40.00" in page(along())
    assert "Decline £40.00" in page(along())


def test_the_first_of_two_people_is_told_that_nothing_is_released_before_the_second() -> None:
    told = Told(*turn(refund("c-1", 90_000), holds=(refund("c-1", 90_000),), needs=Needs(people=2, one_of_role="lead")))

    assert buttons(told) == ["Approve £900.00"]
    assert "Releases nothing before 1 more person has approved. Then it releases £900.00." in page(told)
    told.say(decided(1, refund("c-1", 90_000)))
    assert "Releases nothing" not in page(told, LEE)


def test_each_currency_is_a_sum_of_its_own() -> None:
    told = Told(*turn(ONE, dollars("c-2", 1200), holds=(dollars("c-2", 1200),)))

    assert buttons(told) == ["Approve £40.00 + $12.00"]
    assert queue.line(ticket(told), asker(SAM), told.at).at_stake == "£40.00 + $12.00"


def test_reads_failures_and_repetitions_of_the_turn_are_no_part_of_its_sum() -> None:
    fails = ONE.model_copy(update={"call_id": "c-3", "effect": None, "will_fail": "There is no such order."})
    repeated = ONE.model_copy(update={"call_id": "c-4", "duplicate_of": "RF-1"})
    told = Told(*turn(read("c-0"), fails, repeated, TWO, holds=(TWO,)))

    assert buttons(told) == ["Approve £40.00"]
    assert [(part["call_id"], part["state"]) for part in shown(told)["held_turn"]["parts"]] == [
        ("c-0", "along"),
        ("c-3", "fails"),
        ("c-4", "repeated"),
        ("c-2", "waits"),
    ]


def test_an_approval_with_less_names_what_the_turn_then_pays() -> None:
    told = along()
    less = refund("c-2", 1000, "ORD-2").model_copy(update={"edited": TWO.digest})
    [call] = told.view.holds

    found = domain.edited(told.view, call, TWO, less, asker(SAM))

    assert cards.label(found) == "Approve £50.00 instead of £80.00"


def test_the_api_has_the_total_its_parts_and_what_each_decision_releases() -> None:
    found = shown(along())

    assert found["total"] == found["held_turn"]["total"] == [{"currency": "GBP", "amount_minor": 8000}]
    assert [(part["call_id"], part["held"], part["amount_minor"]) for part in found["held_turn"]["parts"]] == [
        ("c-1", False, 4000),
        ("c-2", True, 4000),
    ]
    assert found["holds"][0]["releases"]["now"]
    assert shapes.run(along().view).held_turn == shapes.held_turn(along().view)


def ticket(told: Told) -> TicketView:
    return TicketView(
        ticket="TCK-2004",
        status="awaiting_approval",
        channel="ticket",
        customer=TOM,
        subject="Jacket",
        body="Please",
        opened_at=told.at,
        latest=told.view,
        run=told.view.run,
    )


# Once it is decided


def done(told: Told) -> Told:
    told.say(
        decided(1, TWO), forwarded(1, ONE, TWO), executed(1, ("c-1", "Paid."), ("c-2", "Paid.")), replied(), ended()
    )
    return told


def test_what_was_decided_is_listed_with_what_it_paid_all_together() -> None:
    told = done(along())
    closed = cards.card(told.view, told.events, asker(SAM))

    assert closed is not None
    assert closed.amount == "£80.00"
    assert closed.title.startswith("£80.00 in 2 calls: ")
    assert pages.by(told.view, asker(SAM)) == [("TCK-2004", "approved", "£80.00")]
    assert told.view.moved == told.view.came_to


def test_two_calls_of_a_turn_that_one_person_approved_are_one_decision_in_their_list() -> None:
    told = both()
    told.say(decided(1, BOTH[0]), decided(1, BOTH[1]), forwarded(1, *BOTH))

    assert pages.by(told.view, asker(SAM)) == [("TCK-2004", "approved", "£170.00")]


def test_what_of_the_turn_was_not_carried_out_is_not_in_what_it_came_to() -> None:
    declined = both()
    declined.say(decided(1, BOTH[0], decision="decline"), decided(1, BOTH[1]), forwarded(1, *BOTH, declined=("c-1",)))
    failed = along()
    closed, paid = (executed(1, one, is_error=one[0] == "c-1") for one in (("c-1", "Closed."), ("c-2", "Paid.")))
    failed.say(decided(1, TWO), forwarded(1, ONE, TWO))
    failed.say(paid.model_copy(update={"results": [*closed.results, *paid.results]}))
    stopped = along()
    stopped.say(decided(1, TWO), refused(1, "stopped", "c-1", "c-2"))

    assert words.turn_amount(declined.view) == "£80.00 of £170.00 asked"
    assert words.turn_amount(failed.view) == "£40.00 of £80.00 asked"
    assert words.turn_amount(stopped.view) == "nothing of £80.00 asked"


def test_the_records_row_and_the_runs_page_name_what_a_decision_released() -> None:
    told = done(along())
    [row] = [row for row in of_run(told.events)[0] if row.kind == "approvals.call-decided"]
    [line] = [row for row in pages.rows_of(told.events) if row.title == "Approved by sam"]

    assert (row.amount_minor, row.released_minor) == (4000, 8000)
    assert row.releases.startswith("£80.00 in 2 calls: Refund £40.00")
    assert row.releases.count("Refund £40.00") == 2
    assert line.detail == f"releases {row.releases}"


def test_of_two_decisions_the_first_is_on_record_as_releasing_nothing_yet() -> None:
    told = both()
    told.say(decided(1, BOTH[0]), decided(1, BOTH[1], SUE), forwarded(1, *BOTH))

    first, last = (row for row in of_run(told.events)[0] if row.kind == "approvals.call-decided")

    assert (first.released_minor, first.releases) == (0, "nothing yet: 1 more of its turn to be decided")
    assert (last.released_minor, last.releases.startswith("£170.00 in 2 calls")) == (17_000, True)


def test_a_decline_that_lets_the_rest_run_is_on_record_with_what_that_pays() -> None:
    told = along()
    told.say(decided(1, TWO, decision="decline"), forwarded(1, ONE, TWO, declined=("c-2",)))
    [row] = [row for row in of_run(told.events)[0] if row.kind == "approvals.call-decided"]

    assert (row.amount_minor, row.released_minor, row.releases) == (4000, 4000, "£40.00")


def test_an_approval_with_changes_is_on_record_with_what_the_turn_came_to() -> None:
    less = refund("c-2", 1000, "ORD-2").model_copy(update={"edited": TWO.digest})
    told = along()
    told.say(decided(1, TWO, edited=less.arguments), quoted(1, ONE, less, attempt=2), forwarded(1, ONE, less))
    [row] = [row for row in of_run(told.events)[0] if row.kind == "approvals.call-decided"]

    assert (row.amount_minor, row.asked_minor, row.released_minor) == (1000, 4000, 5000)


# What stands in the way


def test_a_stop_is_said_on_the_card_and_takes_its_approval_away_and_leaves_the_decline() -> None:
    met = Circumstances((Stop("issue_refund", None, "s-1", "a wave", "ada"),))
    told = along()

    said = page(told, circumstances=met)
    [hold] = shown(told, circumstances=met)["holds"]

    assert 'data-obstacle="stopped"' in said
    assert "issue_refund is stopped for now. ada set it: “a wave”." in said
    assert buttons(told, circumstances=met) == []
    assert 'value="decline"' in said
    assert [one["kind"] for one in hold["obstacles"]] == ["stopped"]
    assert (hold["you"]["may"], "stopped for now" in hold["you"]["why"]) == (False, True)


@pytest.mark.parametrize(
    ("above", "approve", "change"), [(None, False, False), (7000, False, True), (8000, True, True)]
)
def test_a_stop_above_an_amount_leaves_the_approval_with_less(above: int | None, approve: bool, change: bool) -> None:
    money = refund("c-2", 8000)
    told = Told(*turn(money, holds=(money,)))
    met = Circumstances((Stop(None, above, "s-1", "a wave", "ada"),))

    said = page(told, circumstances=met)

    assert (buttons(told, circumstances=met) != []) is approve
    assert ("Approve less" in said or "Approve with changes" in said) is change


def known(*people: Person) -> Circumstances:
    return Circumstances(known=people)


@pytest.mark.parametrize(
    ("needs", "by", "people", "says"),
    [
        (Needs(people=2, one_of_role="lead"), ALEX, (SAM, LEE), None),
        (Needs(role="lead", people=2), ALEX, (SAM, SUE, LEE), "It needs 2 leads, and only lee could approve it."),
        (Needs(role="lead"), LEE, (SAM, LEE), "nobody here could approve it. Nobody can decline it either"),
        (Needs(people=2), SAM, (SAM, SUE), "only sue could approve it. It can be declined, or it will expire."),
        (Needs(amount_minor=9000), ALEX, (SAM.model_copy(update={"limit_minor": 8000}),), "It can be declined"),
    ],
)
def test_a_need_that_nobody_can_meet_is_said_on_the_card(
    needs: Needs, by: Person, people: tuple[Person, ...], says: str | None
) -> None:
    money = refund("c-1", 9000)
    told = Told(*turn(money, holds=(money,), needs=needs, by=by))
    [call] = told.view.holds

    found = obstacles(told.view, call, known(*people))

    assert [one.kind for one in found] == (["nobody"] if says else [])
    assert says is None or says in found[0].detail
    assert ("Nobody can release this" in page(told, circumstances=known(*people))) is (says is not None)
    assert obstacles(told.view, call, NONE) == [], "it is not known who decides"


def test_who_has_approved_counts_for_what_can_still_be_met() -> None:
    sid = Person(subject="sid", issuer=ISSUER, role="approver")
    money = refund("c-1", 9000)
    told = Told(*turn(money, holds=(money,), needs=Needs(people=2)), decided(1, money, sid))
    [call] = told.view.holds

    assert obstacles(told.view, call, known(SAM)) == []
    assert obstacles(told.view, call, known()) != []
