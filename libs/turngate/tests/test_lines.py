"""A fact as a line in the terminal."""

from datetime import UTC, datetime

import pytest
from contracts import events, facts
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.subjects import RunKey
from turngate.lines import SAYINGS, line


def event(fact: facts.Fact) -> Event:
    return events.write(
        RunKey("acme", "TCK-2004-1"), Draft(fact, None), None, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    )


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_every_fact_says_something_on_one_line(kind: str) -> None:
    text = line(event(EXAMPLES[kind]))
    assert text.startswith(f"03:04:05  {kind.split('.')[0]}")
    assert "\n" not in text
    assert len(text.split(None, 3)) == 4


def test_who_typed_for_the_customer_is_named() -> None:
    alex = facts.Person(subject="alex", issuer="i", role="operator")
    assert line(event(facts.CustomerSaid(text="Hm?", message_id="m", by=alex))).endswith("“Hm?” (typed by alex)")


def test_no_fact_of_the_catalogue_is_left_out() -> None:
    assert set(SAYINGS) == set(facts.CATALOGUE.values())


def test_what_a_stranger_wrote_cannot_steer_the_terminal() -> None:
    text = line(event(facts.CustomerSaid(text="\x1b[2J\x1b]0;owned\x07gone\u202e", message_id="m")))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\u202e" not in text


def test_a_held_refund_says_who_is_needed() -> None:
    assert "£180.00 is above the £50.00" in line(event(EXAMPLES["policy.turn-held"]))
    assert "Needs 1 approver" in line(event(EXAMPLES["policy.turn-held"]))


def test_a_refund_says_who_released_it_before_the_line_ends() -> None:
    result = facts.CallResult(call_id="call-1", content="Refunded £180.00. " * 20)
    executed = facts.TurnExecuted(
        turn=1, attempt=1, receipt_id="r", results=[result], approved_by={"call-1": ["sam", "lee"]}
    )
    assert "released by sam and lee: Refunded £180.00." in line(event(executed))
