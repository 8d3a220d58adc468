"""Answers of the model's that are neither a turn nor a reply."""

from typing import Any

import pytest
from contracts.facts import AnswerUnfinished, ReplyGiven, RunEnded

from .told import Told, answer, call, text


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


def test_an_answer_can_be_kept_and_read_back_unchanged() -> None:
    kept = answer(text("half \U0001f600"), call("a", amount=1.5, nested={"x": [None, True]}))
    assert type(kept).model_validate_json(kept.model_dump_json()) == kept
