"""Who may have released what, by the facts alone."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contracts.facts import CallDecided, CallQuote, Effect, Hold, Needs, Pack, Person, TurnHeld
from tools_shop import authority
from tools_shop.authority import Record

from .shops import OPERATOR, started_for

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DIGEST, OTHER = "a" * 64, "b" * 64
PACK = Pack(name="test", version=1, digest="0" * 64)
ANYBODY = Needs()
BOTH = Needs(role="approver", people=2, one_of_role="lead")


def person(subject: str, role: str = "approver", issuer: str = "https://issuer.test") -> Person:
    return Person(subject=subject, issuer=issuer, role=role)


SAM, SUE, LEE = person("sam"), person("sue"), person("lee", "lead")


def decided(by: Person, decision: str = "approve", digest: str = DIGEST, after: int = 1, edited=None) -> tuple:
    fact = CallDecided(turn=1, call_id="a", digest=digest, decision=decision, by=by, edited=edited)
    return fact, NOON + timedelta(minutes=after)


def held(needs: Needs = ANYBODY, digest: str = DIGEST) -> tuple[TurnHeld, datetime]:
    hold = Hold(call_id="a", digest=digest, rule="above-limit", reason="much", needs=needs)
    expires = NOON + timedelta(hours=1)
    return TurnHeld(turn=1, attempt=1, pack=PACK, holds=[hold], expires_at=expires, remind_at=NOON), NOON


def quoted(minor: int = 18000, digest: str = DIGEST, edited: str | None = None, **more: Any) -> CallQuote:
    effect = Effect(summary="Refund", object=more.pop("object", "ORD-1"), amount_minor=minor, currency="GBP")
    base: dict[str, Any] = {"subject": "C-1", "arguments": {"amount_pence": minor}} | more
    return CallQuote(
        call_id="a", tool="issue_refund", kind="write", effect=effect, digest=digest, edited=edited, **base
    )


def may_run(
    decisions: Sequence[tuple], *, holds: Sequence[tuple] = (held(),), minor: int = 18000, floor: int = 10000
) -> bool:
    record = Record(started_for("tom@mail.example"), [*holds, *decisions])
    return not authority.lacking(record, [quoted(minor)], floor)


@pytest.mark.parametrize(
    ("decisions", "runs"),
    [
        pytest.param([decided(SAM)], True, id="an approver approved"),
        pytest.param([], False, id="nobody did"),
        pytest.param([decided(OPERATOR)], False, id="an operator is no approver"),
        pytest.param([decided(person("alex", "lead"))], False, id="who asked may not, whatever the role"),
        pytest.param([decided(person("alex", "lead", "https://elsewhere.test"))], True, id="somebody else's alex may"),
        pytest.param([decided(person("tom@mail.example", "lead"))], False, id="the customer may not"),
        pytest.param([decided(person("Tom@Mail.Example", "lead"))], False, id="however they spell their e-mail"),
        pytest.param([decided(SAM, digest=OTHER)], False, id="another effect was approved"),
        pytest.param([decided(SAM, edited={"amount_pence": 1})], False, id="another call was approved"),
        pytest.param([decided(SAM, after=60)], False, id="at the expiry it is too late"),
        pytest.param([decided(SAM, "decline"), decided(SUE)], False, id="declined first"),
        pytest.param([decided(SAM), decided(SUE, "decline")], True, id="declined when it was released already"),
    ],
)
def test_a_held_call_runs_on_the_decision_that_its_hold_asked_for(decisions, runs):
    assert may_run(decisions) is runs


@pytest.mark.parametrize(
    ("decisions", "runs"),
    [
        pytest.param([decided(SAM), decided(LEE)], True, id="an approver and a lead"),
        pytest.param([decided(LEE), decided(LEE)], False, id="one lead twice"),
        pytest.param([decided(SAM), decided(SUE)], False, id="no lead"),
        pytest.param([decided(SAM), decided(LEE, "decline")], False, id="one of them declined"),
    ],
)
def test_where_two_people_are_needed_they_are_different_and_one_is_a_lead(decisions, runs):
    assert may_run(decisions, holds=[held(BOTH)]) is runs


@pytest.mark.parametrize(
    ("minor", "decisions", "runs"), [(10000, [], True), (10001, [], False), (10001, [decided(SAM)], True)]
)
def test_without_a_hold_the_floor_still_asks_for_a_person(minor, decisions, runs):
    assert may_run(decisions, holds=[], minor=minor) is runs


def test_a_hold_of_another_effect_asks_nothing_of_this_one():
    assert may_run([], holds=[held(digest=OTHER)], minor=5000)
    assert not may_run([], holds=[held(digest=OTHER)], minor=18000)
