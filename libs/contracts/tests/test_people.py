"""Who is whom, and when a hold has enough people."""

from datetime import UTC, datetime

import pytest
from contracts.identity import ROLES, Principal
from contracts.parts import Customer, Needs, Person
from contracts.people import (
    RANKS,
    describe,
    enough,
    is_the_customer,
    may_decline,
    may_release,
    reaches,
    same,
    stricter,
)
from hypothesis import given
from hypothesis import strategies as st

from .stories import ALEX, LEE, SAM, SUE, person, started

LIA = person("lia", "lead")
BY_EMAIL = Customer(email="tom@mail.example")
ONE, TWO = Needs(), Needs(people=2, one_of_role="lead")
TOM = Customer(email="Tom@Mail.example", id="C-1004")


def bearer(subject: str, email: str | None = None, role: str = "customer") -> Principal:
    return Principal(
        subject=subject,
        issuer=SAM.issuer,
        tenant="acme",
        role=role,
        scopes=ROLES[role],
        token_id=None,
        expires_at=datetime.now(UTC),
        email=email,
    )


@pytest.mark.parametrize(
    ("needs", "people", "filled"),
    [
        (ONE, [], False),
        (ONE, [SAM], True),
        (TWO, [LEE], False),
        (TWO, [LEE, LEE], False),
        (TWO, [LEE, person("lee", "approver")], False),
        (TWO, [SAM, SUE], False),
        (TWO, [SAM, SUE, person(SAM.subject, "lead")], False),
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


def test_who_decides_outranks_nobody_by_accident() -> None:
    assert {role for role, scopes in ROLES.items() if "decide" in scopes} == set(RANKS)
    assert RANKS["approver"] < RANKS["lead"]


def test_a_person_is_the_same_in_another_role_and_with_another_token_but_not_at_another_issuer() -> None:
    assert same(SAM, SAM.model_copy(update={"role": "lead", "token_id": "t-2"}))
    assert same(SAM, bearer(SAM.subject))
    assert not same(SAM, SAM.model_copy(update={"issuer": "https://elsewhere.example"}))


@pytest.mark.parametrize(
    ("subject", "email", "is_he"),
    [
        ("C-1004", None, True),
        ("cust-C-1004", None, True),
        ("tom@mail.example", None, True),
        ("TOM@MAIL.EXAMPLE", None, True),
        ("t-77", "tom@mail.EXAMPLE", True),
        ("t-77", "ruth@mail.example", False),
        ("t-77", None, False),
        ("cust-C-1009", None, False),
        ("c-1004", None, False),
    ],
)
def test_the_customer_is_known_by_their_id_and_by_their_email_in_whatever_case(
    subject: str, email: str | None, is_he: bool
) -> None:
    assert is_the_customer(bearer(subject, email), TOM) is is_he
    if email is None:
        assert is_the_customer(person(subject, "lead"), TOM) is is_he


@pytest.mark.parametrize("subject", ["cust-None", "cust-", "None", ""])
def test_of_a_customer_without_an_id_nobody_is_the_one_whose_id_is_none(subject: str) -> None:
    assert not is_the_customer(bearer(subject), Customer(email="tom@mail.example"))
    assert not is_the_customer(bearer(subject), Customer(email="tom@mail.example", id=""))


def test_a_letter_that_only_folds_into_another_is_another_letter() -> None:
    assert not is_the_customer(bearer("t-77", "mi\N{KELVIN SIGN}e@mail.example"), Customer(email="mike@mail.example"))


def test_who_asked_and_the_customer_release_nothing_whatever_their_role() -> None:
    begun = started()
    customer = begun.ticket.customer
    leads = [
        person(ALEX.subject, "lead"),
        person(f"cust-{customer.id}", "lead"),
        person(customer.email.upper(), "lead"),
    ]

    assert [may_release(lead, ONE, begun) for lead in leads] == [False, False, False]
    assert may_release(SAM, ONE, begun)
    assert not may_release(SAM, Needs(role="lead"), begun)


@pytest.mark.parametrize(
    ("limit", "amount", "may"),
    [(None, None, True), (None, 9_000, True), (9_000, 9_000, True), (8_999, 9_000, False), (9_000, None, False)],
)
def test_whoever_has_a_limit_of_their_own_releases_nothing_above_it_and_nothing_unknown(
    limit: int | None, amount: int | None, may: bool
) -> None:
    sam = SAM.model_copy(update={"limit_minor": limit})

    assert may_release(sam, Needs(amount_minor=amount), started()) is may


def test_who_changed_a_call_into_what_is_held_does_not_release_it() -> None:
    assert not may_release(SAM, ONE, started(), edited_by=SAM.model_copy(update={"token_id": "another"}))
    assert may_release(LEE, ONE, started(), edited_by=SAM)


def test_whoever_a_quote_found_the_call_to_be_about_does_not_release_it_where_the_ticket_names_only_an_address() -> (
    None
):
    nobodys_id = started().model_copy(update={"ticket": started().ticket.model_copy(update={"customer": BY_EMAIL})})
    tom = person("C-1004", "lead")

    assert may_release(tom, ONE, nobodys_id)
    assert not may_release(tom, ONE, nobodys_id, subject="C-1004")
    assert not may_decline(tom, ONE, nobodys_id, subject="C-1004")


def test_a_no_takes_the_role_and_no_limit_that_reaches() -> None:
    sam = SAM.model_copy(update={"limit_minor": 1})
    much = Needs(amount_minor=9_000)

    assert may_decline(sam, much, started())
    assert not may_release(sam, much, started())
    assert not may_decline(sam, Needs(role="lead"), started())
    assert not may_decline(ALEX, much, started())
    assert not may_decline(sam, much, started(), edited_by=SAM)


# The stricter of two needs


def needs() -> st.SearchStrategy[Needs]:
    return st.builds(
        Needs,
        role=st.sampled_from(["approver", "lead"]),
        people=st.integers(1, 5),
        one_of_role=st.sampled_from([None, "approver", "lead"]),
        count_of_role=st.none() | st.integers(2, 5),
        amount_minor=st.none() | st.integers(0, 10),
    )


PEOPLE = [person(f"{role}-{number}", role) for role in ("approver", "lead", "operator") for number in range(5)]


@given(needs(), needs(), st.lists(st.sampled_from(PEOPLE), max_size=10))
def test_people_meet_the_stricter_of_two_needs_if_and_only_if_they_meet_each(
    one: Needs, other: Needs, people: list[Person]
) -> None:
    both = stricter(one, other)

    assert enough(both, people) is (enough(one, people) and enough(other, people))


@given(needs(), needs())
def test_the_stricter_of_two_needs_asks_for_no_more_people_than_one_of_them_does(one: Needs, other: Needs) -> None:
    def fewest(asked: Needs) -> int:
        return next(count for count in range(6) if enough(asked, PEOPLE[5 : 5 + count]))

    both = stricter(one, other)

    assert fewest(both) == max(fewest(one), fewest(other))
    assert both.amount_minor == one.amount_minor


@given(needs(), needs(), needs())
def test_in_which_order_needs_are_put_together_makes_no_difference_to_who_meets_them(
    one: Needs, two: Needs, three: Needs
) -> None:
    left, right = stricter(stricter(one, two), three), stricter(three, stricter(two, one))

    for approvers in range(6):
        for leads in range(6):
            there = PEOPLE[:approvers] + PEOPLE[5 : 5 + leads]
            assert enough(left, there) is enough(right, there)


def test_two_people_of_whom_one_is_a_lead_and_a_lead_are_two_people_of_whom_one_is_a_lead() -> None:
    assert stricter(TWO, Needs(role="lead")) == TWO
    assert stricter(Needs(role="lead"), TWO) == TWO
    assert enough(stricter(TWO, Needs(role="lead")), [SAM, LEE])


def test_three_people_and_two_leads_are_three_people_of_whom_two_are_leads() -> None:
    both = stricter(Needs(people=3), Needs(role="lead", people=2))

    assert enough(both, [SAM, LEE, LIA])
    assert not enough(both, [SAM, SUE, LEE])
    assert describe(both) == "3 people, 2 of them leads"


def test_a_need_that_nobody_can_meet_stays_one_whatever_it_is_put_together_with() -> None:
    nobodys = Needs(one_of_role="boss")

    assert not enough(stricter(TWO, nobodys), [LEE, LIA, SAM])
    assert not enough(stricter(nobodys, TWO), [LEE, LIA, SAM])
