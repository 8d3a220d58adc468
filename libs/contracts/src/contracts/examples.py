"""One true example of every fact: what the golden files hold and what the published documents show."""

from datetime import UTC, datetime

from contracts import facts as f
from contracts import parts, tenant_facts
from contracts.canonical import sha256

_digest = sha256("an example")
_alex = parts.Person(subject="alex", issuer="https://issuer.example", role="operator", token_id="t-1")  # noqa: S106 - an id, no secret
_sam = parts.Person(subject="sam", issuer="https://issuer.example", role="approver", token_id="t-2")  # noqa: S106
_pack = parts.Pack(name="acme", version=1, digest=_digest)
_arguments = {"order_reference": "ORD-10042", "amount_pence": 18000, "reason": "returned unworn"}
_content: list[parts.Json] = [
    {"type": "text", "text": "I will refund the jacket."},
    {"type": "tool_use", "id": "call-1", "name": "issue_refund", "input": _arguments},
]
_usage = parts.Usage(input=812, output=64, cache_read=0, cache_write=0)
_refund = parts.CallResult(
    call_id="call-1",
    content="Refunded £180.00 to ORD-10042. Reference RF-1.",
    data={"refund": "RF-1", "amount_minor": 18000, "currency": "GBP"},
)

EXAMPLES: dict[str, f.Fact] = {
    fact.kind: fact
    for fact in (
        f.RunStarted(
            ticket=parts.Ticket(
                reference="TCK-2004",
                customer=parts.Customer(email="tom@example.com", name="Tom Whitfield", id="cust-1004"),
                subject="Return of a jacket",
                body="I sent the jacket back unworn. Please refund it.",
            ),
            profile="support",
            requested_by=_alex,
            limits=parts.Limits(max_steps=12, max_cost_micro_usd=500_000),
            model="stand-in",
            prompt_version="support-v1",
            policy_pack="acme",
            toolset="shop",
        ),
        f.CustomerSaid(text="Any news?", message_id="m-1"),
        f.RunCancelled(by=_alex, reason="started by mistake"),
        f.RunFailed(reason="The agent could not go on. Nothing was done since the last step."),
        f.RunTakenOver(by=_alex, reason="the customer asked for a person"),
        f.PersonSaid(by=_alex, text="Hello Tom, I have taken this over."),
        f.RunErased(by=parts.Person(subject="ada", issuer="https://issuer.example", role="admin")),
        f.TurnProposed(
            turn=1,
            agent="support",
            content=_content,
            calls=[parts.ToolCall(call_id="call-1", tool="issue_refund", arguments=_arguments)],
            stop_reason="tool_use",
            usage=_usage,
            cost_micro_usd=3396,
            request_digest=_digest,
            tools_digest=_digest,
        ),
        f.HandedOver(from_agent="triage", to_agent="resolver", note={"category": "refund"}),
        f.AnswerUnfinished(
            content=[{"type": "text", "text": "I will"}],
            stop_reason="max_tokens",
            usage=_usage,
            cost_micro_usd=3396,
            request_digest=_digest,
            next="continue",
        ),
        f.ReplyGiven(
            content=[{"type": "text", "text": "Your refund of £180.00 is on its way."}],
            text="Your refund of £180.00 is on its way.",
            stop_reason="end_turn",
            usage=_usage,
            cost_micro_usd=3396,
            request_digest=_digest,
            citations=["returns#refunds"],
        ),
        f.RunEnded(status="resolved", reason="The customer has their answer.", steps=3, cost_micro_usd=10188),
        f.TurnQuoted(
            turn=1,
            attempt=1,
            quotes=[
                parts.CallQuote(
                    call_id="call-1",
                    tool="issue_refund",
                    kind="write",
                    arguments=_arguments,
                    subject="cust-1004",
                    effect=parts.Effect(
                        summary="Refund £180.00 to the card that paid ORD-10042",
                        object="ORD-10042",
                        amount_minor=18000,
                        currency="GBP",
                        before={"refunded_minor": 0},
                        after={"refunded_minor": 18000},
                    ),
                    facts=parts.QuoteFacts(refunded_today_minor=18000, refunds_today_of_tenant=1),
                    digest=_digest,
                )
            ],
        ),
        f.TurnExecuted(turn=1, attempt=1, receipt_id="rc-1", results=[_refund], approved_by={"call-1": ["sam"]}),
        f.OutcomeUnknown(turn=1, call_id="call-1", provider_key="pk-1"),
        f.OutcomeSettled(turn=1, call_id="call-1", provider_key="pk-1", outcome="done", by="provider"),
        f.TurnForwarded(
            turn=1,
            attempt=1,
            pack=_pack,
            verdicts=[parts.Verdict(call_id="call-1", verdict="run", digest=_digest, rule="refund.approved")],
            guards=[parts.Guard(name="refunded_today_by_customer", subject="cust-1004", at_most=5000)],
        ),
        f.TurnHeld(
            turn=1,
            attempt=1,
            pack=_pack,
            holds=[
                parts.Hold(
                    call_id="call-1",
                    digest=_digest,
                    rule="refund.above_automatic",
                    reason="£180.00 is above the £50.00 that are refunded without a person.",
                )
            ],
            expires_at=datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
            remind_at=datetime(2026, 11, 30, 6, 0, tzinfo=UTC),
        ),
        f.TurnRefused(
            turn=1,
            attempt=1,
            pack=_pack,
            rule="refund.above_all_tiers",
            results=[parts.CallResult(call_id="call-1", content="Not run: nobody may release so much.", is_error=True)],
        ),
        f.CallDecided(turn=1, call_id="call-1", digest=_digest, decision="approve", by=_sam, note="seen the photos"),
        f.DecisionRefused(turn=1, call_id="call-1", by=_alex, decision="approve", reason="You started this run."),
        f.ReminderSent(turn=1, call_ids=["call-1"], role="approver"),
        f.HoldEscalated(turn=1, call_ids=["call-1"], role="lead"),
        f.HoldExpired(turn=1, call_ids=["call-1"]),
    )
}

_ada = parts.Person(subject="ada", issuer="https://issuer.example", role="admin", token_id="t-3")  # noqa: S106
_lee = parts.Person(subject="lee", issuer="https://issuer.example", role="lead", token_id="t-4")  # noqa: S106

TENANT_EXAMPLES: dict[str, f.Fact] = {
    fact.kind: fact
    for fact in (
        tenant_facts.StopSet(
            stop_id="s-1", tool="issue_refund", above_minor=10000, reason="a wave of false claims", by=_ada
        ),
        tenant_facts.StopLifted(stop_id="s-1", reason="it is over", by=_ada),
        tenant_facts.PolicyPromoted(pack=_pack, text="name: acme\nversion: 1\n", report={"would_change": 0}, by=_lee),
        tenant_facts.BudgetSet(day_micro_usd=50_000_000, by=_ada),
        tenant_facts.CustomerErased(customer="cust-1004", by=_ada),
        tenant_facts.SubscriberAdded(subscriber="warehouse", by=_ada),
        tenant_facts.SubscriberRemoved(subscriber="warehouse", by=_ada),
    )
}
