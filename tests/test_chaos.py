"""What `make chaos` holds against one another, and how it reckons recovery."""

from datetime import UTC, datetime, timedelta

import pytest

from .chaos import SCENARIOS, Kill, Scenario, Worked, differences, figures, recovery

HELD = next(one for one in SCENARIOS if one.name == "held")
QUESTION = next(one for one in SCENARIOS if one.name == "question")
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def worked(scenario: Scenario = HELD, run: str = "TCK-1-1") -> Worked:
    return Worked(scenario, run, "resolved")


def test_what_is_the_same_everywhere_is_no_difference() -> None:
    runs = [worked(), worked(QUESTION, "TCK-2-1")]

    assert list(differences(runs, {"TCK-1-1": 18000, "TCK-2-1": 0}, {"TCK-1-1": [18000]})) == []


@pytest.mark.parametrize(
    ("by_log", "by_rows"),
    [
        (18000, [18000, 18000]),  # paid twice
        (18000, []),  # said, and not paid
        (0, [18000]),  # paid, and not said
        (0, []),  # lost
        (18000, [9000]),
    ],
)
def test_a_payment_that_is_missing_or_made_twice_is_a_difference(by_log: int, by_rows: list[int]) -> None:
    [difference] = differences([worked()], {"TCK-1-1": by_log}, {"TCK-1-1": by_rows})

    assert difference.startswith("TCK-1-1 (held, resolved)")


def test_a_payment_that_nobody_asked_for_is_a_difference() -> None:
    found = list(differences([worked(QUESTION)], {"TCK-1-1": 0}, {"TCK-9-1": [5]}))

    assert found == ["TCK-9-1: [5] was paid for no scenario"]


def test_recovery_is_from_the_kill_to_the_next_fact_of_anybody_and_of_what_was_killed() -> None:
    facts = [(NOON + timedelta(seconds=at), author) for at, author in ((-1, "policy"), (2, "agent"), (3, "policy"))]

    found = recovery([Kill("policy", NOON), Kill("nats", NOON)], facts)

    assert found.any_fact == {"policy": [2.0], "nats": [2.0]}
    assert found.own_fact == {"policy": [3.0]}


def test_figures_are_of_what_was_measured() -> None:
    assert figures([]) == ()
    assert figures([3.0, 1.0, 2.0]) == (2.0, 3.0, 3.0)
