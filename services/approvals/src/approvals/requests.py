"""What a person asks of approvals."""

from typing import Annotated, Literal

from contracts.facts import Digest, Turn
from pydantic import BaseModel, ConfigDict, SecretStr, StringConstraints

LONGEST_NOTE = 2000


class Decide(BaseModel):
    """One decision about one held call, by whoever bears the token. `digest` says which effect they were shown."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    token: SecretStr
    run: Annotated[str, StringConstraints(max_length=64)]
    turn: Turn
    call_id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    digest: Digest
    decision: Literal["approve", "decline"]
    note: Annotated[str, StringConstraints(max_length=LONGEST_NOTE)] = ""
    edited: dict[str, object] | None = None
