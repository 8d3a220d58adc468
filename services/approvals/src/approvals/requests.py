"""What a person asks of approvals: a decision on a held call, or a word about their tenant."""

from typing import Annotated, Literal, Self

from contracts.canonical import canonical
from contracts.parts import Digest, Json, Turn
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

LONGEST_NOTE = 2000
LARGEST_ARGUMENTS = 20_000  # bytes of JSON


def _bounded(arguments: Json) -> Json:
    if len(canonical(arguments)) > LARGEST_ARGUMENTS:
        raise ValueError(f"arguments have at most {LARGEST_ARGUMENTS:,} bytes")
    return arguments


class Decide(BaseModel):
    """One decision about one held call, by whoever bears the token.

    digest: which effect they were shown. edited: the arguments that they approve instead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    token: SecretStr
    run: Annotated[str, StringConstraints(max_length=64)]
    turn: Turn
    call_id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    digest: Digest
    decision: Literal["approve", "decline"]
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)] = ""
    edited: Annotated[Json, AfterValidator(_bounded)] | None = None

    @model_validator(mode="after")
    def _only_an_approval_changes_something(self) -> Self:
        if self.edited is not None and self.decision == "decline":
            raise ValueError("a decline changes nothing: leave out edited, and say in the note what would be right")
        return self


class _OfTenant(BaseModel):
    """Something that a person says of their tenant. `request` tells this request from others: the same one again, after
    a lost answer, say, brings the same fact."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    token: SecretStr
    request: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None


class SetStop(_OfTenant):
    """`stop_id` is what it is lifted by; without one it is numbered."""

    say: Literal["stop-set"]
    stop_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    tool: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    above_minor: Annotated[int, Field(ge=0, le=2**53 - 1)] | None = None
    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_NOTE)]


class LiftStop(_OfTenant):
    say: Literal["stop-lifted"]
    stop_id: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST_NOTE)] = ""


class Promote(_OfTenant):
    """`text` is the pack's YAML, `report` what its promoter was shown of its consequences."""

    say: Literal["policy-promoted"]
    text: Annotated[str, StringConstraints(min_length=1, max_length=64_000)]
    report: Annotated[Json, AfterValidator(_bounded)] = {}


class SetBudget(_OfTenant):
    say: Literal["budget-set"]
    day_micro_usd: Annotated[int, Field(ge=0, le=2**53 - 1)] | None


class EraseCustomer(_OfTenant):
    """`customer` is the shop's id."""

    say: Literal["customer-erased"]
    customer: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


SayOfTenant = SetStop | LiftStop | Promote | SetBudget | EraseCustomer
SAY_OF_TENANT: TypeAdapter[SayOfTenant] = TypeAdapter(Annotated[SayOfTenant, Field(discriminator="say")])
