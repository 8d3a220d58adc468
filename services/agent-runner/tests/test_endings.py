"""The ends that the agent gives a run: what it may cost, how long it may take, and what nobody could handle."""

import pytest
from agent_runner.domain import abandoned, overdue
from agent_runner.endings import DayFull, out_of_days_money, out_of_money
from contracts.facts import RunEnded
from contracts.parts import Limits

from .told import Told, call, started, text, ticket

CHAT = started(ticket=ticket(channel="chat"))


@pytest.mark.parametrize("limit", [1, 2, 12])
def test_a_looping_agent_is_asked_exactly_as_often_as_its_limit_says(limit: int) -> None:
    told = Told(started(limits=Limits(max_steps=limit, max_cost_micro_usd=1_000_000)))
    for step in range(limit):
        told.answers(call(f"c{step}"))
        told.executes()
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert (end.status, end.steps) == ("budget_exhausted", limit)
    assert str(limit) in end.reason


def test_a_reply_with_the_last_step_is_in_time() -> None:
    told = Told(started(limits=Limits(max_steps=1, max_cost_micro_usd=1_000_000)))
    told.answers(text("Here you are."))
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert end.status == "resolved"


def test_running_out_of_money_names_both_sums() -> None:
    told = Told(started(limits=Limits(max_steps=12, max_cost_micro_usd=250_000)))
    told.answers(call("a"), cost=240_000)
    end = out_of_money(told.run)
    assert end.status == "budget_exhausted"
    assert "$0.2400 of the run's $0.2500" in end.reason


def test_a_day_without_room_names_its_sums_what_was_not_done_and_what_to_do() -> None:
    end = out_of_days_money(Told().run, DayFull(budget=5_000_000, taken=4_990_000, asked=20_000))
    assert end.status == "budget_exhausted"
    for word in ("$5.0000 a day", "$4.9900", "$0.0200", "Nothing was done in this step", "turngate budget"):
        assert word in end.reason


def test_a_day_without_room_does_not_lose_what_the_agent_was_handing_over() -> None:
    told = Told()
    told.answers(call("a", "escalate_to_human", summary="A chargeback.", reason="legal"))
    told.executes()
    end = out_of_days_money(told.run, DayFull(budget=0, taken=0, asked=1))
    assert end.handover is not None
    assert "A chargeback." in end.handover


def test_a_silent_customer_ends_a_chat_and_a_later_word_saves_it() -> None:
    told = Told(CHAT)
    told.answers(text("Anything else?"))
    reply = told.last
    end = overdue(told.history.events, reply)
    assert end is not None
    assert end.status == "resolved"
    told.customer_says("Yes.")
    assert overdue(told.history.events, reply) is None
    told.answers(text("Go on."))
    assert overdue(told.history.events, reply) is None


def test_a_run_older_than_its_life_goes_to_a_person_unless_it_has_ended() -> None:
    told = Told()
    begun = told.last
    end = overdue(told.history.events, begun)
    assert end is not None
    assert end.status == "escalated"
    told.say(end)
    assert overdue(told.history.events, begun) is None


def test_a_run_with_a_dead_letter_fails_without_internals() -> None:
    told = Told()
    end = abandoned(told.history.events, "tools-shop", "agent.turn-proposed", "tools-shop-7")
    assert end is not None
    assert end.status == "failed"
    assert "tools-shop-7" in end.reason
    told.say(end)
    assert abandoned(told.history.events, "tools-shop", "agent.turn-proposed", "tools-shop-7") is None
