"""Every fact that a run's log can hold, one frozen class each."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AwareDatetime, Field

from contracts.parts import (
    MOST_CALLS,
    Added,
    Attempt,
    Author,
    CallIds,
    CallQuote,
    CallResult,
    Count,
    Currency,
    Digest,
    Guard,
    Hold,
    Json,
    LastAttempt,
    Limits,
    Name,
    Pack,
    Part,
    PerCall,
    Person,
    Personal,
    Text,
    Ticket,
    ToolCall,
    Turn,
    Usage,
    Verdict,
)


class Fact(Part):
    """What happened in a run, past and whole. `terminal` facts end the run."""

    author: ClassVar[Author]
    name: ClassVar[str]
    kind: ClassVar[str]
    terminal: ClassVar[bool] = False


CATALOGUE: dict[str, type[Fact]] = {}
F = TypeVar("F", bound=Fact)


def said_by(
    author: Author, name: str, *, terminal: bool = False, catalogue: dict[str, type[Fact]] = CATALOGUE
) -> Callable[[type[F]], type[F]]:
    """Enters a fact in the catalogue under `author.name`."""

    def enter(fact: type[F]) -> type[F]:
        fact.author, fact.name, fact.kind, fact.terminal = author, name, f"{author}.{name}", terminal
        catalogue[fact.kind] = fact
        return fact

    return enter


# The desk (gateway)


@said_by("desk", "run-started")
class RunStarted(Fact):
    ticket: Ticket
    profile: Name
    requested_by: Person
    limits: Limits
    model: Name
    prompt_version: Name
    policy_pack: Name
    toolset: Name
    # How amounts are written for this run's people and its model, and what the tenant's amounts are in.
    locale: Added[Name] = None
    currency: Added[Currency] = None


@said_by("desk", "customer-said")
class CustomerSaid(Fact):
    text: Personal[Text]
    message_id: Name
    by: Added[Person] = None  # who typed it, where it was not the customer


@said_by("desk", "run-cancelled", terminal=True)
class RunCancelled(Fact):
    by: Person
    reason: Personal[Text] = ""


@said_by("desk", "run-failed", terminal=True)
class RunFailed(Fact):
    reason: Text


@said_by("desk", "run-taken-over", terminal=True)
class RunTakenOver(Fact):
    by: Person
    reason: Personal[Text] = ""


@said_by("desk", "person-said")
class PersonSaid(Fact):
    by: Person
    text: Personal[Text]


@said_by("desk", "run-erased")
class RunErased(Fact):
    """The run's customer was erased: what was personal in its facts is lost, and views of it forget what they hold."""

    by: Person


# The agent (agent-runner)


@said_by("agent", "turn-proposed")
class TurnProposed(Fact):
    turn: Turn
    agent: Name
    content: Personal[list[Json]]
    calls: PerCall[ToolCall]
    stop_reason: Name
    usage: Usage
    cost_micro_usd: Count
    request_digest: Digest
    tools_digest: Digest


@said_by("agent", "handed-over")
class HandedOver(Fact):
    from_agent: Name
    to_agent: Name
    note: Personal[Json]


@said_by("agent", "answer-unfinished")
class AnswerUnfinished(Fact):
    content: Personal[list[Json]]
    stop_reason: Name
    usage: Usage
    cost_micro_usd: Count
    request_digest: Digest
    next: Literal["continue", "retry", "end"]


@said_by("agent", "reply-given")
class ReplyGiven(Fact):
    content: Personal[list[Json]]
    text: Personal[Text]
    stop_reason: Name
    usage: Usage
    cost_micro_usd: Count
    request_digest: Digest
    citations: Annotated[list[Name], Field(max_length=256)] = []


@said_by("agent", "run-ended", terminal=True)
class RunEnded(Fact):
    """`reason` is for the operator: no internals. `steps` and `cost_micro_usd` are the run's totals.

    uncertain_micro_usd: what may have to be paid beside that, for requests of which nobody knows what came.
    """

    status: Literal["resolved", "escalated", "budget_exhausted", "failed"]
    reason: Personal[Text]
    steps: Count
    cost_micro_usd: Count
    handover: Personal[Text | None] = None
    uncertain_micro_usd: Added[Count] = None


# The tools services


@said_by("tools", "turn-quoted")
class TurnQuoted(Fact):
    turn: Turn
    attempt: LastAttempt
    quotes: PerCall[CallQuote]


@said_by("tools", "turn-executed")
class TurnExecuted(Fact):
    turn: Turn
    attempt: Attempt
    receipt_id: Name | None
    results: PerCall[CallResult]
    approved_by: Annotated[dict[Name, Annotated[list[Name], Field(max_length=8)]], Field(max_length=MOST_CALLS)] = {}


@said_by("tools", "outcome-unknown")
class OutcomeUnknown(Fact):
    turn: Turn
    call_id: Name
    provider_key: Name


@said_by("tools", "outcome-settled")
class OutcomeSettled(Fact):
    turn: Turn
    call_id: Name
    provider_key: Name
    outcome: Literal["done", "not_done"]
    by: Name


# Policy


@said_by("policy", "turn-forwarded")
class TurnForwarded(Fact):
    """Run the calls whose verdict is `run`; the declined ones get their reason as the result."""

    turn: Turn
    attempt: Attempt
    pack: Pack
    verdicts: PerCall[Verdict]
    guards: Annotated[list[Guard], Field(max_length=8 * MOST_CALLS)] = []
    would_have: Annotated[list[Text], Field(max_length=MOST_CALLS)] = []


@said_by("policy", "turn-held")
class TurnHeld(Fact):
    turn: Turn
    attempt: Attempt
    pack: Pack
    holds: PerCall[Hold]
    will_run: CallIds = []
    expires_at: AwareDatetime
    remind_at: AwareDatetime
    escalate_at: Added[AwareDatetime] = None
    would_have: Added[Annotated[list[Text], Field(max_length=MOST_CALLS)]] = None


@said_by("policy", "turn-refused")
class TurnRefused(Fact):
    turn: Turn
    attempt: LastAttempt
    pack: Pack
    rule: Name
    results: PerCall[CallResult]


# Approvals


@said_by("approvals", "call-decided")
class CallDecided(Fact):
    """`hands_over` is said of every decline: a person takes the ticket up, unless a later approval makes it good."""

    turn: Turn
    call_id: Name
    digest: Digest
    decision: Literal["approve", "decline"]
    by: Person
    note: Personal[Text] = ""
    edited: Personal[Json | None] = None
    hands_over: Added[Literal[True]] = None


@said_by("approvals", "decision-refused")
class DecisionRefused(Fact):
    turn: Turn
    call_id: Name
    by: Person
    decision: Name
    reason: Text


@said_by("approvals", "reminder-sent")
class ReminderSent(Fact):
    turn: Turn
    call_ids: CallIds
    role: Name


@said_by("approvals", "hold-escalated")
class HoldEscalated(Fact):
    turn: Turn
    call_ids: CallIds
    role: Name


@said_by("approvals", "hold-expired")
class HoldExpired(Fact):
    """As a decline of these calls, `hands_over` included."""

    turn: Turn
    call_ids: CallIds
    hands_over: Added[Literal[True]] = None


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
