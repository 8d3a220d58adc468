"""The end of a run in which a person declined something, or nobody decided: with a person, unless it was made good."""

from datetime import UTC, datetime, timedelta

import pytest
from agent_runner.domain import overdue
from agent_runner.settings import Settings
from contracts.facts import (
    CallDecided,
    Fact,
    HoldExpired,
    RunEnded,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
)
from contracts.parts import CallQuote, CallResult, Effect, Hold, Json, Person, Verdict
from standin.director import Director

from .house import REPLY, House, end_of, running
from .told import DIGEST, PACK, Told, call, started, text, ticket

CHAT = started(ticket=ticket(channel="chat"))
SAM = Person(subject="sam", issuer="https://id.example", role="approver")


REFUND: Json = {"tool_calls": [{"name": "issue_refund", "input": {"order_reference": "ORD-1"}}]}
IN_A_DAY = datetime.now(UTC) + timedelta(days=1)


def of_a_held_refund(turn: int, call_id: str, became: str, about: str = "ORD-1") -> list[Fact]:
    """What the others say of a turn that proposes one refund."""
    effect = Effect(summary="Refund £180.00 to Mastercard", object=about, amount_minor=18_000, currency="GBP")
    quote = CallQuote(
        call_id=call_id, tool="issue_refund", kind="write", arguments={}, effect=effect, subject="C-1", digest=DIGEST
    )
    approved = became == "approved"
    held = TurnHeld(
        turn=turn,
        attempt=1,
        pack=PACK,
        holds=[Hold(call_id=call_id, digest=DIGEST, rule="large", reason="large")],
        expires_at=IN_A_DAY,
        remind_at=IN_A_DAY,
    )
    decided: Fact = CallDecided(
        turn=turn,
        call_id=call_id,
        digest=DIGEST,
        decision="approve" if approved else "decline",
        by=SAM,
        note="" if approved else "It was worn.",
    )
    if became == "expired":
        decided = HoldExpired(turn=turn, call_ids=[call_id])
    verdict = Verdict(call_id=call_id, verdict="run" if approved else "declined", digest=DIGEST, rule=became)
    result = CallResult(call_id=call_id, content=became, is_error=not approved)
    return [
        TurnQuoted(turn=turn, attempt=1, quotes=[quote]),
        held,
        decided,
        TurnForwarded(turn=turn, attempt=1, pack=PACK, verdicts=[verdict]),
        TurnExecuted(turn=turn, attempt=1, receipt_id=None, results=[result]),
    ]


def asks_for(told: Told, turn: int, became: str, about: str = "ORD-1") -> None:
    told.answers(call(f"c-{turn}", "issue_refund", order_reference=about))
    for fact in of_a_held_refund(turn, f"c-{turn}", became, about):
        told.say(fact)


def end(told: Told) -> RunEnded:
    told.answers(text("I am sorry."))
    fact = told.reacts()
    assert isinstance(fact, RunEnded)
    return fact


def test_a_run_with_a_decline_ends_with_a_person_who_is_told_what_was_declined_by_whom_and_why() -> None:
    told = Told()
    asks_for(told, 1, "declined")
    ended = end(told)
    assert ended.status == "escalated"
    assert "sam declined" in ended.reason
    assert ended.handover == "Declined by sam: Refund £180.00 to Mastercard (ORD-1). They said: It was worn."


def test_a_hold_that_nobody_decided_in_time_is_as_a_decline() -> None:
    told = Told()
    asks_for(told, 1, "expired")
    ended = end(told)
    assert ended.status == "escalated"
    assert ended.handover == "Not decided in time: Refund £180.00 to Mastercard (ORD-1)."


def test_a_later_approval_about_the_same_makes_it_good() -> None:
    told = Told()
    asks_for(told, 1, "declined")
    asks_for(told, 2, "approved")
    assert end(told).status == "resolved"


def test_a_later_approval_about_something_else_does_not() -> None:
    told = Told()
    asks_for(told, 1, "declined")
    asks_for(told, 2, "approved", about="ORD-2")
    assert end(told).status == "escalated"


def test_what_the_agent_handed_over_itself_stays_what_is_handed_over() -> None:
    told = Told()
    asks_for(told, 1, "declined")
    told.answers(call("e", "escalate_to_human", summary="A chargeback.", reason="legal"))
    told.executes()
    assert end(told).handover == "A chargeback.\n\nWhy: legal"


@pytest.mark.parametrize(("became", "status"), [("declined", "escalated"), ("approved", "resolved")])
def test_a_chat_in_which_the_customer_says_nothing_more_ends_as_a_ticket_does(became: str, status: str) -> None:
    told = Told(CHAT)
    asks_for(told, 1, became)
    told.answers(text("I am sorry."))
    assert told.owes() is None
    ended = overdue(told.history.events, told.last)
    assert ended is not None
    assert ended.status == status


@pytest.mark.parametrize(("about", "status"), [(None, "escalated"), ("ORD-1", "resolved"), ("ORD-2", "escalated")])
async def test_the_runner_reads_of_a_run_with_a_decline_what_tells_whether_it_stands(
    home: House, told: Settings, director: Director, about: str | None, status: str
) -> None:
    """What is approved later is about the same order, about another, or there is nothing."""
    home.willing = False
    await director.script("TCK-30", [REFUND, REFUND, REPLY] if about else [REFUND, REPLY])
    async with running(told):
        key = await home.starts("TCK-30-1")
        for turn, became in enumerate(["declined", *(["approved"] if about else [])], 1):
            proposed = (await home.until(key, TurnProposed, turn))[-1]
            assert isinstance(proposed.fact, TurnProposed)
            where = about if about and became == "approved" else "ORD-1"
            for n, fact in enumerate(of_a_held_refund(turn, proposed.fact.calls[0].call_id, became, where)):
                await home.says(key, fact, discriminator=f"{turn} {n}")
        events = await home.ended(key)
    assert end_of(events).status == status
