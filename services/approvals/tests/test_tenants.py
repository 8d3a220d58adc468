"""What people say of their tenant: stops, the policy in force, the budget, subscribers; each once, by who may."""

from collections.abc import Sequence
from typing import Any

import pytest
from approvals import tenants
from approvals.answers import Recorded
from contracts.answers import No
from contracts.asks import SAY_OF_TENANT
from contracts.canonical import sha256
from contracts.events import Draft, Event
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.parts import Json, Pack, Person
from contracts.subjects import TenantKey
from contracts.tenant_facts import (
    BudgetSet,
    CustomerErased,
    PolicyPromoted,
    StopLifted,
    StopSet,
    SubscriberAdded,
    SubscriberRemoved,
)
from contracts.testing import person
from pydantic import ValidationError

from .told import ALEX, LEE, SAM, detail, principal, status

ADA, ABE = person("ada", "admin"), person("abe", "admin")
STOP: Json = {"say": "stop-set", "tool": "issue_refund", "above_minor": 10000, "reason": "A wave of false claims."}
LIFT: Json = {"say": "stop-lifted", "stop_id": "stop-1", "reason": "It is over."}
BUDGET: Json = {"say": "budget-set", "day_micro_usd": 50_000_000}
ERASE: Json = {"say": "customer-erased", "customer": "C-1004"}
ADD: Json = {"say": "subscriber-added", "subscriber": "warehouse"}
REMOVE: Json = {"say": "subscriber-removed", "subscriber": "warehouse"}
PROMOTE: Json = {"say": "policy-promoted", "text": "name: acme", "report": {"would_change": 3}}


def pack(version: int = 2, text: str = "name: acme") -> Pack:
    return Pack(name="acme", version=version, digest=sha256(text))


class Line:
    """A tenant's own line, and what people say in it."""

    def __init__(self) -> None:
        self.log = MemoryLog()

    @property
    def history(self) -> History:
        return self.log.history(TenantKey("acme"))

    def say(
        self, body: Json, by: Person = ADA, read: Pack | None = None, warnings: Sequence[str] = (), **more: Any
    ) -> Event | Recorded | No:
        asked = SAY_OF_TENANT.validate_python({"token": "t", **body, **more})
        barred = tenants.barred(asked, principal(by))
        outcome = barred or tenants.decide(self.history, asked, principal(by), read, warnings)
        return self.log.say(self.history, outcome) if isinstance(outcome, Draft) else outcome

    def recorded(self, body: Json, by: Person = ADA, read: Pack | None = None, **more: Any) -> Event:
        event = self.say(body, by, read, **more)
        assert isinstance(event, Event), event
        return event


@pytest.fixture
def line() -> Line:
    return Line()


def test_each_word_becomes_a_fact_of_the_tenant_that_says_who(line: Line) -> None:
    said = [line.say(STOP), line.say(LIFT), line.say(PROMOTE, LEE, pack())]
    said += [line.say(body) for body in (BUDGET, ERASE, ADD, REMOVE)]

    assert [event.fact for event in said if isinstance(event, Event)] == [
        StopSet(stop_id="stop-1", tool="issue_refund", above_minor=10000, reason="A wave of false claims.", by=ADA),
        StopLifted(stop_id="stop-1", reason="It is over.", by=ADA),
        PolicyPromoted(pack=pack(), text="name: acme", report={"would_change": 3}, by=LEE),
        BudgetSet(day_micro_usd=50_000_000, by=ADA),
        CustomerErased(customer="C-1004", by=ADA),
        SubscriberAdded(subscriber="warehouse", by=ADA),
        SubscriberRemoved(subscriber="warehouse", by=ADA),
    ]


@pytest.mark.parametrize(
    ("body", "by", "scope"),
    [
        *((STOP, by, "stop") for by in (ALEX, SAM, LEE, person("ari", "auditor"), person("cust-1", "customer"))),
        *((LIFT, by, "stop") for by in (ALEX, SAM, LEE)),
        *((BUDGET, by, "stop") for by in (ALEX, SAM, LEE)),
        *((ERASE, by, "erase") for by in (ALEX, SAM, LEE)),
        *((body, by, "subscribers") for body in (ADD, REMOVE) for by in (ALEX, SAM, LEE, person("ari", "auditor"))),
        *((PROMOTE, by, "policy") for by in (ALEX, SAM, ADA)),
    ],
)
def test_who_may_not_say_it_is_told_which_scope_it_needs(line: Line, body: Json, by: Person, scope: str) -> None:
    no = line.say(body, by, pack())

    assert status(no) == 403
    assert isinstance(no, No)
    assert f"the scope {scope}" in no.detail
    assert line.log.accepted == []


def test_what_nobody_could_release_by_a_pack_is_on_record_with_its_promotion(line: Line) -> None:
    warned = line.say(PROMOTE, LEE, pack(), warnings=["Nobody can release refunds of up to £2,000.00."])

    assert isinstance(warned, Event)
    assert warned.fact == PolicyPromoted(
        pack=pack(),
        text="name: acme",
        report={"would_change": 3},
        by=LEE,
        warnings=["Nobody can release refunds of up to £2,000.00."],
    )


def test_a_stop_that_was_never_set_is_not_lifted(line: Line) -> None:
    assert status(line.say(LIFT)) == 404


def test_a_stop_is_lifted_once(line: Line) -> None:
    line.say(STOP)
    line.say(LIFT)

    no = line.say(LIFT, ABE)

    assert status(no) == 409
    assert isinstance(no, No)
    assert no.detail == "ada lifted the stop stop-1. Nothing was changed."


def test_stops_are_numbered_or_bear_the_name_that_they_are_given(line: Line) -> None:
    line.say(STOP)
    line.say(STOP, stop_id="fraud")
    line.say(STOP)

    assert [stop.stop_id for stop in line.history.all(StopSet)] == ["stop-1", "fraud", "stop-3"]


def test_a_name_that_a_stop_has_had_is_not_given_again(line: Line) -> None:
    line.say(STOP, stop_id="fraud")
    line.say(LIFT, stop_id="fraud")

    assert status(line.say(STOP, ABE, stop_id="fraud")) == 409


@pytest.mark.parametrize(
    ("body", "by"),
    [(STOP, ADA), (STOP | {"stop_id": "fraud"}, ADA), (PROMOTE, LEE), (BUDGET, ADA), (ERASE, ADA), (ADD, ADA)],
)
def test_the_same_request_again_brings_the_same_fact(line: Line, body: Json, by: Person) -> None:
    first = line.recorded(body, by, pack(), request="r-1")
    line.say(STOP)
    other_token = by.model_copy(update={"token_id": "another"})

    assert line.say(body, other_token, pack(), request="r-1") == Recorded(first, repeated=True)
    assert len(line.log.accepted) == 2


def test_the_same_lift_again_brings_the_same_fact_and_another_one_a_no(line: Line) -> None:
    line.say(STOP)
    first = line.recorded(LIFT, request="r-1")

    assert line.say(LIFT, request="r-1") == Recorded(first, repeated=True)
    assert status(line.say(LIFT, request="r-2")) == 409


def test_a_request_key_is_not_used_for_something_else(line: Line) -> None:
    line.say(BUDGET, request="r-1")

    assert status(line.say(BUDGET, request="r-1", day_micro_usd=1)) == 409
    assert len(line.log.accepted) == 1


def test_a_stop_of_the_same_name_by_the_same_person_is_the_same_stop(line: Line) -> None:
    first = line.recorded(STOP, stop_id="fraud")

    assert line.say(STOP, stop_id="fraud") == Recorded(first, repeated=True)
    assert status(line.say(STOP, ABE, stop_id="fraud")) == 409
    assert status(line.say(STOP, stop_id="fraud", above_minor=1)) == 409


def test_request_keys_are_each_persons_own(line: Line) -> None:
    line.say(STOP, request="r-1")

    assert isinstance(line.say(STOP, ABE, request="r-1"), Event)


def test_without_a_key_each_request_is_a_new_one(line: Line) -> None:
    for _ in range(3):
        line.say(BUDGET)

    assert len({event.id for event in line.log.accepted}) == 3


def test_a_subscriber_is_added_once_and_removed_once_and_then_added_anew(line: Line) -> None:
    nobody = line.say(REMOVE)
    line.say(ADD)
    twice = line.say(ADD, ABE)
    other = line.say(ADD, ABE, subscriber="billing")
    line.say(REMOVE, ABE)
    gone = line.say(REMOVE)

    assert [status(no) for no in (nobody, twice, other, gone)] == [409, 409, 200, 409]
    assert detail(nobody) == detail(gone) == "There is no subscriber warehouse of this tenant. Nothing was changed."
    assert detail(twice) == "ada added warehouse. Remove it first to add it anew; nothing was changed."
    assert status(line.say(ADD)) == 200


def test_the_pack_in_force_is_not_promoted_again_and_no_version_has_two_texts(line: Line) -> None:
    assert status(line.say(PROMOTE, LEE, pack(2))) == 200
    assert status(line.say(PROMOTE, LEE, pack(2))) == 409
    assert status(line.say(PROMOTE, LEE, pack(2, "other"))) == 409
    assert status(line.say(PROMOTE, LEE, pack(3, "other"))) == 200
    assert status(line.say(PROMOTE, LEE, pack(2))) == 200, "back to an earlier one"


def test_nothing_is_promoted_that_policy_has_not_read(line: Line) -> None:
    assert status(line.say(PROMOTE, LEE, None)) == 422


def test_a_budget_may_be_taken_away(line: Line) -> None:
    assert status(line.say(BUDGET, day_micro_usd=None)) == 200
    assert line.history.last(BudgetSet) == BudgetSet(day_micro_usd=None, by=ADA)


@pytest.mark.parametrize(
    "body",
    [
        {"say": "stop-everything", "reason": "x"},
        STOP | {"reason": "  "},
        STOP | {"above_minor": -1},
        STOP | {"above_minor": "100"},
        STOP | {"stop_id": "a b"},
        STOP | {"tenant": "globex"},
        STOP | {"by": "lee"},
        PROMOTE | {"text": ""},
        PROMOTE | {"pack": {"name": "acme", "version": 9, "digest": sha256("mine")}},
        PROMOTE | {"report": {"x": "y" * 20_000}},
        {"say": "budget-set"},
        ERASE | {"customer": "C 1004"},
        BUDGET | {"day_micro_usd": 1.5},
        ADD | {"subscriber": "a b"},
        ADD | {"subscriber": "x" * 65},
        ADD | {"tenant": "globex"},
        {},
    ],
)
def test_what_is_no_word_of_a_tenant_is_not_taken(body: Json) -> None:
    with pytest.raises(ValidationError):
        SAY_OF_TENANT.validate_python({"token": "t", **body})
