"""Reads what a model sent as a tool's arguments: to values that can be used, or to an explanation. Never raises."""

from collections.abc import Callable, Mapping
from typing import Any

from contracts.canonical import LARGEST
from contracts.parts import UNREADABLE

from tools_shop import references
from tools_shop.outcomes import Arguments, Refusal
from tools_shop.texts import echo, one_line, storable, without_card_numbers
from tools_shop.unit import Unit

Reader = Callable[[Any], Any]  # a field's value (None where it is missing) to what is used, or to a Refusal


def read(
    tool: str, fields: Mapping[str, Reader], takes: str, raw: Any, *, hint: str = "", forgiving: bool = False
) -> Arguments | Refusal:
    """The arguments by name, normalised; those that were not given are left out.

    hint: what else to say of a call that is refused. forgiving: arguments that cannot be read count as not given.
    """
    unreadable = not isinstance(raw, dict) or UNREADABLE in raw
    if unreadable and forgiving:
        raw = {}
    elif unreadable:
        said = raw.get(UNREADABLE) if isinstance(raw, dict) else None
        why = f" ({one_line(said, 120)})" if isinstance(said, str) and said.strip() else ""
        return Refusal(
            "unreadable",
            f"The call to {tool} could not be read{why}, so nothing was done. "
            f"Send one JSON object with {takes}. {hint}".strip(),
        )
    unknown = [key for key in raw if key not in fields]
    if unknown:
        names = ", ".join(one_line(str(echo(str(key))), 40) or "(a blank)" for key in unknown[:5])
        return Refusal(
            "unknown-key", f"{tool} does not take {names}; nothing was done. It takes {takes}. {hint}".strip()
        )
    arguments: Arguments = {}
    for name, reader in fields.items():
        value = reader(raw.get(name))
        if isinstance(value, Refusal):
            return value
        if value is not None:
            arguments[name] = value
    return arguments


def order_reference(value: Any) -> str | Refusal:
    return references.read("order", value)


def subscription_reference(value: Any) -> str | Refusal:
    return references.read("subscription", value)


def earlier_refund(value: Any) -> str | Refusal | None:
    """The reference of a refund, or None where none is given."""
    return None if value is None else references.read("refund", value)


def minor_amount(unit: Unit) -> Reader:
    """A whole amount of at least one minor unit; nothing else is turned into one."""

    def reader(value: Any) -> int | Refusal:
        if value is None or value == "":
            return Refusal("amount-missing", f"How much? amount_pence is needed: {unit.needed}.")
        if isinstance(value, str) and len(value) > 40:
            return Refusal("amount-type", f"The amount is not valid: amount_pence must be {unit.needed}.")
        if isinstance(value, bool) or not isinstance(value, int):
            return Refusal(
                "amount-type",
                f"amount_pence must be one whole number: {unit.needed}. Nothing is rounded or converted.",
            )
        if value < 1:
            return Refusal("amount-not-positive", f"The amount must be positive: at least {unit.least}.")
        if value > LARGEST:
            return Refusal(
                "amount-too-large",
                "The amount is not valid: the most that can be refunded is what remains of the order. get_order shows "
                "it.",
            )
        return value

    return reader


def reason(most: int = 500) -> Reader:
    """A reason that must be given, as text that can be stored."""

    def reader(value: Any) -> str | Refusal:
        if value is None or (isinstance(value, str) and not one_line(value, most)):
            return Refusal("reason-missing", "Why? Give the reason in a few words.")
        if not isinstance(value, str):
            return Refusal("reason-type", "A reason is text: say it in a few words.")
        if len(value) > most:
            return Refusal("reason-long", f"The reason is too long: say it in at most {most} characters.")
        if not storable(value):
            return Refusal("reason-characters", "The reason has a character that cannot be stored. Leave it out.")
        return without_card_numbers(one_line(value, most))

    return reader


def note(standard: str, most: int) -> Reader:
    """Text that is never a cause to refuse: cleaned and cut, or the standard words where there is none."""

    def reader(value: Any) -> str:
        text = one_line(value, most) if isinstance(value, str) else ""
        return without_card_numbers(text) or standard

    return reader


def question(value: Any) -> str | Refusal:
    """What to look for in the help centre."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return Refusal("question-missing", "What should be looked for? Ask a question in a sentence.")
    if not isinstance(value, str):
        return Refusal("question-type", "A question is text: ask it in a sentence.")
    if len(value) > 1000:
        return Refusal("question-long", "The question is too long: ask it in at most 1,000 characters.")
    return one_line(value.encode(errors="replace").decode(), 1000)
