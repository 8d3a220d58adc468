"""What a person asks of approvals."""

from typing import Annotated, Literal, Self

from contracts.canonical import canonical
from contracts.facts import Digest, Json, Turn
from pydantic import AfterValidator, BaseModel, ConfigDict, SecretStr, StringConstraints, model_validator

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
