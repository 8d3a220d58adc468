"""What facts are made of: people, calls, quotes, holds, verdicts, and the bounds of every field."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

Author = Literal["desk", "agent", "tools", "policy", "approvals"]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Json = dict[str, Any]
Name = Annotated[str, StringConstraints(max_length=512)]
Text = Annotated[str, StringConstraints(max_length=64_000)]
Minor = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Turn = Annotated[int, Field(ge=1, le=1_000_000)]
MOST_ATTEMPTS = 3
Attempt = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
# A fourth quote is only ever refused: the world keeps changing.
LastAttempt = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS + 1)]
MOST_CALLS = 64
# The one argument of a call whose arguments no JSON object can hold: why, and how they began.
UNREADABLE = "$unreadable"
GuardName = Literal[
    "refunded_today_by_customer",
    "refunds_today_by_customer",
    "refunded_today_by_profile",
    "refunded_today_of_tenant",
    "refunds_today_of_tenant",
    "last_refund_of_customer",
    "last_decline_of_customer",
]
T = TypeVar("T")
# What the schema says of a field that can hold personal data, and how `contracts.personal` knows it.
PERSONAL: dict[str, Any] = {"x-personal": True}
Personal = Annotated[T, Field(json_schema_extra=PERSONAL)]
# What was added to facts that are in logs already: left out where it says nothing, so that they are written as ever.
Added = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
# One entry a call of the turn.
PerCall = Annotated[list[T], Field(min_length=1, max_length=MOST_CALLS)]
CallIds = Annotated[list[Name], Field(max_length=MOST_CALLS)]


class Part(BaseModel):
    """A piece of a fact: frozen, and strict about unknown fields when written (readers ignore them)."""

    # Not a number is refused when the event is written, and not made null in silence. An error never quotes what was
    # said: it ends up in logs and dead letters, where nobody could erase it.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", hide_input_in_errors=True)


class Customer(Part):
    email: Personal[Name]
    name: Personal[Name | None] = None
    id: Name | None = None


class Ticket(Part):
    """opened_at: when the customer wrote; not said in older logs."""

    reference: Name
    channel: Literal["ticket", "chat"] = "ticket"
    customer: Customer
    subject: Personal[Text]
    body: Personal[Text]
    opened_at: Added[AwareDatetime] = None


class Person(Part):
    """Who asked or decided, as their token said. `issuer` and `subject` together are the person.

    limit_minor: the most that this person may release, where their issuer sets them a limit of their own.
    """

    subject: Name
    issuer: Name
    role: Name
    token_id: Name | None = None
    limit_minor: Added[Minor] = None


class Limits(Part):
    max_steps: Annotated[int, Field(ge=1, le=1_000_000)]
    max_cost_micro_usd: Count


class Usage(Part):
    """Tokens of one model call. estimated: the endpoint did not tell all of them, or the answer broke off."""

    input: Count = 0
    output: Count = 0
    cache_read: Count = 0
    cache_write: Count = 0
    estimated: Added[bool] = None


class ToolCall(Part):
    call_id: Name
    tool: Name
    arguments: Personal[Json]


class Effect(Part):
    """What a write would do, for a person: money in minor units, the object's state before and after."""

    summary: Personal[Text]
    object: Name
    amount_minor: Minor | None = None
    currency: Currency | None = None
    before: Personal[Json] = {}
    after: Personal[Json] = {}


class QuoteFacts(Part):
    """What policy judges by beside the effect. None: not known, or not asked for.

    The totals are of today (UTC), in the tenant's minor units, this call and the turn's earlier ones included:
    `refunded_today_minor` and `refunds_today_by_customer` to this customer, `refunded_today_of_tenant_minor` and
    `refunds_today_of_tenant` to all, `refunded_today_by_profile_minor` by agents of the run's profile.
    last_refund_at, last_declined_at: this customer's, before this turn.
    window_from: from when the refund window counts: the delivery, else the order.
    stopped: the stop that covers this call, in words for a person.
    decided_above_minor: above it the shop pays nothing that no person has approved, whatever policy says.
    harmless: only a stop that names the tool covers the call.
    """

    refunded_today_minor: Minor | None = None
    refunds_today_of_tenant: Count | None = None
    again_after: Name | None = None
    refunds_today_by_customer: Added[Count] = None
    refunded_today_of_tenant_minor: Added[Minor] = None
    refunded_today_by_profile_minor: Added[Minor] = None
    last_refund_at: Added[AwareDatetime] = None
    last_declined_at: Added[AwareDatetime] = None
    window_from: Added[AwareDatetime] = None
    stopped: Added[Text] = None
    decided_above_minor: Added[Minor] = None
    harmless: Added[bool] = None


class CallQuote(Part):
    """What one call would do. `will_fail` is the explanation that the model gets instead of an effect.

    edited: the digest of the held call that a person changed into this one.
    """

    call_id: Name
    tool: Name
    kind: Literal["read", "write"]
    arguments: Personal[Json]
    subject: Name | None = None
    effect: Effect | None = None
    facts: QuoteFacts = QuoteFacts()
    will_fail: Personal[Text | None] = None
    duplicate_of: Name | None = None
    digest: Digest
    edited: Added[Digest] = None


class Pack(Part):
    """Which policy judged: the pack's name, version and the digest of its text."""

    name: Name
    version: Count
    digest: Digest


class Verdict(Part):
    call_id: Name
    verdict: Literal["run", "declined"]
    digest: Digest
    rule: Name
    reason: Text = ""


class Guard(Part):
    """What must hold at the moment of execution: `name` of `subject` at most `at_most`.

    `refunded_…` are amounts and `refunds_…` counts, with the turn's own; `last_…` are times in seconds since 1970, of
    the last one before the turn.
    """

    name: GuardName
    subject: Name
    at_most: Minor


class Needs(Part):
    """Who may release a hold: so many different people of this role or a higher one.

    one_of_role: of which higher role one of them has to be; count_of_role: how many of them, where that is not one.
    amount_minor: what the customer is refunded that day with this, which the own limit of each has to reach.
    """

    role: Literal["approver", "lead"] = "approver"
    people: Annotated[int, Field(ge=1, le=5)] = 1
    one_of_role: Name | None = None
    amount_minor: Added[Minor] = None
    count_of_role: Added[Annotated[int, Field(ge=2, le=5)]] = None


class Hold(Part):
    """edited_by: who changed the call into what is held. They asked for it, so they do not release it."""

    call_id: Name
    digest: Digest
    rule: Name
    reason: Text
    needs: Needs = Needs()
    edited_by: Added[Person] = None


class CallResult(Part):
    """The result that the model is given for one call. `content` is its text, `data` the same for machines."""

    call_id: Name
    content: Personal[Text]
    data: Personal[Json] = {}
    is_error: bool = False
    duplicate: bool = False
