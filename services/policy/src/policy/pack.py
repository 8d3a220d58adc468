"""A tenant's policy pack: the limits that the rules judge by, read strictly from YAML."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import yaml
from contracts.asks import LONGEST_PACK
from contracts.currencies import known_currency
from contracts.parts import Currency, Digest, Needs, Pack
from contracts.people import RANKS
from contracts.validation import path as dotted
from contracts.validation import words
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Amount = Annotated[int, Field(ge=0, le=2**53 - 1, description="minor units of the pack's currency")]
Seconds = Annotated[int, Field(ge=1, le=366 * 24 * 3600)]
Path = tuple[str | int, ...]
DEEPEST = 8


class InvalidPack(ValueError):
    """The text is no policy pack; the message names each line and field that is wrong."""


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class Tier(Part):
    """Refunds up to `up_to` may be released by these people."""

    up_to: Amount
    people: Annotated[int, Field(ge=1, le=5)] = 1
    role: Literal["approver", "lead"] = "approver"
    one_of_role: Literal["lead"] | None = None

    @property
    def needs(self) -> Needs:
        return Needs(role=self.role, people=self.people, one_of_role=self.one_of_role)

    @property
    def weight(self) -> tuple[int, int, int]:
        """How many people, of what rank each, and of what rank the highest."""
        return self.people, RANKS[self.role], RANKS[self.one_of_role or self.role]


class Refund(Part):
    automatic_up_to: Amount
    tiers: Annotated[list[Tier], Field(min_length=1)]

    @model_validator(mode="after")
    def limits_rise(self) -> Self:
        limits = [self.automatic_up_to, *(tier.up_to for tier in self.tiers)]
        if any(upper <= lower for lower, upper in pairwise(limits)):
            raise ValueError(f"each tier must reach above the one before it and above automatic_up_to, not {limits}")
        return self

    @model_validator(mode="after")
    def needs_rise(self) -> Self:
        # Else asking for more would be an easier way to get less.
        for number, (lower, upper) in enumerate(pairwise(self.tiers), start=2):
            if any(above < below for above, below in zip(upper.weight, lower.weight, strict=True)):
                raise ValueError(f"tier {number} asks for fewer or lesser people than the one below it")
        return self


class Limit(Part):
    """What becomes of a call that passes the limit: people are asked, of this role at least, or it is refused."""

    then: Literal["hold", "refuse"] = "hold"
    role: Literal["approver", "lead"] = "approver"

    @model_validator(mode="after")
    def asks_a_role_only_where_it_asks(self) -> Self:
        if self.then == "refuse" and self.role != "approver":
            raise ValueError("role is for then: hold; a refused call is released by nobody")
        return self


class DayAmount(Limit):
    """So much a day (UTC)."""

    amount: Amount


class DayTotals(Part):
    """So much and so many a day (UTC); either may be left out."""

    amount: Amount | None = None
    refunds: Annotated[int, Field(ge=0, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def limits_something(self) -> Self:
        if self.amount is None and self.refunds is None:
            raise ValueError("give amount, refunds or both")
        return self


class CustomerDay(DayTotals, Limit):
    """What one customer may be refunded a day."""


class CoolingOff(Limit):
    """How long after a customer's last decline or refund the next refund waits."""

    after_decline_seconds: Seconds | None = None
    after_refund_seconds: Seconds | None = None

    @model_validator(mode="after")
    def waits_for_something(self) -> Self:
        if self.after_decline_seconds is None and self.after_refund_seconds is None:
            raise ValueError("give after_decline_seconds, after_refund_seconds or both")
        return self


class RefundWindow(Limit):
    """How long after the delivery (or the order, where nothing was delivered) it may be refunded."""

    days: Annotated[int, Field(ge=0, le=10_000)]


class Limits(Part):
    """Limits beside the amount; what is left out is not limited. `tenant_day` is a hard cap: nobody releases it."""

    own_customer_only: bool = False
    customer_day: CustomerDay | None = None
    profile_day: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")], DayAmount] = {}
    tenant_day: DayTotals | None = None
    cooling_off: CoolingOff | None = None
    refund_window: RefundWindow | None = None


class HoldTimes(Part):
    """Seconds from the hold on. `escalate_after_seconds`: when the next role is asked as well, if ever."""

    remind_after_seconds: Seconds
    escalate_after_seconds: Seconds | None = None
    expires_after_seconds: Seconds

    @model_validator(mode="after")
    def reminds_before_it_expires(self) -> Self:
        if self.remind_after_seconds >= self.expires_after_seconds:
            raise ValueError("remind_after_seconds must be less than expires_after_seconds")
        escalates = self.escalate_after_seconds
        if escalates is not None and not self.remind_after_seconds <= escalates < self.expires_after_seconds:
            raise ValueError("escalate_after_seconds must be between remind_after_seconds and expires_after_seconds")
        return self


class PolicyPack(Part):
    """`writes` says how a tool's writes are judged; an unnamed tool's wait for a lead. `digest` is of the text.

    mode: under `audit` what would be refused runs, and the record says what would have been said.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    version: Annotated[int, Field(ge=1, le=2**53 - 1)]
    mode: Literal["enforce", "audit"] = "enforce"
    currency: Currency
    refund: Refund
    limits: Limits = Limits()
    writes: dict[str, Literal["refund", "automatic"]]
    hold: HoldTimes
    digest: Digest

    @property
    def audits(self) -> bool:
        return self.mode == "audit"

    @property
    def stamp(self) -> Pack:
        return Pack(name=self.name, version=self.version, digest=self.digest)


def check_currency(pack: PolicyPack, source: str) -> None:
    """Raises InvalidPack where nothing can be paid in the pack's currency. Looked at before a pack is put in force: one
    that is in force stays so when its currency is taken out of use."""
    try:
        known_currency(pack.currency)
    except ValueError as error:
        raise InvalidPack(f"{source}, currency: {error}") from None


def parse(text: str, source: str = "policy pack") -> PolicyPack:
    """Reads a pack. Raises InvalidPack, which names `source`, the line and the field of everything that is wrong."""
    if len(text) > LONGEST_PACK:
        raise InvalidPack(f"{source}: a pack has at most {LONGEST_PACK:,} characters, and this has {len(text):,}")
    try:
        depth = 0
        for part in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(part, yaml.AliasEvent):
                raise InvalidPack(
                    f"{source}, line {_number(part.start_mark)}: write it out, *{part.anchor} is no value"
                )
            depth += isinstance(part, yaml.CollectionStartEvent) - isinstance(part, yaml.CollectionEndEvent)
            if depth > DEEPEST:  # what is nested for its own sake takes minutes to read
                raise InvalidPack(f"{source}, line {_number(part.start_mark)}: no pack is nested as deep as that")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise InvalidPack(f"{source}, line {_number(error.problem_mark)}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidPack):
            raise
        raise InvalidPack(f"{source}: {error}"[:2000]) from None
    if not isinstance(root, yaml.MappingNode) or not isinstance(values, dict):
        raise InvalidPack(f"{source}, line 1: a pack is a mapping that starts with name, version and currency")
    lines: dict[Path, int] = {(): 1}
    for path, line in _places(root, ()):
        if path in lines:
            raise InvalidPack(f"{source}, line {line}, {dotted(path)}: is given twice, first in line {lines[path]}")
        lines[path] = line
    if ("digest",) in lines:
        raise InvalidPack(f"{source}, line {lines['digest',]}, digest: is computed, leave it out")
    try:
        return PolicyPack.model_validate({**values, "digest": hashlib.sha256(text.encode()).hexdigest()})
    except ValidationError as error:
        wrong = [f"{source}, line {_line(lines, e['loc'])}, {dotted(e['loc'])}: {words(e)}" for e in error.errors()]
        raise InvalidPack("\n".join(wrong)) from None


def _places(node: yaml.Node, path: Path) -> Iterator[tuple[Path, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*path, str(key.value))
            yield here, _number(key.start_mark)
            yield from _places(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), _number(value.start_mark)
            yield from _places(value, (*path, index))


def _number(mark: Any) -> int:
    """The line of a place in the text, which the parser gives as one of two classes or not at all."""
    return mark.line + 1 if mark else 1


def _line(lines: dict[Path, int], path: Path) -> int:
    while path not in lines:
        path = path[:-1]
    return lines[path]
