"""What the agent owes a ticket's run, fact by fact."""

from typing import Any

import pytest
from agent_runner.domain import Ask
from contracts.facts import ReplyGiven, RunCancelled, RunEnded, RunTakenOver, TurnExecuted, TurnProposed
from contracts.parts import CallResult

from .told import ALEX, Told, call, text


def test_a_run_that_starts_is_put_to_the_model() -> None:
    told = Told()
    assert isinstance(told.owes(), Ask)
    [message] = told.is_sent()
    assert message["role"] == "user"
    assert message["content"][0]["text"].splitlines() == [
        "Ticket TCK-1",
        "From: Tom Field <tom@mail.example>",
        "Subject: My jacket",
        "",
        "<ticket>",
        "Where is it?",
        "</ticket>",
    ]


def test_tool_calls_become_a_turn_with_the_blocks_as_they_came() -> None:
    told = Told()
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    fact = told.answers(thought, text("I will look."), call("a", order_reference="ORD-1"), call("b"))
    assert isinstance(fact, TurnProposed)
    assert fact.turn == 1
    assert fact.content == [thought, text("I will look."), call("a", order_reference="ORD-1"), call("b")]
    assert [(made.call_id, made.arguments) for made in fact.calls] == [("a", {"order_reference": "ORD-1"}), ("b", {})]
    assert told.owes() is None


def test_results_go_back_in_the_order_of_the_calls() -> None:
    told = Told()
    told.answers(text("Looking."), call("a"), call("b"))
    told.executes(b="second", a="first")
    assert isinstance(told.owes(), Ask)
    assert told.is_sent()[1:] == [
        {"role": "assistant", "content": [text("Looking."), call("a"), call("b")]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "first"},
                {"type": "tool_result", "tool_use_id": "b", "content": "second"},
            ],
        },
    ]


def test_a_refused_turn_tells_the_model_so_for_every_call() -> None:
    told = Told()
    told.answers(call("a"), call("b"))
    told.refuses("Nobody may release so much.")
    results = told.is_sent()[-1]["content"]
    assert [(r["tool_use_id"], r["content"], r["is_error"]) for r in results] == [
        ("a", "Nobody may release so much.", True),
        ("b", "Nobody may release so much.", True),
    ]


def test_a_reply_ends_a_ticket_as_resolved() -> None:
    told = Told()
    told.answers(call("a"), cost=7)
    told.executes()
    reply = told.answers(text("It is "), text("on its way."), cost=5)
    assert isinstance(reply, ReplyGiven)
    assert reply.text == "It is on its way."
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert (end.status, end.steps, end.cost_micro_usd) == ("resolved", 2, 12)
    assert told.owes() is None


def test_a_ticket_that_was_escalated_ends_so_with_the_summary() -> None:
    told = Told()
    told.answers(call("a", "escalate_to_human", summary="Tom complains.", reason="Formal complaint."))
    told.executes()
    told.answers(text("A colleague will write to you."))
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert end.status == "escalated"
    assert end.handover == "Tom complains.\n\nWhy: Formal complaint."


def test_an_escalation_that_did_not_run_escalates_nothing() -> None:
    told = Told()
    told.answers(call("a", "escalate_to_human", summary=""))
    told.executes(a=CallResult(call_id="a", content="A summary is needed.", is_error=True))
    told.answers(text("Here is your answer."))
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert end.status == "resolved"


@pytest.mark.parametrize("end", [RunCancelled(by=ALEX), RunTakenOver(by=ALEX)])
def test_a_run_that_has_ended_is_owed_nothing(end: Any) -> None:
    told = Told()
    begun = told.last
    told.say(end)
    assert told.owes(begun) is None


def test_an_effect_recorded_behind_the_end_wakes_nobody() -> None:
    told = Told()
    told.answers(call("a"))
    proposed = told.run.open_turn
    told.say(RunCancelled(by=ALEX))
    late = told.say(_executed_late(proposed))
    assert told.owes(late) is None


def test_an_event_that_was_answered_is_owed_nothing_when_heard_again() -> None:
    told = Told()
    begun = told.last
    told.answers(call("a"))
    assert told.owes(begun) is None
    executed = told.executes()
    told.answers(text("Done."))
    assert told.owes(executed) is None


def test_a_reply_cites_the_articles_that_it_names_and_no_others() -> None:
    told = Told()
    told.answers(call("a", "search_help_centre", question="returns?"))
    sources = [
        {"article": article, "title": title, "section": section}
        for article, title, section in (
            ("returns", "Returning an order", "How long"),
            ("delivery", "Delivery times", "Abroad"),
            ("returns", "Returning an order", "Refunds"),
        )
    ]
    told.executes(a=CallResult(call_id="a", content="…", data={"citations": sources}))
    reply = told.answers(text('You have 30 days, see "returning an order".'))
    assert isinstance(reply, ReplyGiven)
    assert reply.citations == ["returns#How long"]


def _executed_late(proposed: TurnProposed | None) -> Any:
    assert proposed is not None
    results = [CallResult(call_id=made.call_id, content="Done.") for made in proposed.calls]
    return TurnExecuted(turn=proposed.turn, attempt=1, receipt_id="r", results=results)
