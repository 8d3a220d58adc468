"""What a decision on a held turn releases: all that the turn then moves, or nothing before the others have decided."""

from typing import Any, Literal

import pytest
from contracts.kill_switch import Stop
from contracts.money import Money
from contracts.parts import CallQuote, Effect, QuoteFacts
from contracts.turn import Held, HeldTurn, moved_by, sums_in_words, totals
from hypothesis import given
from hypothesis import strategies as st

POUNDS = 4000
WAITS, APPROVED, DECLINED, EXPIRED = Held("waits", 1), Held("approved"), Held("declined"), Held("expired")
ALL = Stop(None, None)


def write(
    call_id: str, minor: int | None = POUNDS, currency: str = "GBP", today: int | None = None, **more: Any
) -> CallQuote:
    effect = Effect(summary=f"Refund {call_id}", object=call_id, amount_minor=minor, currency=currency)
    facts = QuoteFacts(refunded_today_minor=today, **more.pop("facts", {}))
    body: dict[str, Any] = {
        "tool": "issue_refund",
        "kind": "write",
        "arguments": {},
        "subject": "C-1",
        "effect": effect,
    }
    return CallQuote.model_validate(body | {"call_id": call_id, "facts": facts, "digest": "0" * 64} | more)


def reads(call_id: str) -> CallQuote:
    return CallQuote(call_id=call_id, tool="get_order", kind="read", arguments={}, digest="0" * 64)


def fails(call_id: str) -> CallQuote:
    return write(call_id, will_fail="There is no such order.", effect=None)


def pounds(minor: int) -> tuple[Money, ...]:
    return (Money(minor, "GBP"),)


def test_a_held_call_is_released_with_those_that_nobody_was_asked_about() -> None:
    turn = HeldTurn.of([write("a"), write("b"), reads("r")], {"b": WAITS})

    release = turn.release("b")

    assert (release.now, release.total, turn.total) == (True, pounds(8000), pounds(8000))
    assert release.text == "£80.00 in 2 calls: Refund a; Refund b"
    assert [(part.call_id, part.state) for part in turn.parts] == [("a", "along"), ("b", "waits"), ("r", "along")]


def test_the_first_of_two_held_calls_releases_nothing_and_the_last_all_of_the_turn() -> None:
    quotes = [write("a", 10_000), write("b", 20_000)]
    both = HeldTurn.of(quotes, {"a": WAITS, "b": WAITS})
    one = HeldTurn.of(quotes, {"a": APPROVED, "b": WAITS})

    assert (both.release("a").now, both.release("a").waits_for, both.release("a").total) == (
        False,
        ("b",),
        pounds(30_000),
    )
    assert both.release("a").text == "nothing yet: 1 more of its turn to be decided"
    assert (one.release("b").now, one.release("b").total) == (True, pounds(30_000))


def test_a_call_that_two_have_to_approve_is_released_by_the_second() -> None:
    first = HeldTurn.of([write("a")], {"a": Held("waits", 2)})

    assert (first.release("a").now, first.release("a").more_people) == (False, 1)
    assert first.release("a").text == "nothing yet: 1 more to approve it"
    assert HeldTurn.of([write("a")], {"a": Held("waits", 1)}).release("a").now


@pytest.mark.parametrize("gone", [DECLINED, EXPIRED])
def test_what_was_declined_or_expired_is_not_released_with_the_rest(gone: Held) -> None:
    turn = HeldTurn.of([write("a", 10_000), write("b", 20_000)], {"a": gone, "b": WAITS})

    assert (turn.release("b").now, turn.release("b").total) == (True, pounds(20_000))


def test_a_decline_pays_what_nobody_was_asked_about_and_says_so() -> None:
    turn = HeldTurn.of([write("a"), write("b")], {"b": WAITS})

    release = turn.release("b", "decline")

    assert (release.now, release.total, release.text) == (True, pounds(4000), "£40.00")


def test_what_fails_or_was_made_before_moves_nothing_and_each_currency_is_a_sum_of_its_own() -> None:
    again = write("d", facts={"again_after": "RF-1"}, duplicate_of="RF-2")
    quotes = [write("a"), fails("b"), write("c", 0, duplicate_of="RF-1"), again, write("e", 1200, "USD")]
    turn = HeldTurn.of(quotes, {"e": WAITS})

    assert turn.total == (Money(8000, "GBP"), Money(1200, "USD"))
    assert sums_in_words(turn.total) == "£80.00 + $12.00"
    assert [part.state for part in turn.parts] == ["along", "fails", "repeated", "along", "waits"]


def test_a_call_as_a_person_would_change_it_changes_the_total() -> None:
    turn = HeldTurn.of([write("a"), write("b")], {"b": WAITS}).with_quote(write("b", 1000, edited="1" * 64))

    assert turn.total == pounds(5000)
    assert [part.changed for part in turn.parts] == [False, True]


# Every order of deciding


@given(
    st.lists(
        st.tuples(st.integers(1, 9000), st.integers(0, 3), st.sampled_from(["GBP", "USD"])), min_size=1, max_size=5
    ),
    st.data(),
)
def test_in_whichever_order_people_decide_exactly_the_last_decision_releases_and_all_that_is_left(
    calls: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    quotes = [write(str(n), minor, currency) for n, (minor, _, currency) in enumerate(calls)]
    held = {str(n): Held("waits", seats) for n, (_, seats, _) in enumerate(calls) if seats}
    released: list[tuple[Money, ...]] = []
    declined: set[str] = set()
    while waiting := [call_id for call_id, how in held.items() if how.state == "waits"]:
        call_id = data.draw(st.sampled_from(waiting))
        decision: Literal["approve", "decline"] = data.draw(st.sampled_from(["approve", "approve", "decline"]))
        release = HeldTurn.of(quotes, held).release(call_id, decision)
        left = held[call_id].seats_left - 1
        held[call_id] = DECLINED if decision == "decline" else Held("waits", left) if left else APPROVED
        declined |= {call_id} if decision == "decline" else set()
        if release.now:
            released.append(release.total)
    if any(seats for _, seats, _ in calls):
        paid = [moved_by(quote) for quote in quotes if quote.call_id not in declined]
        assert released == [totals(paid)]
        assert HeldTurn.of(quotes, held).total == totals(paid)


# Stops


@pytest.mark.parametrize(
    ("stop", "call", "met"),
    [
        (ALL, "b", True),
        (Stop("issue_refund", None), "b", True),
        (Stop("cancel_subscription", None), "b", False),
        (Stop(None, 7999), "b", True),
        (Stop(None, 8000), "b", False),
        (Stop(None, 4000), "b", True),
    ],
)
def test_a_stop_is_met_by_the_call_and_by_what_runs_with_it(stop: Stop, call: str, met: bool) -> None:
    turn = HeldTurn.of([write("a", today=4000), write("b", today=8000)], {"b": WAITS})

    assert (turn.stopped(call, [stop]) is not None) is met


def test_a_stop_on_what_runs_along_is_in_the_way_and_one_on_what_can_still_be_declined_is_not() -> None:
    other = write("b", None, tool="cancel_subscription")
    stop = Stop("cancel_subscription", None, "s-1", "a wave", "ada")

    along = HeldTurn.of([write("a"), other], {"a": WAITS}).stopped("a", [stop])
    assert along is not None
    assert not along.itself
    assert "Refund b" in along.detail
    assert "ada set it: “a wave”" in along.detail
    assert HeldTurn.of([write("a"), other], {"a": WAITS, "b": WAITS}).stopped("a", [stop]) is None
    assert HeldTurn.of([write("a"), other], {"a": WAITS, "b": APPROVED}).stopped("a", [stop]) is not None
    assert HeldTurn.of([write("a"), other], {"a": WAITS, "b": DECLINED}).stopped("a", [stop]) is None


def test_what_was_declined_does_not_count_towards_the_day_that_a_stop_is_held_against() -> None:
    quotes = [write("a", today=4000), write("b", today=8000)]
    stop = Stop(None, 5000)

    assert HeldTurn.of(quotes, {"a": WAITS, "b": WAITS}).stopped("b", [stop]) is not None
    assert HeldTurn.of(quotes, {"a": DECLINED, "b": WAITS}).stopped("b", [stop]) is None


def test_reads_failures_and_what_is_harmless_meet_no_stop_of_everything() -> None:
    harmless = write("h", None, tool="escalate_to_human", facts={"harmless": True})

    turn = HeldTurn.of([reads("r"), fails("f"), harmless], {"h": WAITS})

    assert turn.stopped("h", [ALL]) is None
    assert turn.stopped("h", [Stop("escalate_to_human", None)]) is not None


def test_what_a_person_changes_is_looked_at_as_it_would_be_then() -> None:
    turn = HeldTurn.of([write("a", 9000, today=9000)], {"a": WAITS})

    assert turn.stopped("a", [Stop(None, 5000)], changed=True) is None
    assert turn.stopped("a", [Stop("issue_refund", None)], changed=True) is not None
    assert turn.with_quote(write("a", 5000, today=5000)).stopped("a", [Stop(None, 5000)]) is None
    assert turn.with_quote(write("a", 5001, today=5001)).stopped("a", [Stop(None, 5000)]) is not None


def test_what_runs_behind_a_call_that_is_changed_counts_what_it_was_changed_into() -> None:
    quotes = [write("a", 6000, today=6000), write("b", 7000, today=13_000), write("c", today=4000, subject="C-2")]
    turn = HeldTurn.of(quotes, {"a": WAITS, "b": APPROVED})
    stop = Stop(None, 9000)

    assert turn.stopped("a", [stop]) is not None
    assert turn.stopped("a", [stop], changed=True) is None
    assert turn.with_quote(write("a", 2000, today=2000)).stopped("a", [stop]) is None
    assert turn.with_quote(write("a", 2001, today=2001)).stopped("a", [stop]) is not None
    other = turn.stopped("a", [Stop(None, 3999)], changed=True)
    assert other is not None
    assert other.part.call_id == "c", "it is another customer's, whatever the first is changed into"
