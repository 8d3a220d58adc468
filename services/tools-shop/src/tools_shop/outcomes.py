"""What a call comes to: a read found something, a write was done, or there is an explanation why not."""

from dataclasses import dataclass, field
from typing import Any

from contracts.parts import Effect, Json, QuoteFacts


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a call does nothing, in words that the model can act on. `code` tells one reason from another."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a read answers. `subject` is the customer whose data it shows."""

    text: str
    data: Json = field(default_factory=dict)
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What a write did. `duplicate_of` names the earlier one where it found the thing done already and did nothing."""

    text: str
    effect: Effect
    subject: str | None
    data: Json = field(default_factory=dict)
    facts: QuoteFacts = field(default_factory=QuoteFacts)
    duplicate_of: str | None = None


Outcome = Refusal | Found | Done
Arguments = dict[str, Any]
