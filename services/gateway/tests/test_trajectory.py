"""A run as rows: what each fact opens or changes, and that a page and a stream show the same."""

from datetime import UTC, datetime

import pytest
from contracts.events import Event, from_document
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid, Fact, HoldExpired, RunStarted, TurnRefused
from contracts.parts import Needs
from gateway.console import cards, pages, queue, render
from gateway.console.rows import Row
from gateway.console.trajectory import Trajectory
from gateway.folding import fold
from gateway.tickets import TicketView

from .facts import (
    ALEX,
    LEE,
    PACK,
    SAM,
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
    story_from_the_hold,
    story_to_the_hold,
)
from .test_domain import asker
from .told import Told

ZONE = "Europe/London"
MONEY = refund("c-2")


def rows(told: Told) -> list[Row]:
    trajectory = Trajectory()
    for event in told.events:
        trajectory.see(event)
    return list(trajectory.rows.values())


def html(row: Row) -> str:
    return str(render.part("row.html", "row", row, ZONE))


def titles(told: Told) -> list[str]:
    return [row.title for row in rows(told)]


def test_the_story_reads_from_top_to_bottom() -> None:
    assert titles(Told(*story_to_the_hold(), *story_from_the_hold())) == [
        "Run started",
        "Tom Whitfield",
        "Turn 1",
        "Turn 2",
        "Approved by sam",
        "Refund made",
        "Reply sent",
        "Run ended: resolved",
    ]


def test_who_typed_for_the_customer_is_named_beside_the_words() -> None:
    told = Told(started(channel="chat"), CustomerSaid(text="Any news?", message_id="m-1"))
    told.say(CustomerSaid(text="They ask again.", message_id="m-2", by=ALEX))
    *_, own, typed = rows(told)
    assert (own.title, own.detail) == ("Customer", "")
    assert (typed.title, typed.detail) == ("Customer", "typed by alex")
    assert "typed by alex" in html(typed)


def test_a_turn_is_one_row_that_its_quote_and_verdict_complete() -> None:
    told = Told(*story_to_the_hold())

    turn = rows(told)[-1].turn

    assert turn is not None
    assert turn.words == "The jacket came back unworn, so I refund it in full."
    assert [strip.word for strip in turn.strips] == ["Held"]
    page = html(rows(told)[-1])
    assert "−£180.00" in page
    assert "refundable" in page


def test_what_is_changed_keeps_its_place_and_says_by_which_fact() -> None:
    told, trajectory = Told(*story_to_the_hold()), Trajectory()
    opened = [trajectory.see(event) for event in told.events]

    assert [[row.id for row in changed] for changed in opened[-3:]] == [["e-6"], ["e-6"], ["e-6"]]
    assert opened[-1][0].opened == 6
    assert opened[-1][0].seq == 8


def test_reads_that_ran_fold_to_one_line() -> None:
    [row] = [row for row in rows(Told(*story_to_the_hold())) if row.title == "Turn 1"]

    assert "<details" in html(row)
    assert "get_order ORD-10042" in html(row)


def test_a_declined_call_is_not_shown_as_made() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, decision="decline", note="It was worn."))
    told.say(forwarded(2, MONEY, declined=("c-2",)), executed(2, ("c-2", "A person declined this: It was worn.")))

    assert titles(told)[-1] == "Declined by sam"
    assert rows(told)[-1].quoted == "It was worn."


def outcomes(told: Told) -> list[str]:
    """What the calls of the last turn are said to have come to."""
    turn = next(row.turn for row in reversed(rows(told)) if row.turn)
    return [line.outcome for line in turn.lines]


@pytest.mark.parametrize(
    ("no", "said"),
    [
        (decided(2, MONEY, decision="decline", note="It was worn."), "Declined"),
        (HoldExpired(turn=2, call_ids=["c-2"]), "Not decided in time"),
    ],
)
def test_what_people_did_not_release_is_no_error(no: Fact, said: str) -> None:
    told = Told(*story_to_the_hold(), no, forwarded(2, MONEY, declined=("c-2",)))
    told.say(executed(2, ("c-2", "This was declined, so it was not done."), is_error=True))
    assert outcomes(told) == [said]
    page = "".join(map(html, rows(told)))
    assert f"<summary>{said}</summary>" in page
    assert "Error" not in page
    assert "Refund not made" not in page


def test_what_policy_refused_is_no_error_either_and_what_failed_is() -> None:
    told = Told(*story_to_the_hold()[:-1])
    told.say(refused(2, "amount", "c-2"))
    assert outcomes(told) == ["Refused"]
    told = Told(*story_to_the_hold()[:-1], forwarded(2, MONEY), executed(2, ("c-2", "No such order."), is_error=True))
    assert outcomes(told) == ["Error"]


def test_what_was_declined_in_a_turn_that_policy_refused_is_declined() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY, decision="decline"), refused(2, "amount", "c-2"))
    assert outcomes(told) == ["Declined"]


# Times


def at(row: Row) -> str:
    return row.at.astimezone(UTC).isoformat()


def wrote(opened_at: datetime | None) -> RunStarted:
    begun = started()
    return begun.model_copy(update={"ticket": begun.ticket.model_copy(update={"opened_at": opened_at})})


def test_the_customers_message_bears_the_time_when_it_was_written() -> None:
    written = datetime(2026, 11, 29, 9, 30, tzinfo=UTC)
    told = Told(wrote(written))
    message, begun = rows(told)
    assert (message.title, at(message)) == ("Tom Whitfield", written.isoformat())
    assert (begun.title, begun.at) == ("Run started", told.events[0].time)


def test_a_message_of_an_older_log_bears_the_time_of_the_run() -> None:
    told = Told(wrote(None))
    assert [(row.title, row.at) for row in rows(told)] == [
        ("Run started", told.events[0].time),
        ("Tom Whitfield", told.events[0].time),
    ]


def days(told: Told, zone: str) -> list[str]:
    trajectory = Trajectory(zone)
    for event in told.events:
        trajectory.see(event)
    return [row.title if row.day else "" for row in trajectory.rows.values()]


def test_a_run_over_midnight_is_divided_into_the_days_of_the_tenants_zone() -> None:
    told = Told(wrote(datetime(2026, 11, 27, 9, 0, tzinfo=UTC)))  # it begins at 14:02 UTC on Sunday, 29 November
    told.wait(hours=8)  # 22:02 UTC
    told.say(*story_to_the_hold()[1:2])
    told.wait(hours=3)  # 01:02 UTC
    told.say(*story_to_the_hold()[2:5], *story_to_the_hold()[5:6])
    monday = "Monday 30 November 2026"
    assert days(told, "UTC") == ["", "Sunday 29 November 2026", "", "", monday, ""]
    # In Berlin it is 23:02 and 02:02, in Tokyo 23:02 on Sunday, and 07:02 and 10:02 on Monday.
    assert days(told, "Europe/Berlin") == ["", "Sunday 29 November 2026", "", "", monday, ""]
    assert days(told, "Asia/Tokyo") == ["", "Sunday 29 November 2026", "", monday, "", ""]


def test_a_day_is_a_row_that_says_which() -> None:
    told = Told(wrote(datetime(2026, 11, 27, 9, 0, tzinfo=UTC)))
    [day] = [row for row in rows(told) if row.day]
    assert ">Sunday 29 November 2026</time>" in html(day)


def test_a_clock_that_is_a_little_behind_does_not_bring_a_day_back() -> None:
    told = Told(started())
    told.at = datetime(2026, 11, 30, 0, 0, 1, tzinfo=UTC)
    told.say(CustomerSaid(text="Now?", message_id="m-1"))
    told.at = datetime(2026, 11, 29, 23, 59, 59, tzinfo=UTC)
    told.say(CustomerSaid(text="Now?", message_id="m-2"))
    assert days(told, "UTC") == ["", "", "Monday 30 November 2026", "", ""]


def test_a_refund_that_had_been_made_is_said_to_have_been() -> None:
    told = Told(*story_to_the_hold(), decided(2, MONEY), forwarded(2, MONEY))
    told.say(executed(2, ("c-2", "Already issued; no second payment was made."), duplicate=True))

    assert rows(told)[-1].title == "Refund had been made before"
    assert rows(told)[-1].amount == ""


def test_a_kind_that_is_not_known_is_shown_as_it_is() -> None:
    told = Told(started())
    document = told.events[0].document() | {"type": "turngate.tools.stock-counted.v1", "data": {"left": 3}}
    event = from_document(document, sequence=9)

    [row] = Trajectory().see(event)

    assert event.fact is None
    assert row.title == "tools.stock-counted"
    assert "left" in html(row)


@pytest.mark.parametrize("fact", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_every_fact_there_is_has_a_row(fact: Fact) -> None:
    told = Told(started()) if not isinstance(fact, RunStarted) else Told()
    [event] = told.say(fact)

    changed = Trajectory().see(event)

    assert changed
    assert all(html(row).startswith("<li") for row in changed)


def test_other_peoples_text_can_neither_run_nor_turn_the_page() -> None:
    nasty = "<script>alert(1)</script> \u202e00.081£ \x1b[31m <img src=x onerror=alert(1)>"
    told = Told(
        started(subject=nasty, body=nasty),
        proposed(1, ("c-1", "get_order", {"order_reference": nasty}), words=nasty),
        quoted(1, read("c-1", order_reference=nasty)),
        executed(1, ("c-1", nasty)),
    )

    for row in rows(told):
        page = html(row)
        assert "<script" not in page
        assert "<img" not in page
        assert "\u202e" not in page
        assert "\x1b" not in page


# Cards of the approval queue


def card(told: Told, asker_is: object = SAM) -> cards.Card:
    view = fold(told.events)
    assert view is not None
    found = cards.card(view, told.events, asker(asker_is))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_run_that_never_asked_has_no_card() -> None:
    told = Told(started())
    assert cards.card(told.view, told.events, asker(SAM)) is None


def test_a_waiting_card_shows_the_effect_and_the_buttons_with_the_amount() -> None:
    told = Told(*story_to_the_hold())

    page = str(render.part("card.html", "card", card(told), asker(SAM), ZONE, told.at))

    assert "Refund £180.00 to Mastercard ending 0937" in page
    assert "Approve £180.00" in page
    assert MONEY.digest in page
    assert page.index("Customer said") < page.index("Agent says") < page.index("returned unworn")


def test_a_requesters_card_has_no_buttons() -> None:
    told = Told(started(by=SAM), *story_to_the_hold()[1:])

    page = str(render.part("card.html", "card", card(told), asker(SAM), ZONE, told.at))

    assert "You started this run, so another person has to decide" in page
    assert "<button" not in page


def test_a_card_is_theirs_who_may_say_anything_on_it_and_offers_just_that() -> None:
    told = Told(*story_to_the_hold()[:-1], held(2, MONEY, needs=Needs(amount_minor=18_000)))
    limited = SAM.model_copy(update={"limit_minor": 10_000})

    page = str(render.part("card.html", "card", card(told, limited), asker(limited), ZONE, told.at))

    assert card(told, limited).mine
    assert pages.decidable([told.view], asker(limited)) == 1
    assert "Approve less" in page
    assert 'value="decline"' in page
    assert 'data-do="approve"' not in page
    assert not card(told, ALEX).mine
    assert pages.decidable([told.view], asker(ALEX)) == 0


def test_once_decided_the_card_shows_the_rest_of_the_run() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold()[:3])

    running = card(told)

    assert running.state == "running"
    assert [row.title for row in running.rows] == ["Approved by sam", "Refund made"]
    assert running.outcome.startswith("You approved")


def test_an_ended_run_is_one_line_that_says_who_decided() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())

    closed = card(told, LEE)

    assert closed.state == "closed"
    assert closed.outcome == "Sam approved it: “Return scanned in at the warehouse.”"
    assert "<form" not in str(render.part("card.html", "card", closed, asker(LEE), ZONE, told.at))


def refused_after_all() -> Told:
    results = executed(2, ("c-2", "It is stopped."), is_error=True).results
    told = Told(*story_to_the_hold(), decided(2, MONEY), quoted(2, MONEY, attempt=2))
    told.say(TurnRefused(turn=2, attempt=2, pack=PACK, rule="stopped", results=results), replied("Sorry."), ended())
    return told


def test_an_approval_that_was_refused_is_not_shown_as_done() -> None:
    told = refused_after_all()
    closed = card(told)
    assert closed.outcome == "You approved it; it was refused: stopped: no money moved"
    assert closed.pill == ("bad", "no", "Refused")
    assert closed.amount == "nothing of £180.00 asked"
    whole, head = (
        str(render.part("card.html", name, closed, *rest))
        for name, rest in (
            ("card", (asker(SAM), ZONE, told.at)),
            ("card_head", (ZONE, told.at)),
        )
    )
    for page in (whole, head):
        assert "Refused" in page
        assert "Resolved" not in page
    assert [row.title for row in closed.rows] == ["Approved by sam", "Refused", "Reply sent", "Run ended: resolved"]
    assert closed.rows[1].detail == "stopped: no money moved, in spite of the approval"
    assert pages.by(told.view, asker(SAM)) == [("TCK-2004", "approved, then refused", "nothing of £180.00 asked")]


def test_the_list_says_of_an_ended_run_that_its_approval_was_refused() -> None:
    ticket = TicketView(
        ticket="TCK-2004",
        status="resolved",
        channel="ticket",
        subject=" ",
        body="",
        customer=TOM,
        run="TCK-2004-1",
        opened_at=datetime(2026, 11, 29, tzinfo=UTC),
        latest=refused_after_all().view,
    )
    line = queue.line(ticket, asker(SAM), ticket.opened_at)
    assert line.last_step == "Approved, then refused: stopped. The customer has their answer."
    assert line.subject == "No subject"


def test_a_turn_that_nobody_approved_is_refused_in_its_box_alone() -> None:
    results = executed(2, ("c-2", "Too much."), is_error=True).results
    told = Told(*story_to_the_hold()[:-1])
    told.say(TurnRefused(turn=2, attempt=1, pack=PACK, rule="amount", results=results))
    assert [row.title for row in rows(told)][-1] == "Turn 2"


def test_an_approval_with_changes_closes_with_what_it_came_to() -> None:
    less = refund("c-2", 10000).model_copy(update={"edited": MONEY.digest})
    told = Told(*story_to_the_hold(), decided(2, MONEY, edited=less.arguments), quoted(2, less, attempt=2))
    told.say(forwarded(2, less), executed(2, ("c-2", "Refunded £100.00.")), replied(), ended())
    closed = card(told)
    assert closed.title == "Refund £100.00 to Mastercard ending 0937"
    assert closed.amount == "£100.00 of £180.00 asked"
    assert pages.by(told.view, asker(SAM)) == [("TCK-2004", "approved", "£100.00 of £180.00 asked")]


def test_after_an_erasure_nothing_hangs_behind_what_was_changed() -> None:
    gone = MONEY.model_copy(update={"arguments": {}})
    told = Told(*story_to_the_hold()[:-2], quoted(2, gone), held(2, gone), decided(2, gone, edited={}))
    assert rows(told)[-1].detail == "with changes"


def test_a_row_is_the_same_on_the_page_and_on_the_stream() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())
    page = [html(row) for row in rows(told)]

    streamed: dict[str, str] = {}
    trajectory = Trajectory()
    for event in told.events:
        streamed |= {row.id: html(row) for row in trajectory.see(event)}

    assert list(streamed.values()) == page


def test_rows_name_the_events_that_they_stand_for() -> None:
    told = Told(*story_to_the_hold())
    sequences = {event.sequence for event in told.events if isinstance(event, Event)}

    assert {row.opened for row in rows(told)} <= sequences
