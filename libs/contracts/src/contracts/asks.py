"""What services ask one another: the questions' bodies, as the API takes them and as they go over the bus.

Over the bus each goes with the token of whoever asks: the one who answers checks it and takes the tenant from it.
"""

from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    TypeAdapter,
    field_serializer,
    model_validator,
)

from contracts.canonical import canonical
from contracts.parts import Digest, Json, Name, Turn

DECIDE = "ask.approvals.decide"
OF_TENANT = "ask.approvals.tenant"
QUOTE = "ask.tools.quote"
CATALOGUE = "ask.tools.catalogue"
CHECK_PACK = "ask.policy.check"
SPEND = "ask.agent.spend"

LONGEST_NOTE = 2000
LONGEST_PACK = 20_000  # characters
LARGEST_ARGUMENTS = 20_000  # bytes of JSON
MOST_DAYS = 90


def _bounded(arguments: Json) -> Json:
    if len(canonical(arguments)) > LARGEST_ARGUMENTS:
        raise ValueError(f"this has at most {LARGEST_ARGUMENTS:,} bytes")
    return arguments


Arguments = Annotated[Json, AfterValidator(_bounded)]
CallId = Annotated[Name, StringConstraints(min_length=1)]
SubscriberName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_NOTE)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Asked(BaseModel):
    """Whoever bears the token asks."""

    token: SecretStr

    @field_serializer("token", when_used="json")
    def _said(self, token: SecretStr) -> str:
        return token.get_secret_value()


class _OfRun(_Asked):
    run: Annotated[str, StringConstraints(max_length=64)]


class Decide(_Body):
    """A decision on one held call.

    digest: which effect the person was shown. edited: the arguments that they approve instead.
    """

    turn: Turn
    call_id: CallId
    digest: Digest
    decision: Literal["approve", "decline"]
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)] = ""
    edited: Arguments | None = None

    @model_validator(mode="after")
    def _only_an_approval_changes_something(self) -> Self:
        if self.edited is not None and self.decision == "decline":
            raise ValueError("a decline changes nothing: leave out edited, and say in the note what would be right")
        return self


class AskDecide(_OfRun, Decide):
    """To approvals (`DECIDE`)."""


class Requote(_Body):
    """Other arguments for a held call."""

    turn: Turn
    call_id: CallId
    edited: Arguments


class AskQuote(_OfRun, Requote):
    """To the tools service (`QUOTE`)."""


class Spend(_Body):
    """What the tenant's model calls cost on the last so many days (UTC), today among them."""

    days: Annotated[int, Field(ge=1, le=MOST_DAYS)] = 30


class AskSpend(_Asked, Spend):
    """To the agent-runner (`SPEND`)."""


class SetStop(_Body):
    """Which writes are stopped: those of one tool, those that take what a customer is refunded that day above an
    amount, both, or, with neither, all."""

    tool: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    above_minor: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    reason: Annotated[Reason, StringConstraints(min_length=1)]


class LiftStop(_Body):
    reason: Reason = ""


class Promote(_Body):
    """A policy pack as text, and what its promoter was shown of its effect."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_PACK)]
    report: Arguments = {}


class AskCheckPack(_Body):
    """To policy (`CHECK_PACK`): can this tenant be judged by this pack? Nobody's token: nothing is said or changed."""

    tenant: Name
    text: Annotated[str, StringConstraints(max_length=LONGEST_PACK)]


class SetBudget(_Body):
    """What the tenant's model calls may cost a day (UTC), in micro-dollars; null: no limit."""

    day_micro_usd: Annotated[int, Field(ge=0, le=2**53 - 1)] | None


class EraseCustomer(_Body):
    """`customer` is the shop's id."""

    customer: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class AddSubscriber(_Body):
    """Another system that hears the tenant's facts, by the name that the broker knows it by."""

    subscriber: SubscriberName


class RemoveSubscriber(_Body):
    subscriber: SubscriberName


class _OfTenant(_Asked):
    """`request` tells this request from others: the same one again, after a lost answer, say, brings the same fact."""

    request: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class AskSetStop(_OfTenant, SetStop):
    """`stop_id` is what it is lifted by; without one it is numbered."""

    say: Literal["stop-set"] = "stop-set"
    stop_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None


class AskLiftStop(_OfTenant, LiftStop):
    say: Literal["stop-lifted"] = "stop-lifted"
    stop_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class AskPromote(_OfTenant, Promote):
    say: Literal["policy-promoted"] = "policy-promoted"


class AskSetBudget(_OfTenant, SetBudget):
    say: Literal["budget-set"] = "budget-set"


class AskEraseCustomer(_OfTenant, EraseCustomer):
    say: Literal["customer-erased"] = "customer-erased"


class AskAddSubscriber(_OfTenant, AddSubscriber):
    say: Literal["subscriber-added"] = "subscriber-added"


class AskRemoveSubscriber(_OfTenant, RemoveSubscriber):
    say: Literal["subscriber-removed"] = "subscriber-removed"


# To approvals (`OF_TENANT`).
SayOfTenant = (
    AskSetStop | AskLiftStop | AskPromote | AskSetBudget | AskEraseCustomer | AskAddSubscriber | AskRemoveSubscriber
)
SAY_OF_TENANT: TypeAdapter[SayOfTenant] = TypeAdapter(Annotated[SayOfTenant, Field(discriminator="say")])
