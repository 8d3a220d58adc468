"""Who may have released what, by the facts alone."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from contracts.events import Draft, Event
from contracts.facts import CallDecided, TurnHeld, TurnQuoted
from contracts.memory import MemoryLog
from contracts.parts import CallQuote, Effect, Hold, Needs, Pack, Person
from contracts.subjects import RunKey
from tools_shop import authority
from tools_shop.authority import Record

from .shops import OPERATOR, started_for

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
DIGEST, OTHER = "a" * 64, "b" * 64
KEY = RunKey("acme", "TCK-1-1")
PACK = Pack(name="test", version=1, digest="0" * 64)
ANYBODY = Needs()
BOTH = Needs(role="approver", people=2, one_of_role="lead")


def person(subject: str, role: str = "approver", issuer: str = "https://issuer.test") -> Person:
    return Person(subject=subject, issuer=issuer, role=role)


SAM, SUE, LEE = person("sam"), person("sue"), person("lee", "lead")
LITTLE = person("nia").model_copy(update={"limit_minor": 100})
CUSTOMER = person("C-1", "lead")


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
        pytest.param([decided(LITTLE, "decline"), decided(SUE)], False, id="declined by who may release less"),
        pytest.param([decided(OPERATOR, "decline"), decided(SAM)], True, id="the no of who asked is none"),
        pytest.param([decided(CUSTOMER, "decline"), decided(SAM)], True, id="nor is the customer's"),
        pytest.param([decided(CUSTOMER)], False, id="the customer may not, whom only the shop knows by that id"),
        pytest.param([decided(person("cust-C-1", "lead"))], False, id="nor as the embedded issuer writes it"),
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


def test_who_approved_twice_released_it_once():
    record = Record(started_for("tom@mail.example"), [held(BOTH), decided(SAM), decided(SAM), decided(LEE)])
    assert authority.released_by(record, [quoted()]) == {"a": [SAM, LEE]}


@pytest.mark.parametrize(
    ("of_turn", "of_hold", "of_decision"),
    [
        pytest.param({}, {"needs": Needs(role="lead")}, {}, id="the role that is needed"),
        pytest.param({}, {"needs": Needs(people=2)}, {}, id="how many are"),
        pytest.param({}, {"needs": Needs(one_of_role="lead")}, {}, id="that one of them is a lead"),
        pytest.param({}, {"edited_by": SAM}, {}, id="who changed it"),
        pytest.param({"expires_at": NOON}, {}, {}, id="until when"),
        pytest.param({}, {}, {"by": OPERATOR}, id="who decided"),
        pytest.param({}, {}, {"by": SAM.model_copy(update={"role": "operator"})}, id="as what"),
        pytest.param({}, {}, {"by": SAM.model_copy(update={"limit_minor": 17999})}, id="up to which amount"),
        pytest.param({}, {}, {"digest": OTHER}, id="on which effect"),
        pytest.param({}, {}, {"call_id": "b"}, id="on which call"),
        pytest.param({}, {}, {"turn": 2}, id="in which turn"),
        pytest.param({}, {}, {"decision": "decline"}, id="what they said"),
        pytest.param({}, {}, {"edited": {"amount_pence": 1}}, id="and with which arguments"),
    ],
)
def test_nothing_that_is_on_record_of_a_release_can_be_another(
    of_turn: dict[str, Any], of_hold: dict[str, Any], of_decision: dict[str, Any]
):
    def story(of_turn: dict[str, Any], of_hold: dict[str, Any], of_decision: dict[str, Any]) -> list[Event]:
        (fact, at), (decision, later) = held(), decided(SAM)
        holds = [fact.holds[0].model_copy(update=of_hold)]
        log = MemoryLog()
        said = (
            (fact.model_copy(update={"holds": holds} | of_turn), at),
            (decision.model_copy(update=of_decision), later),
        )
        return [replace(log.say(log.history(KEY), Draft(one, None, str(n))), time=t) for n, (one, t) in enumerate(said)]

    def runs(events: list[Event]) -> bool:
        return not authority.lacking(Record.of(started_for("tom@mail.example"), 1, events), [quoted()], 10000)

    assert runs(story({}, {}, {}))
    assert not runs(story(of_turn, of_hold, of_decision))


@pytest.mark.parametrize(
    ("minor", "decisions", "runs"), [(10000, [], True), (10001, [], False), (10001, [decided(SAM)], True)]
)
def test_without_a_hold_the_floor_still_asks_for_a_person(minor, decisions, runs):
    assert may_run(decisions, holds=[], minor=minor) is runs


def test_a_hold_of_another_effect_asks_nothing_of_this_one():
    assert may_run([], holds=[held(digest=OTHER)], minor=5000)
    assert not may_run([], holds=[held(digest=OTHER)], minor=18000)


# What was held for £180.00 and changed into £120.00


WAS, NOW = quoted(18000), quoted(12000, OTHER, edited=DIGEST)
LESS = {"amount_pence": 12000}
CAREFUL = SAM.model_copy(update={"limit_minor": 12000})


def told(attempt: int, *quotes: CallQuote) -> tuple[TurnQuoted, datetime]:
    return TurnQuoted(turn=1, attempt=attempt, quotes=list(quotes)), NOON


def anew(edited_by: Person | None = None, needs: Needs = ANYBODY) -> tuple[TurnHeld, datetime]:
    fact, time = held(needs, OTHER)
    return fact.model_copy(update={"holds": [fact.holds[0].model_copy(update={"edited_by": edited_by})]}), time


@pytest.mark.parametrize(
    ("said", "now", "runs"),
    [
        pytest.param([decided(SAM, edited=LESS)], NOW, True, id="who lowered it has approved it"),
        pytest.param([decided(SAM, edited=LESS, after=60)], NOW, False, id="not once the hold had expired"),
        pytest.param([decided(OPERATOR, edited=LESS)], NOW, False, id="not who asked for it"),
        pytest.param([decided(SAM)], NOW, False, id="who approved what it was has not approved this"),
        pytest.param([decided(SAM, edited={"amount_pence": 11999})], NOW, False, id="nor who made another of it"),
        pytest.param([decided(SAM, edited=LESS, digest=OTHER)], NOW, False, id="nor of another one"),
        pytest.param([decided(CAREFUL, edited=LESS)], NOW, True, id="within their own limit, which the old was above"),
        pytest.param(
            [decided(CAREFUL.model_copy(update={"limit_minor": 11999}), edited=LESS)], NOW, False, id="not above it"
        ),
        pytest.param([decided(SAM, edited=LESS), decided(SUE, "decline", OTHER)], NOW, True, id="released already"),
        pytest.param([decided(SUE, "decline"), decided(SAM, edited=LESS)], NOW, False, id="declined before"),
        pytest.param(
            [decided(SAM, edited=LESS)], quoted(12000, OTHER, DIGEST, object="ORD-2"), False, id="another order"
        ),
        pytest.param([decided(SAM, edited=LESS)], quoted(12000, OTHER, DIGEST, subject="C-2"), False, id="a stranger"),
        pytest.param(
            [decided(SAM, edited={"amount_pence": 18001})], quoted(18001, OTHER, DIGEST), False, id="more than it was"
        ),
        pytest.param(
            [decided(SAM, edited={"amount_pence": 18001}), anew(), decided(SAM, digest=OTHER)],
            quoted(18001, OTHER, DIGEST),
            False,
            id="nor by another word, though the new hold does not say who asked",
        ),
        pytest.param([decided(SAM, edited=LESS), anew(SAM)], NOW, False, id="unless the new hold says that they asked"),
        pytest.param(
            [decided(SAM, edited=LESS), anew(SAM), decided(SAM, digest=OTHER)], NOW, False, id="whatever else"
        ),
        pytest.param(
            [decided(SAM, edited=LESS), anew(SAM), decided(SUE, digest=OTHER)], NOW, True, id="then another may"
        ),
        pytest.param(
            [anew(SAM), decided(SAM, "decline", OTHER), decided(SUE, digest=OTHER)], NOW, True, id="whose no is none"
        ),
        pytest.param(
            [decided(SAM, edited=LESS), anew(None, BOTH), decided(LEE, digest=OTHER)], NOW, True, id="and one of two"
        ),
        pytest.param(
            [decided(SAM, edited=LESS), anew(None, BOTH), decided(SAM, digest=OTHER)], NOW, False, id="but not both"
        ),
    ],
)
def test_a_call_that_a_person_changed_runs_on_their_word_where_it_carries_over_and_else_on_anothers(said, now, runs):
    record = Record(started_for("tom@mail.example"), [told(1, WAS), held(), told(2, now), *said])
    assert bool(authority.lacking(record, [now], 10000)) is not runs


def test_a_word_that_carried_over_goes_with_the_effect_that_it_brought_and_with_no_later_one():
    later = quoted(12000, "c" * 64, edited=DIGEST)
    said = [told(1, WAS), held(), decided(SAM, edited=LESS), told(2, NOW), told(3, later)]
    record = Record(started_for("tom@mail.example"), said)
    assert not authority.lacking(record, [NOW], 10000)
    assert authority.lacking(record, [later], 10000)


def test_a_call_that_was_changed_needs_what_its_hold_asked_for_however_little_it_moves_now():
    little = quoted(100, OTHER, edited=DIGEST)
    said = [told(1, WAS), held(BOTH), decided(SAM, edited={"amount_pence": 100}), told(2, little)]
    assert authority.lacking(Record(started_for("tom@mail.example"), said), [little], 10000)


@pytest.mark.parametrize(("limit", "runs"), [(18000, True), (17999, False)])
def test_nobody_releases_more_than_their_own_limit_though_the_hold_names_no_amount(limit: int, runs: bool):
    assert may_run([decided(SAM.model_copy(update={"limit_minor": limit}))]) is runs
