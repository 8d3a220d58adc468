"""Who is shown which buttons: what a run's facts come to is what approvals would record, word by word."""

import pytest
from contracts.entitlement import Word
from contracts.facts import Fact
from contracts.parts import MOST_ATTEMPTS, Customer, Needs, Person
from gateway import domain

from .facts import ISSUER, LEE, SAM, SUE, decided, held, quoted, refund, started, story_to_the_hold
from .test_domain import asker
from .told import Told

ALEX = Person(subject="alex", issuer=ISSUER, role="approver")
MONEY = refund("c-2")
LESS = refund("c-2", 12000).model_copy(update={"edited": MONEY.digest})
ONE = Needs(amount_minor=18_000)
TWO = Needs(people=2, one_of_role="lead", amount_minor=45_000)
LEAD = Needs(role="lead", amount_minor=18_000)
ALL: set[Word] = {"approve", "decline", "change"}


def waiting(needs: Needs, *then: Fact, customer: Customer | None = None) -> Told:
    first = started(by=ALEX)
    if customer is not None:
        first = first.model_copy(update={"ticket": first.ticket.model_copy(update={"customer": customer})})
    return Told(first, *story_to_the_hold()[1:-1], held(2, MONEY, needs=needs), *then)


def changed(needs: Needs, by: Person, edited_by: Person | None = None) -> Told:
    """Held anew after somebody changed it, and with it something else, so that their approval does not stand."""
    other = LESS.model_copy(update={"subject": "C-1009"})
    again = held(2, other, needs=needs, attempt=2, edited_by=edited_by)
    return waiting(needs, decided(2, MONEY, by, edited={"amount_pence": 12000}), quoted(2, other, attempt=2), again)


def may(told: Told, person: Person) -> set[Word]:
    [call] = told.view.holds
    return {word for word in domain.WORDS if domain.may_decide(told.view, call, asker(person), word) is None}


def limited(limit: int) -> Person:
    return SAM.model_copy(update={"limit_minor": limit})


def named(subject: str, role: str) -> Person:
    return Person(subject=subject, issuer=ISSUER, role=role)


@pytest.mark.parametrize(
    ("told", "by", "words"),
    [
        (waiting(ONE), SAM, ALL),
        (waiting(ONE), LEE, ALL),
        (waiting(ONE), ALEX, set()),
        (waiting(ONE), named("C-1004", "lead"), set()),
        (waiting(ONE), named("Tom.Whitfield@mail.example", "lead"), set()),
        (waiting(ONE, customer=Customer(email="tom@mail.example")), named("C-1004", "lead"), set()),
        (changed(ONE, SAM, edited_by=SAM), SAM, set()),
        (changed(ONE, SAM), SAM, set()),
        (changed(ONE, SAM), SUE, ALL),
        (waiting(TWO, decided(2, MONEY, SAM)), SAM, set()),
        (waiting(ONE), named("alex", "operator"), set()),
        (waiting(ONE), named("olga", "operator"), set()),
        (waiting(ONE), named("ari", "auditor"), set()),
        (waiting(LEAD), SAM, set()),
        (waiting(LEAD), LEE, ALL),
        (waiting(ONE), limited(10_000), {"decline", "change"}),
        (waiting(ONE), limited(18_000), ALL),
        (waiting(Needs()), limited(18_000), {"decline", "change"}),
        (waiting(TWO), SUE, ALL),
        (waiting(TWO, decided(2, MONEY, SAM)), SUE, {"decline", "change"}),
        (waiting(TWO, decided(2, MONEY, SAM)), LEE, ALL),
        (waiting(TWO, decided(2, MONEY, LEE)), SUE, ALL),
        (waiting(ONE, quoted(2, MONEY, attempt=3), held(2, MONEY, needs=ONE, attempt=3)), SAM, {"approve", "decline"}),
    ],
)
def test_a_person_is_offered_just_the_words_that_would_be_recorded(told: Told, by: Person, words: set[Word]) -> None:
    assert may(told, by) == words
    [call] = told.view.holds
    assert domain.may_say(told.view, call, asker(by)) is bool(words)


def test_an_approval_by_who_no_longer_reaches_what_is_needed_fills_no_seat() -> None:
    told = waiting(ONE, decided(2, MONEY, SAM), quoted(2, MONEY, attempt=2), held(2, MONEY, needs=LEAD, attempt=2))
    [call] = told.view.holds
    assert call.approved_by == []
    assert may(told, LEE) == ALL
    assert told.view.holds[0].attempt < MOST_ATTEMPTS


def test_who_changed_it_before_the_last_change_asked_for_it_as_well() -> None:
    other, another = (LESS.model_copy(update={"subject": f"C-100{n}", "digest": str(n) * 64}) for n in (8, 9))
    told = waiting(
        ONE,
        decided(2, MONEY, SAM, edited={"reason": "worn"}),
        quoted(2, other, attempt=2),
        held(2, other, needs=ONE, attempt=2, edited_by=SAM),
        decided(2, other, SUE, edited={"reason": "torn"}),
        quoted(2, another, attempt=3),
        held(2, another, needs=ONE, attempt=3, edited_by=SUE),
    )
    assert may(told, SAM) == may(told, SUE) == set()
    assert may(told, LEE) == {"approve", "decline"}


def test_each_is_told_why_not_and_what_they_may_do_instead() -> None:
    def why(told: Told, person: Person) -> str:
        [call] = told.view.holds
        barred = domain.may_decide(told.view, call, asker(person), "approve")
        assert barred is not None
        return f"{barred.title}: {barred.detail}"

    assert "your role (operator) decides nothing" in why(waiting(ONE), named("olga", "operator"))
    assert "You started this run" in why(waiting(ONE), ALEX)
    assert "This is your own ticket" in why(waiting(ONE), named("cust-C-1004", "approver"))
    assert "needs the role lead; yours is approver" in why(waiting(LEAD), SAM)
    assert "Another person has to decide the rest" in why(waiting(TWO, decided(2, MONEY, SAM)), SAM)
    assert "has to be a lead, and only one seat is left" in why(waiting(TWO, decided(2, MONEY, SAM)), SUE)
    assert "your own limit is £100.00" in why(waiting(ONE), limited(10_000))
    assert "approve less" in why(waiting(ONE), limited(10_000))
