"""A tenant's policy pack: the limits that the rules judge by, read strictly from YAML."""

import hashlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import yaml
from contracts.facts import Currency, Digest, Needs, Pack
from contracts.people import RANKS
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Amount = Annotated[int, Field(ge=0, le=2**53 - 1, description="minor units of the pack's currency")]
Seconds = Annotated[int, Field(ge=1, le=366 * 24 * 3600)]
Path = tuple[str | int, ...]


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


class HoldTimes(Part):
    remind_after_seconds: Seconds
    expires_after_seconds: Seconds

    @model_validator(mode="after")
    def reminds_before_it_expires(self) -> Self:
        if self.remind_after_seconds >= self.expires_after_seconds:
            raise ValueError("remind_after_seconds must be less than expires_after_seconds")
        return self


class PolicyPack(Part):
    """`writes` says how a tool's writes are judged; an unnamed tool's wait for a lead. `digest` is of the text."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    version: Annotated[int, Field(ge=1)]
    currency: Currency
    refund: Refund
    writes: dict[str, Literal["refund", "automatic"]]
    hold: HoldTimes
    digest: Digest

    @property
    def stamp(self) -> Pack:
        return Pack(name=self.name, version=self.version, digest=self.digest)


def parse(text: str, source: str = "policy pack") -> PolicyPack:
    """Reads a pack. Raises InvalidPack, which names `source`, the line and the field of everything that is wrong."""
    try:
        for part in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(part, yaml.AliasEvent):
                raise InvalidPack(
                    f"{source}, line {_number(part.start_mark)}: write it out, *{part.anchor} is no value"
                )
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        raise InvalidPack(f"{source}, line {_number(error.problem_mark)}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise InvalidPack(f"{source}: {error}") from None
    if not isinstance(root, yaml.MappingNode):
        raise InvalidPack(f"{source}, line 1: a pack is a mapping that starts with name, version and currency")
    lines: dict[Path, int] = {(): 1}
    for path, line in _places(root, ()):
        if path in lines:
            raise InvalidPack(f"{source}, line {line}, {_dotted(path)}: is given twice, first in line {lines[path]}")
        lines[path] = line
    if ("digest",) in lines:
        raise InvalidPack(f"{source}, line {lines['digest',]}, digest: is computed, leave it out")
    try:
        return PolicyPack.model_validate({**values, "digest": hashlib.sha256(text.encode()).hexdigest()})
    except ValidationError as error:
        wrong = [f"{source}, line {_line(lines, e['loc'])}, {_dotted(e['loc'])}: {e['msg']}" for e in error.errors()]
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


def _dotted(path: Path) -> str:
    return ".".join(map(str, path))
