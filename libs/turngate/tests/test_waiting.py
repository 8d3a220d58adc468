"""Which calls of a run still wait for somebody, by its facts."""

from typing import Any

import pytest
from contracts.examples import EXAMPLES
from contracts.facts import CallDecided, Fact, TurnForwarded, TurnHeld
from contracts.parts import Needs, Person
from turngate.commands.decisions import holds_to_decide
from turngate.embedded.trouble import Trouble
from turngate.waiting import waiting

HELD = EXAMPLES["policy.turn-held"]
assert isinstance(HELD, TurnHeld)
FIRST = HELD.holds[0]
TWO = HELD.model_copy(update={"holds": [FIRST, FIRST.model_copy(update={"call_id": "c-second"})]})


def person(name: str, role: str = "approver") -> Person:
    return Person(subject=name, issuer="urn:i", role=role)


def document(fact: Fact) -> dict[str, Any]:
    return {"id": str(id(fact)), "type": f"turngate.{fact.kind}.v1", "data": fact.model_dump(mode="json")}


def decided(call_id: str, by: Person, decision: str = "approve", **more: Any) -> Fact:
    fields = {"turn": TWO.turn, "call_id": call_id, "digest": FIRST.digest, "decision": decision, "by": by, **more}
    return CallDecided.model_validate(fields)


def left(*facts: Fact) -> list[str]:
    return [hold.call_id for hold in waiting([document(fact) for fact in facts])]


def test_what_nobody_has_decided_waits() -> None:
    assert left(TWO) == [FIRST.call_id, "c-second"]
    assert left() == []


@pytest.mark.parametrize("how", [{"decision": "decline"}, {"edited": {"amount_pence": 1}}, {}])
def test_what_is_declined_changed_or_approved_by_enough_people_waits_no_more(how: dict[str, Any]) -> None:
    assert left(TWO, decided(FIRST.call_id, person("lee", "lead"), **how)) == ["c-second"]


def test_one_of_two_who_are_needed_is_not_enough() -> None:
    two = FIRST.model_copy(update={"needs": Needs(role="approver", people=2, one_of_role="lead")})
    held = TWO.model_copy(update={"holds": [two]})
    sam, sue, lee = (decided(two.call_id, person(*who)) for who in (("sam",), ("sue",), ("lee", "lead")))
    assert left(held, sam) == [two.call_id]
    assert left(held, sam, sue) == [two.call_id]
    assert left(held, sam, lee) == []


def test_nothing_waits_once_the_turn_went_on_and_what_is_held_anew_does() -> None:
    forwarded = EXAMPLES["policy.turn-forwarded"]
    assert isinstance(forwarded, TurnForwarded)
    assert left(TWO, forwarded) == []
    assert left(TWO, forwarded, TWO) == [FIRST.call_id, "c-second"]


def test_a_call_that_is_named_is_decided_again_without_a_name_those_that_wait_and_where_none_does_all() -> None:
    facts = [document(TWO), document(decided(FIRST.call_id, person("sam"), "decline"))]
    assert [one["call_id"] for one in holds_to_decide("T-1", facts)] == ["c-second"]
    assert [one["call_id"] for one in holds_to_decide("T-1", facts, FIRST.call_id)] == [FIRST.call_id]
    with pytest.raises(Trouble, match="it holds"):
        holds_to_decide("T-1", facts, "c-none")
    facts.append(document(decided("c-second", person("sam"), "decline")))
    assert [one["call_id"] for one in holds_to_decide("T-1", facts)] == [FIRST.call_id, "c-second"]
