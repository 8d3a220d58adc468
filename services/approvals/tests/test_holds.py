"""When a hold has enough people."""

import pytest
from approvals.holds import enough, reaches
from contracts.facts import Needs, Person

from .told import LEE, LIA, ONE, SAM, SUE, TWO, person


@pytest.mark.parametrize(
    ("needs", "people", "filled"),
    [
        (ONE, [], False),
        (ONE, [SAM], True),
        (TWO, [LEE], False),
        (TWO, [LEE, LEE], False),
        (TWO, [LEE, person("lee", "approver")], False),
        (TWO, [SAM, SUE], False),
        (TWO, [SAM, LEE], True),
        (TWO, [LIA, LEE], True),
        (Needs(role="lead"), [SAM], False),
        (Needs(role="lead", people=2), [LEE, SAM, SUE], False),
        (Needs(one_of_role="boss"), [LEE], False),
    ],
)
def test_seats_are_filled_by_different_people_of_the_role_that_is_asked_for(
    needs: Needs, people: list[Person], filled: bool
) -> None:
    assert enough(needs, people) is filled


@pytest.mark.parametrize(
    ("role", "needed", "may"),
    [
        ("lead", "approver", True),
        ("approver", "lead", False),
        ("admin", "approver", False),
        ("operator", "approver", False),
        ("lead", "boss", False),
        ("boss", "boss", False),
    ],
)
def test_nobody_reaches_a_role_that_does_not_exist(role: str, needed: str, may: bool) -> None:
    assert reaches(role, needed) is may
