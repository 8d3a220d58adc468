"""The facts that others say in the story of TCK-2004, and variations of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.canonical import sha256
from contracts.facts import (
    CallDecided,
    ReplyGiven,
    RunEnded,
    RunStarted,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import (
    CallQuote,
    CallResult,
    Customer,
    Effect,
    Hold,
    Limits,
    Needs,
    Pack,
    Person,
    QuoteFacts,
    Ticket,
    ToolCall,
    Usage,
    Verdict,
)

ISSUER = "urn:turngate:embedded"
ALEX = Person(subject="alex", issuer=ISSUER, role="operator")
SAM = Person(subject="sam", issuer=ISSUER, role="approver")
SUE = Person(subject="sue", issuer=ISSUER, role="approver")
LEE = Person(subject="lee", issuer=ISSUER, role="lead")
PACK = Pack(name="acme", version=1, digest=sha256("pack"))
DIGEST = sha256("a request")
TOM = Customer(email="tom.whitfield@mail.example", name="Tom Whitfield", id="C-1004")
BODY = (
    "Hello, I am sending the Fell jacket from ORD-10042 back to you, it is too small and I never wore it outside. "
    "Please refund the £180.00 to my card.\n\nThanks, Tom"
)


def started(
    ticket: str = "TCK-2004",
    channel: str = "ticket",
    by: Person = ALEX,
    subject: str = "Jacket too small",
    body: str = BODY,
) -> RunStarted:
    return RunStarted(
        ticket=Ticket(
            reference=ticket,
            channel="chat" if channel == "chat" else "ticket",
            customer=TOM,
            subject=subject,
            body=body,
        ),
        profile="support",
        requested_by=by,
        limits=Limits(max_steps=12, max_cost_micro_usd=1_000_000),
        model="claude-sonnet-5-5",
        prompt_version="support-v1",
        policy_pack="acme",
        toolset="shop",
    )


def proposed(turn: int, *calls: tuple[str, str, dict[str, Any]], words: str = "") -> TurnProposed:
    content: list[dict[str, Any]] = [{"type": "text", "text": words}] if words else []
    content += [{"type": "tool_use", "id": call_id, "name": tool, "input": given} for call_id, tool, given in calls]
    return TurnProposed(
        turn=turn,
        agent="support",
        content=content,
        calls=[ToolCall(call_id=call_id, tool=tool, arguments=given) for call_id, tool, given in calls],
        stop_reason="tool_use",
        usage=Usage(input=1812, output=164, cache_read=900),
        cost_micro_usd=8120,
        request_digest=DIGEST,
        tools_digest=DIGEST,
    )


def read(call_id: str, tool: str = "get_order", **arguments: Any) -> CallQuote:
    return CallQuote(call_id=call_id, tool=tool, kind="read", arguments=arguments, digest=sha256(call_id))


def refund(call_id: str, amount: int = 18000, order: str = "ORD-10042", before: int = 0, **more: Any) -> CallQuote:
    return CallQuote(
        call_id=call_id,
        tool="issue_refund",
        kind="write",
        arguments={"order_reference": order, "amount_pence": amount, "reason": "returned unworn"},
        subject="C-1004",
        effect=Effect(
            summary=f"Refund £{amount / 100:,.2f} to Mastercard ending 0937",
            object=order,
            amount_minor=amount,
            currency="GBP",
            before={"refunded_minor": before, "refundable_minor": 18000 - before},
            after={"refunded_minor": before + amount, "refundable_minor": 18000 - before - amount},
        ),
        facts=QuoteFacts(refunded_today_minor=amount, refunds_today_of_tenant=1),
        digest=sha256([call_id, amount, order]),
        **more,
    )


def quoted(turn: int, *quotes: CallQuote, attempt: int = 1) -> TurnQuoted:
    return TurnQuoted(turn=turn, attempt=attempt, quotes=list(quotes))


def held(
    turn: int,
    *quotes: CallQuote,
    needs: Needs | None = None,
    will_run: tuple[str, ...] = (),
    expires_in: timedelta = timedelta(hours=24),
    attempt: int = 1,
    edited_by: Person | None = None,
) -> TurnHeld:
    now = datetime.now(UTC)
    return TurnHeld(
        turn=turn,
        attempt=attempt,
        pack=PACK,
        holds=[
            Hold(
                call_id=quote.call_id,
                digest=quote.digest,
                rule="refund.above_automatic",
                reason="Refunds above £50.00 to one customer in a day need an approver.",
                needs=needs or Needs(),
                edited_by=edited_by,
            )
            for quote in quotes
        ],
        will_run=list(will_run),
        expires_at=now + expires_in,
        remind_at=now + expires_in * 0.75,
    )


def decided(
    turn: int,
    quote: CallQuote,
    by: Person = SAM,
    decision: str = "approve",
    note: str = "",
    edited: dict[str, Any] | None = None,
) -> CallDecided:
    return CallDecided(
        edited=edited,
        turn=turn,
        call_id=quote.call_id,
        digest=quote.digest,
        decision="approve" if decision == "approve" else "decline",
        by=by,
        note=note,
    )


def forwarded(
    turn: int, *quotes: CallQuote, rule: str = "reads.run", reason: str = "", declined: tuple[str, ...] = ()
) -> TurnForwarded:
    return TurnForwarded(
        turn=turn,
        attempt=1,
        pack=PACK,
        verdicts=[
            Verdict(
                call_id=quote.call_id,
                verdict="declined" if quote.call_id in declined else "run",
                digest=quote.digest,
                rule=rule,
                reason=reason,
            )
            for quote in quotes
        ],
    )


def refused(turn: int, rule: str, *calls: str, attempt: int = 1) -> TurnRefused:
    results = [CallResult(call_id=call_id, content="It was refused.", is_error=True) for call_id in calls]
    return TurnRefused(turn=turn, attempt=attempt, pack=PACK, rule=rule, results=results)


def executed(turn: int, *results: tuple[str, str], duplicate: bool = False, is_error: bool = False) -> TurnExecuted:
    return TurnExecuted(
        turn=turn,
        attempt=1,
        receipt_id=f"rc-{turn}",
        results=[
            CallResult(call_id=call_id, content=content, duplicate=duplicate, is_error=is_error)
            for call_id, content in results
        ],
    )


def replied(text: str = "Your refund of £180.00 is on its way to your Mastercard ending 0937.") -> ReplyGiven:
    return ReplyGiven(
        content=[{"type": "text", "text": text}],
        text=text,
        stop_reason="end_turn",
        usage=Usage(input=2400, output=90, cache_read=1800),
        cost_micro_usd=5100,
        request_digest=DIGEST,
    )


def ended(status: str = "resolved", reason: str = "The customer has their answer.") -> RunEnded:
    return RunEnded.model_validate({"status": status, "reason": reason, "steps": 3, "cost_micro_usd": 21_340})


def story_to_the_hold() -> list[Any]:
    """A run of TCK-2004 up to the refund that waits."""
    order, money = read("c-1", order_reference="ORD-10042"), refund("c-2")
    return [
        started(),
        proposed(1, ("c-1", "get_order", {"order_reference": "ORD-10042"}), words="I will look the order up first."),
        quoted(1, order),
        forwarded(1, order),
        executed(
            1,
            ("c-1", "ORD-10042: Fell waterproof jacket, moss, M, £180.00, delivered 9 days ago. Refundable: £180.00."),
        ),
        proposed(
            2, ("c-2", "issue_refund", money.arguments), words="The jacket came back unworn, so I refund it in full."
        ),
        quoted(2, money),
        held(2, money),
    ]


def story_from_the_hold(by: Person = SAM, note: str = "Return scanned in at the warehouse.") -> list[Any]:
    """The rest of it, once somebody approves."""
    money = refund("c-2")
    return [
        decided(2, money, by, note=note),
        forwarded(2, money, rule="refund.approved", reason="approved"),
        executed(2, ("c-2", "Refunded £180.00 to Mastercard ending 0937. Reference RF-1.")),
        replied(),
        ended(),
    ]
