"""Who may say what on a held call: the one table that approvals records by and pages are drawn by."""

from collections.abc import Sequence

import pytest
from contracts.entitlement import Held, Word, above_own_limit, bar, roles_asked
from contracts.parts import CallQuote, Customer, Effect, Hold, Needs, Person
from contracts.testing import person

ALEX, SAM, SUE, LEE = (
    person("alex", "approver"),
    person("sam", "approver"),
    person("sue", "approver"),
    person("lee", "lead"),
)
TOM = Customer(email="tom@mail.example", id="C-1004")
ONE = Needs(amount_minor=18_000)
TWO = Needs(people=2, one_of_role="lead", amount_minor=45_000)
LEAD = Needs(role="lead", amount_minor=18_000)
EVERY: tuple[Word, ...] = ("approve", "decline", "change")


def held(
    needs: Needs,
    *,
    edited_by: Person | None = None,
    changed_by: Sequence[Person] = (),
    approved_by: Sequence[Person] = (),
    customer: Customer = TOM,
    subject: str | None = "C-1004",
) -> Held:
    digest = "0" * 64
    hold = Hold(call_id="c1", digest=digest, rule="amount", reason="much", needs=needs, edited_by=edited_by)
    effect = Effect(summary="a refund", object="O-1", amount_minor=18_000, currency="GBP")
    quote = CallQuote(
        call_id="c1", tool="issue_refund", kind="write", arguments={}, subject=subject, effect=effect, digest=digest
    )
    return Held(ALEX, customer, hold, quote, changed_by, approved_by)


def limited(limit: int) -> Person:
    return SAM.model_copy(update={"limit_minor": limit})


@pytest.mark.parametrize(
    ("case", "by", "may"),
    [
        (held(ONE), SAM, {"approve", "decline", "change"}),
        (held(ONE), LEE, {"approve", "decline", "change"}),
        (held(ONE), ALEX, set()),
        (held(ONE), person("C-1004", "lead"), set()),
        (held(ONE), person("tom@mail.example", "lead"), set()),
        (held(ONE, customer=Customer(email="tom@mail.example")), person("C-1004", "lead"), set()),
        (held(ONE, edited_by=SAM), SAM, set()),
        (held(ONE, changed_by=[SAM]), SAM, set()),
        (held(ONE, changed_by=[SAM]), SUE, {"approve", "decline", "change"}),
        (held(TWO, approved_by=[SAM]), SAM, set()),
        (held(ONE), person("alex", "operator"), set()),
        (held(ONE), person("olga", "operator"), set()),
        (held(LEAD), SAM, set()),
        (held(LEAD), LEE, {"approve", "decline", "change"}),
        (held(ONE), limited(10_000), {"decline", "change"}),
        (held(ONE), limited(18_000), {"approve", "decline", "change"}),
        (held(Needs()), limited(18_000), {"decline", "change"}),
        (held(TWO), SUE, {"approve", "decline", "change"}),
        (held(TWO, approved_by=[SAM]), SUE, {"decline", "change"}),
        (held(TWO, approved_by=[SAM]), LEE, {"approve", "decline", "change"}),
        (held(TWO, approved_by=[LEE]), SUE, {"approve", "decline", "change"}),
    ],
)
def test_a_person_may_say_just_what_their_part_their_role_and_their_limit_leave_them(
    case: Held, by: Person, may: set[Word]
) -> None:
    assert {word for word in EVERY if bar(case, by, word) is None} == may


def test_whoever_is_kept_from_it_is_told_why_and_what_they_may_do_instead() -> None:
    def why(case: Held, by: Person) -> str:
        found = bar(case, by, "approve")
        assert found is not None
        return f"{found.title}: {found.detail}"

    assert why(held(ONE), ALEX).endswith("You started this run, so another person has to decide.")
    assert why(held(LEAD), SAM) == "Above your role: This needs the role lead; yours is approver."
    assert "£180.00 to this customer today; your own limit is £100.00" in why(held(ONE), limited(10_000))
    assert "approve less" in why(held(ONE), limited(10_000))
    assert why(held(TWO, approved_by=[SAM]), SUE) == (
        "A lead has to: One of the 2 has to be a lead, and only one seat is left."
    )


def test_what_a_change_comes_to_is_held_against_its_approvers_own_limit() -> None:
    quote = held(ONE).quote

    assert above_own_limit(12_000, quote, limited(12_000)) is None
    assert above_own_limit(12_001, quote, limited(12_000)) is not None
    assert above_own_limit(None, quote, limited(12_000)) is not None
    assert above_own_limit(None, quote, SAM) is None


@pytest.mark.parametrize(
    ("needs", "approved_by", "asked"),
    [
        (ONE, [], ("approver",)),
        (ONE, [SAM], ()),
        (LEAD, [], ("lead",)),
        (TWO, [], ("approver", "lead")),
        (TWO, [SAM], ("lead",)),
        (TWO, [LEE], ("approver",)),
        (TWO, [SAM, LEE], ()),
        (Needs(role="lead", people=2, one_of_role="lead"), [], ("lead",)),
        (Needs(role="lead", one_of_role="lead"), [], ("lead",)),
        (Needs(people=3, one_of_role="lead", count_of_role=2), [], ("approver", "lead")),
        (Needs(people=3, one_of_role="lead", count_of_role=2), [SAM], ("lead",)),
        (Needs(people=3, one_of_role="lead", count_of_role=2), [LEE], ("approver", "lead")),
    ],
)
def test_those_are_asked_whose_seats_are_left(
    needs: Needs, approved_by: Sequence[Person], asked: tuple[str, ...]
) -> None:
    assert roles_asked(needs, approved_by) == asked
