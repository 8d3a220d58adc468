"""What the agent owes a run, fact by fact."""

from typing import Any

import pytest
from agent_runner.domain import Ask, abandoned, awaits_customer, out_of_money, overdue
from contracts.facts import (
    AnswerUnfinished,
    ReplyGiven,
    RunCancelled,
    RunEnded,
    RunTakenOver,
    TurnExecuted,
    TurnProposed,
)
from contracts.parts import CallResult, Limits

from .told import ALEX, Told, answer, call, started, text, ticket

CHAT = started(ticket=ticket(channel="chat"))


# A ticket, from start to end


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


# Limits


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


# Answers that are neither a turn nor a reply


def test_a_reply_that_was_cut_off_is_continued_and_sent_whole() -> None:
    told = Told()
    cut = told.answers(text("First half,"), stop="max_tokens")
    assert isinstance(cut, AnswerUnfinished)
    assert cut.next == "continue"
    assert [message["role"] for message in told.is_sent()] == ["user", "assistant", "user"]
    reply = told.answers(text(" second half."))
    assert isinstance(reply, ReplyGiven)
    assert reply.text == "First half, second half."
    assert told.run.steps == 2


def test_half_a_turn_is_discarded_whole_and_asked_for_again() -> None:
    told = Told()
    cut = told.answers(text("I will."), call("a"), call("b"), stop="max_tokens")
    assert isinstance(cut, AnswerUnfinished)
    assert (cut.next, cut.content) == ("retry", [])
    [message] = told.is_sent()
    assert "Nothing of it was run" in message["content"][-1]["text"]


def test_a_paused_turn_goes_on_from_its_own_words() -> None:
    told = Told()
    paused = told.answers(text("Looking."), stop="pause_turn")
    assert isinstance(paused, AnswerUnfinished)
    assert told.is_sent()[-1] == {"role": "assistant", "content": [text("Looking.")]}
    told.answers(text(" Found."))
    assert told.run.steps == 2


@pytest.mark.parametrize("said", [(), (text("  \n"),), ({"type": "thinking", "thinking": "x", "signature": "s"},)])
def test_an_answer_without_words_or_calls_is_asked_for_again(said: tuple[Any, ...]) -> None:
    told = Told()
    fact = told.answers(*said)
    assert isinstance(fact, AnswerUnfinished)
    assert (fact.next, fact.stop_reason) == ("retry", "no_text")


def test_a_call_id_that_was_there_before_is_not_run() -> None:
    told = Told()
    told.answers(call("a"))
    told.executes()
    fact = told.answers(call("a"))
    assert isinstance(fact, AnswerUnfinished)
    assert (fact.next, fact.stop_reason) == ("retry", "unusable_calls")


def test_the_third_unfinished_answer_in_a_row_hands_over_to_a_person() -> None:
    told = Told()
    facts = [told.answers(stop="stream_cut") for _ in range(3)]
    assert [fact.next for fact in facts if isinstance(fact, AnswerUnfinished)] == ["retry", "retry", "end"]
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert (end.status, end.steps) == ("escalated", 3)
    assert end.handover


def test_a_context_that_is_full_ends_at_once() -> None:
    told = Told()
    fact = told.answers(text("so"), stop="model_context_window_exceeded")
    assert isinstance(fact, AnswerUnfinished)
    assert fact.next == "end"


def test_a_refusal_of_the_models_escalates_and_counts() -> None:
    told = Told()
    end = told.answers(text("I"), call("a"), stop="refusal", detail="cyber", cost=9)
    assert isinstance(end, RunEnded)
    assert (end.status, end.steps, end.cost_micro_usd) == ("escalated", 1, 9)
    assert "cyber" in end.reason


# Chats


def test_a_chat_waits_for_its_customer_after_a_reply() -> None:
    told = Told(CHAT)
    told.answers(text("How can I help?"))
    assert told.owes() is None
    assert awaits_customer(told.history.events, told.last.id)
    told.customer_says("Where is my order?")
    assert isinstance(told.owes(), Ask)
    assert [message["role"] for message in told.is_sent()] == ["user", "assistant", "user"]


def test_a_message_that_came_while_the_model_spoke_is_answered_next() -> None:
    told = Told(CHAT)
    begun = told.last
    late = told.customer_says("And my refund?")
    assert told.owes(late) is None
    assert "refund" not in str(told.is_sent())
    told.answers(text("It is on its way."), to=begun)
    assert isinstance(told.owes(), Ask)
    assert told.is_sent()[-1] == {"role": "user", "content": [text("And my refund?")]}


def test_messages_during_a_turn_are_put_behind_its_results() -> None:
    told = Told(CHAT)
    begun = told.last
    told.customer_says("one")
    told.answers(call("a"), to=begun)
    assert told.owes(told.customer_says("two")) is None
    told.executes(a="found")
    sent = told.is_sent()
    assert [block.get("text", block.get("content")) for block in sent[-1]["content"]] == ["found", "one", "two"]
    answered = told.answers(text("Both."))
    assert isinstance(answered, ReplyGiven)
    assert told.owes() is None


def test_a_chat_that_was_escalated_ends_with_its_reply() -> None:
    told = Told(CHAT)
    told.answers(call("a", "escalate_to_human", summary="s", reason="r"))
    told.executes()
    told.answers(text("A colleague will be with you."))
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert end.status == "escalated"


def test_a_chat_out_of_steps_ends_when_the_customer_writes_again() -> None:
    told = Told(started(ticket=ticket(channel="chat"), limits=Limits(max_steps=1, max_cost_micro_usd=1_000_000)))
    told.answers(text("Hello."))
    assert told.owes() is None
    told.customer_says("Still there?")
    end = told.reacts()
    assert isinstance(end, RunEnded)
    assert end.status == "budget_exhausted"


# Time, and what nobody could handle


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


def _executed_late(proposed: TurnProposed | None) -> Any:
    assert proposed is not None
    results = [CallResult(call_id=made.call_id, content="Done.") for made in proposed.calls]
    return TurnExecuted(turn=proposed.turn, attempt=1, receipt_id="r", results=results)


def test_an_answer_can_be_kept_and_read_back_unchanged() -> None:
    kept = answer(text("half \U0001f600"), call("a", amount=1.5, nested={"x": [None, True]}))
    assert type(kept).model_validate_json(kept.model_dump_json()) == kept
