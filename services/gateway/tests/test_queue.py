"""The queue of tickets: which group comes first, who comes first in it, and what its columns claim."""

from datetime import UTC, datetime, timedelta

from contracts.events import Event
from contracts.facts import RunTakenOver
from gateway.console import queue, render
from gateway.tickets import TicketView
from gateway.views import TICKET_STATUS
from hypothesis import given
from hypothesis import strategies as st

from .facts import ALEX, SAM, TOM, ended, replied, started, story_from_the_hold, story_to_the_hold
from .test_domain import asker
from .told import Told

NOW = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)
STORIES = {
    "new": [],
    "decision": story_to_the_hold(),
    "running": [started()],
    "customer": [started(channel="chat"), replied()],
    "person": [started(), RunTakenOver(by=ALEX)],
    "escalated": [started(), replied(), ended("escalated")],
    "done": [*story_to_the_hold(), *story_from_the_hold()],
}


def line(story: str, name: str = "TCK-1", opened: datetime = NOW) -> queue.Line:
    view = Told(*STORIES[story]).view if STORIES[story] else None
    ticket = TicketView(
        ticket=name,
        status=TICKET_STATUS[view.status] if view else "open",
        channel="ticket",
        subject="Jacket",
        body="Hello",
        customer=TOM,
        opened_at=opened,
        latest=view,
    )
    return queue.line(ticket, asker(SAM), NOW)


def test_what_nobody_has_started_stands_below_what_is_with_a_person() -> None:
    found = queue.groups([line(story) for story in STORIES])
    assert [group.title for group in found] == [
        "Needs a decision",
        "Running now",
        "Waiting for the customer",
        "With a person",
        "Not started",
        "Done",
    ]


@given(st.lists(st.integers(0, 10_000), unique=True, min_size=1), st.sampled_from(["new", "person", "running"]))
def test_the_oldest_ticket_of_a_group_is_first(ages: list[int], story: str) -> None:
    lines = [line(story, f"TCK-{age}", NOW - timedelta(minutes=age)) for age in ages]
    [group] = queue.groups(lines)
    assert [one.ticket for one in group.lines] == [f"TCK-{age}" for age in sorted(ages, reverse=True)]


def test_a_tickets_age_is_since_it_was_opened_whatever_has_happened_since() -> None:
    opened = NOW - timedelta(days=3)
    for story in STORIES:
        one = line(story, opened=opened)
        page = str(render.part("ticket_row.html", "ticket_row", one, asker(SAM), "UTC", NOW))
        age = page[page.index('<td class="num age') :]
        assert 'datetime="2026-11-26T18:00:00Z"' in age, story
        assert "3\u00a0d" in age, story


def test_how_long_a_decision_is_waited_for_stands_beside_whom_it_waits_for() -> None:
    told = Told(*STORIES["decision"])
    one = line("decision", opened=NOW - timedelta(days=3))
    page = str(render.part("ticket_row.html", "ticket_row", one, asker(SAM), "UTC", told.at))
    held: Event = told.events[-1]
    assert one.held == held.time
    assert "An approver" in page
    assert f'for <time datetime="{held.time:%Y-%m-%dT%H:%M:%SZ}"' in page


def test_each_filter_counts_what_it_lists() -> None:
    statuses = {"open": 1, "in_progress": 2, "awaiting_approval": 4, "awaiting_customer": 8, "resolved": 16}
    assert queue.counts({**statuses, "escalated": 32}) == {"open": 47, "held": 4, "done": 16, "all": 63}
