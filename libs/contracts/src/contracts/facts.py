"""Every fact that a run's log can hold, one frozen class each."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

Author = Literal["desk", "agent", "tools", "policy", "approvals"]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Json = dict[str, Any]
Text = Annotated[str, StringConstraints(max_length=64_000)]
Minor = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]


class Part(BaseModel):
    """A piece of a fact: frozen, and strict about unknown fields when written (readers ignore them)."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(Part):
    """What happened in a run, past and whole. `terminal` facts end the run."""

    author: ClassVar[Author]
    name: ClassVar[str]
    kind: ClassVar[str]
    terminal: ClassVar[bool] = False


CATALOGUE: dict[str, type[Fact]] = {}
F = TypeVar("F", bound=Fact)


def said_by(author: Author, name: str, *, terminal: bool = False) -> Callable[[type[F]], type[F]]:
    """Enters a fact in the catalogue under `author.name`."""

    def enter(fact: type[F]) -> type[F]:
        fact.author, fact.name, fact.kind, fact.terminal = author, name, f"{author}.{name}", terminal
        CATALOGUE[fact.kind] = fact
        return fact

    return enter


# What facts are made of


class Customer(Part):
    email: str
    name: str | None = None
    id: str | None = None


class Ticket(Part):
    reference: str
    channel: Literal["ticket", "chat"] = "ticket"
    customer: Customer
    subject: Text
    body: Text


class Person(Part):
    """Who asked or decided, as their token said. `issuer` and `subject` together are the person."""

    subject: str
    issuer: str
    role: str
    token_id: str | None = None


class Limits(Part):
    max_steps: Annotated[int, Field(ge=1)]
    max_cost_micro_usd: Annotated[int, Field(ge=0)]


class Usage(Part):
    """Tokens of one model call."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0


class ToolCall(Part):
    call_id: str
    tool: str
    arguments: Json


class Effect(Part):
    """What a write would do, for a person: money in minor units, the object's state before and after."""

    summary: Text
    object: str
    amount_minor: Minor | None = None
    currency: Currency | None = None
    before: Json = {}
    after: Json = {}


class QuoteFacts(Part):
    """Totals that policy judges by, this call and the turn's earlier ones included.

    refunded_today_minor: refunds to this customer today (UTC), in the tenant's minor units.
    refunds_today_of_tenant: how many refunds the tenant has made today.
    """

    refunded_today_minor: Minor | None = None
    refunds_today_of_tenant: int | None = None
    again_after: str | None = None


class CallQuote(Part):
    """What one call would do. `will_fail` is the explanation that the model gets instead of an effect."""

    call_id: str
    tool: str
    kind: Literal["read", "write"]
    arguments: Json
    subject: str | None = None
    effect: Effect | None = None
    facts: QuoteFacts = QuoteFacts()
    will_fail: Text | None = None
    duplicate_of: str | None = None
    digest: Digest


class Pack(Part):
    """Which policy judged: the pack's name, version and the digest of its text."""

    name: str
    version: int
    digest: Digest


class Verdict(Part):
    call_id: str
    verdict: Literal["run", "declined"]
    digest: Digest
    rule: str
    reason: Text = ""


class Guard(Part):
    """A total that must hold at the moment of execution: `name` of `subject` at most `at_most`."""

    name: Literal["refunded_today_by_customer", "refunds_today_of_tenant"]
    subject: str
    at_most: Minor


class Needs(Part):
    """Who may release a hold: so many different people of this role or a higher one."""

    role: Literal["approver", "lead"] = "approver"
    people: Annotated[int, Field(ge=1, le=5)] = 1
    one_of_role: str | None = None


class Hold(Part):
    call_id: str
    digest: Digest
    rule: str
    reason: Text
    needs: Needs = Needs()


class CallResult(Part):
    """The result that the model is given for one call. `content` is its text, `data` the same for machines."""

    call_id: str
    content: Text
    data: Json = {}
    is_error: bool = False
    duplicate: bool = False


# The desk (gateway)


@said_by("desk", "run-started")
class RunStarted(Fact):
    ticket: Ticket
    profile: str
    requested_by: Person
    limits: Limits
    model: str
    prompt_version: str
    policy_pack: str
    toolset: str


@said_by("desk", "customer-said")
class CustomerSaid(Fact):
    text: Text
    message_id: str


@said_by("desk", "run-cancelled", terminal=True)
class RunCancelled(Fact):
    by: Person
    reason: Text = ""


@said_by("desk", "run-failed", terminal=True)
class RunFailed(Fact):
    reason: Text


@said_by("desk", "run-taken-over", terminal=True)
class RunTakenOver(Fact):
    by: Person
    reason: Text = ""


@said_by("desk", "person-said")
class PersonSaid(Fact):
    by: Person
    text: Text


# The agent (agent-runner)


@said_by("agent", "turn-proposed")
class TurnProposed(Fact):
    turn: Annotated[int, Field(ge=1)]
    agent: str
    content: list[Json]
    calls: Annotated[list[ToolCall], Field(min_length=1, max_length=64)]
    stop_reason: str
    usage: Usage
    cost_micro_usd: Annotated[int, Field(ge=0)]
    request_digest: Digest
    tools_digest: Digest


@said_by("agent", "handed-over")
class HandedOver(Fact):
    from_agent: str
    to_agent: str
    note: Json


@said_by("agent", "answer-unfinished")
class AnswerUnfinished(Fact):
    content: list[Json]
    stop_reason: str
    usage: Usage
    cost_micro_usd: Annotated[int, Field(ge=0)]
    request_digest: Digest
    next: Literal["continue", "retry", "end"]


@said_by("agent", "reply-given")
class ReplyGiven(Fact):
    content: list[Json]
    text: Text
    stop_reason: str
    usage: Usage
    cost_micro_usd: Annotated[int, Field(ge=0)]
    request_digest: Digest
    citations: list[str] = []


@said_by("agent", "run-ended", terminal=True)
class RunEnded(Fact):
    """`reason` is for the operator: no internals. `steps` and `cost_micro_usd` are the run's totals."""

    status: Literal["resolved", "escalated", "budget_exhausted", "failed"]
    reason: Text
    steps: Annotated[int, Field(ge=0)]
    cost_micro_usd: Annotated[int, Field(ge=0)]
    handover: Text | None = None


# The tools services


@said_by("tools", "turn-quoted")
class TurnQuoted(Fact):
    turn: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1, le=3)]
    quotes: Annotated[list[CallQuote], Field(min_length=1)]


@said_by("tools", "turn-executed")
class TurnExecuted(Fact):
    turn: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1, le=3)]
    receipt_id: str | None
    results: Annotated[list[CallResult], Field(min_length=1)]
    approved_by: dict[str, list[str]] = {}


@said_by("tools", "outcome-unknown")
class OutcomeUnknown(Fact):
    turn: int
    call_id: str
    provider_key: str


@said_by("tools", "outcome-settled")
class OutcomeSettled(Fact):
    turn: int
    call_id: str
    provider_key: str
    outcome: Literal["done", "not_done"]
    by: str


# Policy


@said_by("policy", "turn-forwarded")
class TurnForwarded(Fact):
    """Run the calls whose verdict is `run`; the declined ones get their reason as the result."""

    turn: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1, le=3)]
    pack: Pack
    verdicts: Annotated[list[Verdict], Field(min_length=1)]
    guards: list[Guard] = []
    would_have: list[str] = []


@said_by("policy", "turn-held")
class TurnHeld(Fact):
    turn: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1, le=3)]
    pack: Pack
    holds: Annotated[list[Hold], Field(min_length=1)]
    will_run: list[str] = []
    expires_at: AwareDatetime
    remind_at: AwareDatetime


@said_by("policy", "turn-refused")
class TurnRefused(Fact):
    turn: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=1, le=3)]
    pack: Pack
    rule: str
    results: Annotated[list[CallResult], Field(min_length=1)]


# Approvals


@said_by("approvals", "call-decided")
class CallDecided(Fact):
    turn: Annotated[int, Field(ge=1)]
    call_id: str
    digest: Digest
    decision: Literal["approve", "decline"]
    by: Person
    note: Text = ""
    edited: Json | None = None


@said_by("approvals", "decision-refused")
class DecisionRefused(Fact):
    turn: int
    call_id: str
    by: Person
    decision: str
    reason: Text


@said_by("approvals", "reminder-sent")
class ReminderSent(Fact):
    turn: int
    call_ids: list[str]
    role: str


@said_by("approvals", "hold-escalated")
class HoldEscalated(Fact):
    turn: int
    call_ids: list[str]
    role: str


@said_by("approvals", "hold-expired")
class HoldExpired(Fact):
    turn: Annotated[int, Field(ge=1)]
    call_ids: list[str]


Decided = CallDecided | DecisionRefused
Status = Literal[
    "running",
    "awaiting_approval",
    "awaiting_customer",
    "resolved",
    "escalated",
    "budget_exhausted",
    "failed",
    "cancelled",
    "taken_over",
]
TERMINAL_STATUSES: frozenset[str] = frozenset(
    ("resolved", "escalated", "budget_exhausted", "failed", "cancelled", "taken_over")
)
