"""What a run did, read from its facts, held against its label."""

from typing import Any

import pytest
from evaluation.labels import Label
from evaluation.score import Score, figures
from evaluation.trajectory import trajectory

from .facts import ended, events, executed, proposed, quoted, read, refund, result

LABEL = Label(
    about="",
    must_call=frozenset({"get_order", "issue_refund"}),
    must_not_call=frozenset({"cancel_subscription"}),
    expect_status="resolved",
    refunds={"A-1": 900},
)
TURN = (proposed("get_order", "issue_refund"), quoted(read("0"), refund("1", "A-1", 900)))


def score(*facts: Any, label: Label = LABEL) -> Score:
    return Score("T", label, trajectory("T-1", events(*facts)))


def test_a_run_that_did_as_labelled_is_right() -> None:
    done = score(*TURN, executed(result("0"), result("1")), ended())

    assert done.right
    assert done.why_not() == ""
    assert done.run.called == ("get_order", "issue_refund")
    assert done.run.writes == ("issue_refund",)


def test_what_failed_or_had_been_done_before_moved_no_money() -> None:
    failed = score(*TURN, executed(result("0"), result("1", is_error=True)), ended())
    repeated = score(*TURN, executed(result("0"), result("1", duplicate=True)), ended())

    assert failed.run.refunds == repeated.run.refunds == {}
    assert not failed.right_state


def test_a_forbidden_call_counts_though_it_never_ran() -> None:
    asked = score(proposed("get_order", "issue_refund", "cancel_subscription"), ended())

    assert asked.forbidden == ["cancel_subscription"]
    assert "called cancel_subscription" in asked.why_not()


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ((proposed("get_order"), ended()), "did not call issue_refund"),
        ((*TURN, executed(result("0"), result("1")), ended("escalated")), "ended escalated, not resolved"),
        ((*TURN, executed(result("0"), result("1"))), "ended waiting, not resolved"),
        ((*TURN, ended()), "refunded nothing, not {'A-1': 900}"),
    ],
)
def test_what_went_wrong_is_said(facts: tuple[Any, ...], says: str) -> None:
    wrong = score(*facts)

    assert not wrong.right
    assert says in wrong.why_not()


def test_a_run_that_should_have_been_held_is_wrong_though_all_else_is_right() -> None:
    label = LABEL.model_copy(update={"expect_hold": True})

    unheld = score(*TURN, executed(result("0"), result("1")), ended(), label=label)

    assert unheld.right_state
    assert unheld.why_not() == "was not held"


def test_the_figures_count_runs_not_calls() -> None:
    right = score(*TURN, executed(result("0"), result("1")), ended())
    twice_wrong = score(proposed("cancel_subscription", "cancel_subscription"), ended())

    found = figures([right, twice_wrong])

    assert (found.runs, found.right, found.called_all_required, found.called_forbidden) == (2, 1, 1, 1)
    assert not found.good
