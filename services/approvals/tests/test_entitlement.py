"""What approvals records is what `contracts.entitlement` lets each person say: gone over case by case."""

from itertools import product
from typing import Any

import pytest
from contracts.entitlement import Held, Word, bar
from contracts.parts import Customer, Needs, Person
from contracts.people import same
from contracts.testing import person

from .told import ALEX, LEE, SAM, SUE, TWO, Told, hold_of, limited, quote, status

TOM, ADDRESS_ONLY = Customer(email="tom@example.org", id="C-1004"), Customer(email="tom@example.org")
NEEDS = {
    "one": Needs(amount_minor=18000),
    "a lead": Needs(role="lead", amount_minor=18000),
    "two": TWO.model_copy(update={"amount_minor": 18000}),
    "two leads": Needs(role="lead", people=2, one_of_role="lead", amount_minor=18000),
    "nobody knows how much": Needs(),
}
PEOPLE = {
    "approver": SUE,
    "lead": LEE,
    "who approved or changed it": SAM,
    "who started it": ALEX,
    "an operator": person("olga", "operator"),
    "the customer by the shop's id": person("C-1004", "lead"),
    "the customer by address": person("tom@example.org", "lead"),
    "within a limit": limited(SUE, 18000),
    "a penny above a limit": limited(SUE, 17999),
    "a lead above their limit": limited(LEE, 100),
}
# Who approved before, who is named as the editor of the hold, and the ticket's customer.
PARTS: dict[str, tuple[list[Person], Person | None, Customer]] = {
    "nobody": ([], None, TOM),
    "sam approved": ([SAM], None, TOM),
    "lee approved": ([LEE], None, TOM),
    "sam changed it": ([], SAM, TOM),
    "the ticket names an address": ([], None, ADDRESS_ONLY),
}
WORDS: tuple[Word, ...] = ("approve", "decline", "change")
LESS = quote(pence=100, edited=quote().digest)


@pytest.mark.parametrize(("needs", "parts"), list(product(NEEDS, PARTS)))
def test_each_word_is_recorded_of_whom_the_rule_lets_say_it_and_of_nobody_else(needs: str, parts: str) -> None:
    asked, (approved_by, edited_by, customer) = NEEDS[needs], PARTS[parts]
    held = hold_of(quote(), asked, edited_by=edited_by)
    for (who, by), word in product(PEOPLE.items(), WORDS):
        run = Told(customer)
        run.quote(quote())
        run.hold(held)
        seated = [one for one in approved_by if status(run.ask(one, held)) == 200]
        settled = len(seated) == asked.people
        if settled or (word == "approve" and any(same(by, one) for one in seated)):
            continue  # it is over, or it is the same again
        case = Held(ALEX, customer, held, quote(), approved_by=seated)

        outcome = run.ask(by, held, "decline" if word == "decline" else "approve", **changes(word))

        assert (status(outcome) == 200) == (bar(case, by, word) is None), f"{who}: {word}"


def changes(word: Word) -> dict[str, Any]:
    """What the request says beside the decision, and what the shop answers."""
    return {"quoted": LESS, "edited": LESS.arguments} if word == "change" else {}
