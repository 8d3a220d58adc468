"""Runs told fact by fact, fair ones first: what verify has nothing to say about."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts import facts as f
from contracts import parts
from contracts.canonical import sha256
from contracts.events import Draft, Event
from contracts.memory import MemoryLog
from contracts.subjects import RunKey

KEY = RunKey("acme", "TCK-2004-1")
BEGIN = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
# A fact, or a while that passes before the next one.
Step = f.Fact | timedelta
Story = list[Step]


def person(name: str, role: str, issuer: str = "https://issuer.example") -> parts.Person:
    return parts.Person(subject=name, issuer=issuer, role=role)


ALEX, SAM, SUE = person("alex", "operator"), person("sam", "approver"), person("sue", "approver")
LEE = person("lee", "lead")
PACK = parts.Pack(name="acme", version=1, digest=sha256("pack"))
READ, REFUND = "call-read", "call-refund"
PROPOSED = sha256("proposed")


def started(by: parts.Person = ALEX, **limits: int) -> f.RunStarted:
    return f.RunStarted(
        ticket=parts.Ticket(
            reference="TCK-2004",
            customer=parts.Customer(email="tom@example.com", id="cust-1"),
            subject="Jacket",
            body="Hi",
        ),
        profile="support",
        requested_by=by,
        limits=parts.Limits(**{"max_steps": 4, "max_cost_micro_usd": 4_000, **limits}),
        model="stand-in",
        prompt_version="support/1",
        policy_pack="acme",
        toolset="shop",
    )


def proposed(turn: int = 1, calls: Iterable[str] = (READ, REFUND), cost: int = 1_000) -> f.TurnProposed:
    return f.TurnProposed(
        turn=turn,
        agent="support",
        content=[],
        calls=[parts.ToolCall(call_id=call, tool=call.removeprefix("call-"), arguments={}) for call in calls],
        stop_reason="tool_use",
        usage=parts.Usage(),
        cost_micro_usd=cost,
        request_digest=PROPOSED,
        tools_digest=PROPOSED,
    )


def digest(call: str, world: str = "") -> str:
    return sha256([call, world if call == REFUND else ""])


def quoted(
    attempt: int = 1,
    world: str = "",
    *,
    turn: int = 1,
    calls: Iterable[str] = (READ, REFUND),
    amount: int = 9_000,
    edited: str | None = None,
) -> f.TurnQuoted:
    """`world` is what the refund's digest depends on, `edited` the one that it was changed from by a person."""
    return f.TurnQuoted(
        turn=turn,
        attempt=attempt,
        quotes=[
            parts.CallQuote(
                call_id=call,
                tool=call.removeprefix("call-"),
                kind="write" if call == REFUND else "read",
                arguments={} if edited is None or call != REFUND else {"amount_pence": amount},
                digest=digest(call, world),
                **(_money(amount, edited) if call == REFUND else {}),
            )
            for call in calls
        ],
    )


def _money(amount: int, edited: str | None) -> dict[str, Any]:
    effect = parts.Effect(summary="Refund", object="ORD-1", amount_minor=amount, currency="GBP")
    return {"effect": effect, "edited": None if edited is None else digest(REFUND, edited)}


def held(
    attempt: int = 1,
    world: str = "",
    *,
    people: int = 1,
    one_of_role: str | None = None,
    amount: int | None = None,
    **changes: Any,
) -> f.TurnHeld:
    return f.TurnHeld.model_validate(
        {
            "turn": 1,
            "attempt": attempt,
            "pack": PACK,
            "holds": [
                parts.Hold(
                    call_id=REFUND,
                    digest=digest(REFUND, world),
                    rule="refund.above_automatic",
                    reason="large",
                    needs=parts.Needs(people=people, one_of_role=one_of_role, amount_minor=amount),
                )
            ],
            "will_run": [READ],
            "remind_at": BEGIN + 18 * HOUR,
            "expires_at": BEGIN + 24 * HOUR,
        }
        | changes
    )


def decided(
    by: parts.Person = SAM,
    decision: str = "approve",
    world: str = "",
    *,
    call: str = REFUND,
    edited: parts.Json | None = None,
) -> f.CallDecided:
    return f.CallDecided.model_validate(
        {
            "turn": 1,
            "call_id": call,
            "digest": digest(call, world),
            "decision": decision,
            "by": by,
            "edited": edited,
        }
    )


def forwarded(
    attempt: int = 1,
    world: str = "",
    *,
    declined: Iterable[str] = (),
    turn: int = 1,
    calls: Iterable[str] = (READ, REFUND),
) -> f.TurnForwarded:
    return f.TurnForwarded(
        turn=turn,
        attempt=attempt,
        pack=PACK,
        verdicts=[
            parts.Verdict(
                call_id=call,
                verdict="declined" if call in declined else "run",
                digest=digest(call, world),
                rule="some.rule",
            )
            for call in calls
        ],
    )


def executed(
    attempt: int = 1, *, failed: Iterable[str] = (), turn: int = 1, calls: Iterable[str] = (READ, REFUND)
) -> f.TurnExecuted:
    return f.TurnExecuted(
        turn=turn,
        attempt=attempt,
        receipt_id="receipt",
        results=[parts.CallResult(call_id=call, content="done", is_error=call in failed) for call in calls],
    )


def refused(attempt: int = 1, calls: Iterable[str] = (READ, REFUND)) -> f.TurnRefused:
    return f.TurnRefused(
        turn=1,
        attempt=attempt,
        pack=PACK,
        rule="refund.too_large",
        results=[parts.CallResult(call_id=call, content="no", is_error=True) for call in calls],
    )


def replied(cost: int = 1_000) -> f.ReplyGiven:
    return f.ReplyGiven(
        content=[],
        text="Done.",
        stop_reason="end_turn",
        usage=parts.Usage(),
        cost_micro_usd=cost,
        request_digest=PROPOSED,
    )


def ended(status: str = "resolved", steps: int = 2, cost: int = 2_000) -> f.RunEnded:
    return f.RunEnded.model_validate({"status": status, "reason": "done", "steps": steps, "cost_micro_usd": cost})


def unfinished(cost: int = 1_000) -> f.AnswerUnfinished:
    return f.AnswerUnfinished(
        content=[],
        stop_reason="max_tokens",
        usage=parts.Usage(),
        cost_micro_usd=cost,
        request_digest=PROPOSED,
        next="continue",
    )


def tell(story: Story, key: RunKey = KEY) -> list[Event]:
    """The story as a log would hold it, each fact caused by the one before it, a minute after it."""
    now = BEGIN
    log = MemoryLog(lambda: now)
    for step in story:
        if isinstance(step, timedelta):
            now += step
            continue
        history = log.history(key)
        log.say(history, Draft(step, history.head))
        now += timedelta(minutes=1)
    return log.accepted


HELD: Story = [started(), proposed(), quoted(), held()]
TWO_NEEDED: Story = [started(), proposed(), quoted(), held(people=2, one_of_role="lead")]
THE_END: Story = [replied(), ended()]
RELEASED: Story = [*HELD, decided(), forwarded(), executed(), *THE_END]
READ_ONLY: Story = [
    started(), proposed(calls=[READ]), quoted(calls=[READ]), forwarded(calls=[READ]), executed(calls=[READ]), *THE_END
]  # fmt: skip

FAIR: dict[str, Story] = {
    "nothing yet": [started()],
    "a reply at once": [started(), replied(), ended(steps=1, cost=1_000)],
    "a turn that only reads": READ_ONLY,
    "a write without a hold": [started(), proposed(), quoted(), forwarded(), executed(), *THE_END],
    "a held write that is released": RELEASED,
    "two people, one of them a lead": [*TWO_NEEDED, decided(SAM), decided(LEE), forwarded(), executed(), *THE_END],
    "a decline": [
        *HELD, decided(decision="decline"), forwarded(declined=[REFUND]), executed(failed=[REFUND]), *THE_END
    ],
    "one of two is enough to decline": [
        *TWO_NEEDED, decided(SAM), decided(LEE, "decline"), forwarded(declined=[REFUND]), executed(failed=[REFUND]),
        *THE_END,
    ],
    "a no of somebody whose no does not count": [
        *HELD, decided(ALEX, "decline"), decided(), forwarded(), executed(), *THE_END
    ],
    "an expiry": [
        *HELD, 18 * HOUR, f.ReminderSent(turn=1, call_ids=[REFUND], role="approver"),
        f.HoldEscalated(turn=1, call_ids=[REFUND], role="lead"), 6 * HOUR, f.HoldExpired(turn=1, call_ids=[REFUND]),
        forwarded(declined=[REFUND]), executed(failed=[REFUND]), *THE_END,
    ],
    "someone who may not": [
        *HELD, f.DecisionRefused(turn=1, call_id=REFUND, by=ALEX, decision="approve", reason="yours"), decided(),
        forwarded(), executed(), *THE_END,
    ],
    "a refusal": [started(), proposed(), quoted(), refused(), *THE_END],
    "a refusal while it is held": [*HELD, decided(), refused(), *THE_END],
    "the world changes, and what was approved stays": [
        *HELD, decided(), forwarded(), quoted(2), forwarded(2), executed(2), *THE_END
    ],
    "the world changes, and what was approved with it": [
        *HELD, decided(), forwarded(), quoted(2, "new"), held(2, "new"), decided(SAM, world="new"), forwarded(2, "new"),
        executed(2), *THE_END,
    ],
    "the world changes until it is enough": [
        started(), proposed(), quoted(), forwarded(), quoted(2, "b"), forwarded(2, "b"), quoted(3, "c"),
        forwarded(3, "c"), quoted(4, "d"), refused(4), *THE_END,
    ],
    "an edit that needs no hold": [
        *HELD, decided(SAM, edited={"amount_pence": 1}), quoted(2, "less", amount=1, edited=""), forwarded(2, "less"),
        executed(2), *THE_END,
    ],
    "an edit that brings it within the editor's own limit": [
        *HELD[:3], held(amount=9_000),
        decided(SAM.model_copy(update={"limit_minor": 5_000}), edited={"amount_pence": 5_000}),
        quoted(2, "less", amount=5_000, edited=""), forwarded(2, "less"), executed(2), *THE_END,
    ],
    "an edit of one of two that the other releases": [
        *TWO_NEEDED, decided(SAM, edited={"amount_pence": 1}), quoted(2, "less", amount=1, edited=""),
        held(2, "less", people=2, one_of_role="lead"), decided(LEE, world="less"), forwarded(2, "less"), executed(2),
        *THE_END,
    ],
    "an edit that another person releases": [
        *HELD, decided(SAM, edited={"amount_pence": 9_001}), quoted(2, "more", amount=9_001, edited=""),
        held(2, "more"), decided(SUE, world="more"), forwarded(2, "more"), executed(2), *THE_END,
    ],
    "a call that will fail": [
        started(), proposed(), quoted(), forwarded(), executed(failed=[REFUND]), *THE_END
    ],
    "two turns": [
        started(), proposed(), quoted(), forwarded(), executed(), proposed(2, [READ]), quoted(turn=2, calls=[READ]),
        forwarded(turn=2, calls=[READ]), executed(turn=2, calls=[READ]), replied(), ended(steps=3, cost=3_000),
    ],
    "every step that it has": [
        started(), unfinished(), unfinished(), unfinished(), unfinished(), ended("budget_exhausted", 4, 4_000)
    ],
    "a chat": [
        started(), replied(), f.CustomerSaid(text="And?", message_id="1"), f.CustomerSaid(text="?", message_id="2"),
        replied(), ended(),
    ],
    "a team": [started(), f.HandedOver(from_agent="triage", to_agent="resolver", note={}), *THE_END],
    "cancelled while held": [*HELD, f.RunCancelled(by=ALEX), f.HoldExpired(turn=1, call_ids=[REFUND])],
    "cancelled too late": [*HELD, decided(), forwarded(), f.RunCancelled(by=ALEX), executed()],
    "taken over": [
        *HELD, f.RunTakenOver(by=ALEX), f.PersonSaid(by=ALEX, text="Hello"), f.PersonSaid(by=ALEX, text="Bye")
    ],
    "an outside provider": [
        started(), proposed(), quoted(), forwarded(),
        f.OutcomeUnknown(turn=1, call_id=REFUND, provider_key="k"), f.RunFailed(reason="x"),
        f.OutcomeSettled(turn=1, call_id=REFUND, provider_key="k", outcome="done", by="provider"), executed(),
    ],
}  # fmt: skip
