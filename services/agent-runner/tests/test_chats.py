"""What the agent owes a chat, whose customer writes when they like."""

from agent_runner.domain import Ask, awaits_customer
from contracts.facts import ReplyGiven, RunEnded
from contracts.parts import Limits

from .told import Told, call, started, text, ticket

CHAT = started(ticket=ticket(channel="chat"))


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
