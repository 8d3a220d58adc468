"""Other arguments for a held call: the fields of the form, and what was typed into them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from contracts.parts import CallQuote, Json

from gateway.console import words
from gateway.edits import currency, is_money, label
from gateway.problems import Problem
from gateway.texts import plain

PREFIX = "argument."


@dataclass(frozen=True, slots=True)
class Field:
    """One argument as a person changes it. `fixed` ones say what the call is about, or have no form of their own."""

    name: str
    label: str
    kind: Literal["money", "text", "number", "choice", "fixed"]
    value: str


def fields(quote: CallQuote) -> list[Field]:
    """The call's arguments, those that can be changed first."""
    found = [_field(quote, name, value) for name, value in quote.arguments.items()]
    return sorted(found, key=lambda field: field.kind == "fixed")


def editable(quote: CallQuote) -> bool:
    return quote.kind == "write" and any(field.kind != "fixed" for field in fields(quote))


def arguments(quote: CallQuote, form: Mapping[str, str]) -> Json:
    """The call's arguments with what the form says instead. Raises a 422 that names the field."""
    changed = dict(quote.arguments)
    for field in fields(quote):
        typed = form.get(PREFIX + field.name)
        if typed is not None and field.kind != "fixed" and typed.replace("\r\n", "\n") != field.value:
            changed[field.name] = _read(quote, field, typed)
    return changed


def _field(quote: CallQuote, name: str, value: object) -> Field:
    about = quote.effect.object if quote.effect else None
    if is_money(quote, name, value):
        return Field(name, label(name), "money", words.plain_amount(int(str(value)), currency(quote)))
    if isinstance(value, bool):
        return Field(name, label(name), "choice", "yes" if value else "no")
    if isinstance(value, int):
        return Field(name, label(name), "number", str(value))
    if isinstance(value, str) and value != about:
        return Field(name, label(name), "text", value)
    return Field(name, label(name), "fixed", plain(value))


def _read(quote: CallQuote, field: Field, typed: str) -> object:
    match field.kind:
        case "money":
            amount = words.minor(typed, currency(quote))
            if amount is None:
                raise _unreadable(field, f"an amount, such as {field.value}")
            return amount
        case "number":
            if not (typed.strip().isascii() and typed.strip().isdigit() and len(typed) < 16):
                raise _unreadable(field, "a whole number")
            return int(typed)
        case "choice":
            return typed == "yes"
    return typed.replace("\r\n", "\n")


def _unreadable(field: Field, wanted: str) -> Problem:
    return Problem(422, "Not understood", f"“{field.label}” has to be {wanted}. Nothing was done.")
