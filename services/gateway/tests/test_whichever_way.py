"""What is drawn of a run depends on its facts alone: on no clock, and not on when a page was loaded or in which pieces
the facts came behind it."""

from datetime import datetime, timedelta
from types import ModuleType
from typing import Any

import pytest
from contracts.events import Event
from contracts.facts import (
    AnswerUnfinished,
    CustomerSaid,
    DecisionRefused,
    Fact,
    HoldExpired,
    PersonSaid,
    ReminderSent,
    RunCancelled,
    RunErased,
    RunTakenOver,
    TurnHeld,
)
from contracts.parts import CallQuote, Usage
from contracts.verify import verify_run
from gateway.console import cards, pages, queue, render, rows, told, trajectory, words
from gateway.console.rows import Row
from gateway.console.trajectory import Trajectory
from hypothesis import assume, given
from hypothesis import strategies as st

from .facts import (
    ALEX,
    DIGEST,
    LEE,
    SAM,
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
from .told import Told

ZONE = "Asia/Tokyo"  # whose midnight is in the middle of the runs' days
MOST = 6  # turns


@st.composite
def runs(draw: st.DrawFn) -> tuple[Event, ...]:
    """A run as it may be, to any of its facts: turns of reads and refunds, held or not, decided or expired, changed,
    refused, failed or done before; messages, refusals and reminders in between; and what is said behind its end. The
    clocks of the services are a little apart."""
    begun = started(channel=draw(st.sampled_from(["ticket", "chat"])))
    if draw(st.booleans()):
        written = datetime.fromisoformat("2026-11-29T14:02:11Z") - timedelta(hours=draw(st.integers(0, 60)))
        begun = begun.model_copy(update={"ticket": begun.ticket.model_copy(update={"opened_at": written})})
    run = Told(begun)

    def say(*facts: Fact) -> None:
        for fact in facts:
            run.say(fact)
            run.at += timedelta(seconds=draw(st.one_of(st.integers(-4, 90), st.integers(0, 40_000))))

    for turn in range(1, draw(st.integers(0, MOST)) + 1):
        for fact in draw(st.lists(st.sampled_from([_aside(turn), _unfinished()]), max_size=1)):
            say(fact)
        _turn(draw, run, say, turn)
        if run.history.end is not None:
            break
    _end(draw, run, say)
    events = run.events[: draw(st.integers(1, len(run.events)))]
    assume(verify_run(list(events)) == [])
    return events


def _turn(draw: st.DrawFn, run: Told, say: Any, turn: int) -> None:
    kinds = draw(st.lists(st.sampled_from(["read", "refund"]), min_size=1, max_size=3))
    quotes = [
        read(f"c-{turn}-{n}", order_reference="ORD-1")
        if kind == "read"
        else refund(f"c-{turn}-{n}", 1000 * (n + 1), order=f"ORD-{turn}-{n}")
        for n, kind in enumerate(kinds)
    ]
    say(proposed(turn, *((quote.call_id, quote.tool, quote.arguments) for quote in quotes), words="I look."))
    say(quoted(turn, *quotes))
    writes = [quote for quote in quotes if quote.kind == "write"]
    waits = [quote for quote in writes if draw(st.booleans())]
    no: set[str] = set()
    attempt = 1
    if waits:
        hold = held(turn, *waits).model_copy(update={"expires_at": run.at + timedelta(days=900)})
        assert isinstance(hold, TurnHeld)
        say(hold)
        if draw(st.booleans()):
            say(ReminderSent(turn=turn, call_ids=[quote.call_id for quote in waits], role="approver"))
        no, changed = _decisions(draw, say, turn, waits)
        if changed is not None:
            attempt = 2
            was, now = changed
            quotes = [now if quote.call_id == was.call_id else quote for quote in quotes]
            say(quoted(turn, *quotes, attempt=2))
    match draw(st.sampled_from(["runs", "runs", "refused", "cancelled"])):
        case "refused":
            say(refused(turn, "amount", *(quote.call_id for quote in quotes), attempt=attempt))
        case fate:
            say(forwarded(turn, *quotes, declined=tuple(no)).model_copy(update={"attempt": attempt}))
            if fate == "cancelled":
                say(RunCancelled(by=ALEX))
            say(_executed(draw, turn, quotes, no, attempt))


def _decisions(
    draw: st.DrawFn, say: Any, turn: int, waits: list[CallQuote]
) -> tuple[set[str], tuple[CallQuote, CallQuote] | None]:
    """Which calls were declined, or decided by nobody in time; and a call that was changed, with what it became."""
    no: set[str] = set()
    for last, quote in ((quote is waits[-1], quote) for quote in waits):
        if draw(st.booleans()):
            say(_aside(turn))
        match draw(st.sampled_from(["approve", "decline", "expire", "change"])):
            case "decline":
                say(decided(turn, quote, decision="decline", note="It was worn."))
                no.add(quote.call_id)
            case "expire":
                say(HoldExpired(turn=turn, call_ids=[quote.call_id]))
                no.add(quote.call_id)
            case "change" if last:
                less = refund(quote.call_id, 500, order=quote.effect.object if quote.effect else "")
                less = less.model_copy(update={"edited": quote.digest})
                say(decided(turn, quote, edited=less.arguments))
                return no, (quote, less)
            case _:
                say(decided(turn, quote))
    return no, None


def _executed(draw: st.DrawFn, turn: int, quotes: list[CallQuote], no: set[str], attempt: int) -> Fact:
    fact = executed(turn, *((quote.call_id, f"Result of {quote.call_id}") for quote in quotes))
    results = [
        result.model_copy(
            update={
                "is_error": result.call_id in no or draw(st.booleans()),
                "duplicate": draw(st.booleans()),
            }
        )
        for result in fact.results
    ]
    return fact.model_copy(update={"results": results, "attempt": attempt})


def _aside(turn: int) -> Fact:
    return DecisionRefused(turn=turn, call_id="c", by=ALEX, decision="approve", reason="You started this run.")


def _unfinished() -> Fact:
    return AnswerUnfinished(
        content=[],
        stop_reason="max_tokens",
        usage=Usage(),
        cost_micro_usd=1,
        request_digest=DIGEST,
        next="retry",
    )


def _end(draw: st.DrawFn, run: Told, say: Any) -> None:
    if run.history.end is None:
        say(CustomerSaid(text="And?", message_id="m-1", by=draw(st.sampled_from([None, ALEX]))), replied())
        if draw(st.booleans()):
            say(RunTakenOver(by=LEE), PersonSaid(by=LEE, text="Hello Tom."))
        else:
            say(ended("escalated").model_copy(update={"steps": 99, "cost_micro_usd": 999_999}))
    if draw(st.booleans()):
        say(RunErased(by=SAM))


def html(row: Row) -> str:
    return str(render.part("row.html", "row", row, ZONE))


class Page:
    """What a page does with rows: the ones that it was loaded with, and then what it is told (static/stream.js)."""

    def __init__(self, shown: list[Row], since: int = 0) -> None:
        self.since = since
        self.rows = {row.id: html(row) for row in shown}

    def hears(self, changed: list[Row]) -> None:
        for row in changed:
            if row.id in self.rows or row.opened > self.since:
                self.rows[row.id] = html(row)


@given(runs(), st.data())
def test_a_page_loaded_anywhere_and_told_the_rest_in_any_pieces_is_the_page_of_the_whole(
    run: tuple[Event, ...], data: st.DataObject
) -> None:
    whole = list(Page(pages.rows_of(run, ZONE)).rows.items())
    for split in range(1, len(run) + 1):
        page = Page(pages.rows_of(run[:split], ZONE))
        told_rows, after, at = Trajectory(ZONE), run[split - 1].sequence, 0
        while at < len(run):
            size = data.draw(st.integers(1, len(run)))
            page.hears(told_rows.see_all(run[at : at + size], after))
            at += size
        assert list(page.rows.items()) == whole


@given(runs(), st.integers(1, 40))
def test_a_page_without_its_earlier_rows_gets_none_of_them_at_its_end(run: tuple[Event, ...], most: int) -> None:
    whole = Page(pages.rows_of(run, ZONE)).rows
    for split in range(1, len(run) + 1):
        shown, _, since = pages.latest(pages.rows_of(run[:split], ZONE), most)
        page = Page(shown, since)
        page.hears(Trajectory(ZONE).see_all(run, run[split - 1].sequence))
        assert page.rows == {row_id: whole[row_id] for row_id in page.rows}
        assert list(page.rows) == list(whole)[len(whole) - len(page.rows) :]


@given(runs())
def test_a_card_made_anywhere_and_told_the_rest_has_the_rows_of_one_made_at_the_end(run: tuple[Event, ...]) -> None:
    since = run[len(run) // 3].sequence
    whole = list(Page(list(cards.rows_since(run, since, ZONE)), since).rows.items())
    for split in range(1, len(run) + 1):
        card = Page(list(cards.rows_since(run[:split], since, ZONE)), since)
        card.hears(Trajectory(ZONE).see_all(run, run[split - 1].sequence))
        assert list(card.rows.items()) == whole


class NoClock(datetime):
    """A clock that nobody may look at."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        raise AssertionError("a row looked at the clock")

    utcnow = today = now


@pytest.mark.parametrize("module", [rows, told, trajectory, words, render, cards, queue])
def test_no_row_looks_at_a_clock(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(module, "datetime"):
        monkeypatch.setattr(module, "datetime", NoClock)
    run = Told(started(), proposed(1, ("c", "issue_refund", {})), quoted(1, refund("c")), held(1, refund("c")))
    assert "".join(map(html, pages.rows_of(run.events, ZONE)))
