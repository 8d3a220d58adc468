"""Which fields of a fact can hold personal data, taken out of what is published and put back for who may see it."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, get_args

from contracts.facts import CATALOGUE
from contracts.parts import PERSONAL, Json, Part

SEALED = "[sealed]"
ERASED = "[erased]"

# A field's name → None where the field is personal, or the plan of the parts that it is made of.
Plan = dict[str, "Plan | None"]
P = TypeVar("P", bound=Part)


def plan_of(kind: str) -> Plan:
    """Where the facts of a kind (`author.fact`) can hold personal data; nowhere in one that is not known here."""
    fact = CATALOGUE.get(kind)
    return _plan(fact) if fact else {}


def take_out(plan: Plan, data: Json, word: str = SEALED) -> Json:
    """Puts placeholders into the personal fields of `data`, in place, and gives what was there.

    A placeholder is of the type that it stands for: `word`, an empty object, an empty list. What is empty stays.
    """
    taken: Json = {}
    for name, inner in plan.items():
        value = data.get(name)
        if inner is None:
            if value:
                taken[name] = value
                data[name] = word if isinstance(value, str) else type(value)()
        elif isinstance(value, dict):
            if part := take_out(inner, value, word):
                taken[name] = part
        elif isinstance(value, list):
            parts = [take_out(inner, item, word) for item in value]
            if any(parts):
                taken[name] = parts
    return taken


def put_back(plan: Plan, data: Json, taken: Json) -> None:
    """The opposite of `take_out`, in place. Only personal fields are written, whatever `taken` holds.

    Raises ValueError where it does not fit the data.
    """
    for name, inner in plan.items():
        if name not in taken:
            continue
        value = taken[name]
        if inner is None:
            data[name] = value
        elif isinstance(value, dict) and isinstance(data.get(name), dict):
            put_back(inner, data[name], value)
        elif isinstance(value, list) and isinstance(data.get(name), list) and len(value) == len(data[name]):
            for item, part in zip(data[name], value, strict=True):
                put_back(inner, item, part)
        else:
            raise ValueError(f"what was sealed of {name} does not fit the rest")


def erased(part: P) -> P:
    """The same without its personal data."""
    data = part.model_dump(mode="json")
    take_out(_plan(type(part)), data, ERASED)
    return part.model_validate(data)


def rewritten(part: P, text: Callable[[str], str]) -> P:
    """The same with each text of its personal data as `text` gives it."""
    plan, data = _plan(type(part)), part.model_dump(mode="json")
    taken: Json = _each_text(take_out(plan, data), text)
    put_back(plan, data, taken)
    return part.model_validate(data)


def _each_text(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {name: _each_text(inner, text) for name, inner in value.items()}
    return [_each_text(inner, text) for inner in value] if isinstance(value, list) else value


@cache
def _plan(part: type[Part]) -> Plan:
    plan: Plan = {}
    for name, field in part.model_fields.items():
        if field.json_schema_extra == PERSONAL:
            plan[name] = None
        elif (inner := _part_in(field.annotation)) and (of_inner := _plan(inner)):
            plan[name] = of_inner
    return plan


def _part_in(annotation: Any) -> type[Part] | None:
    """The part that a field holds: one, one or none, or a list of them."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _part_in(inner))), None)
