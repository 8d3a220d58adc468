"""What a person changed of a call before approving it, in words."""

from collections.abc import Mapping

from contracts.money import Money
from contracts.parts import CallQuote

from gateway.texts import excerpt, plain

_MONEY = ("_pence", "_cents", "_minor")


def changes(quote: CallQuote, edited: Mapping[str, object], locale: str = "") -> list[tuple[str, str, str]]:
    """The changed arguments: each one's name for people, before, after."""
    names = dict.fromkeys((*quote.arguments, *edited))
    return [
        (label(name), _shown(quote, name, before, locale), _shown(quote, name, after, locale))
        for name in names
        if (before := quote.arguments.get(name)) != (after := edited.get(name))
    ]


def in_words(quote: CallQuote, edited: Mapping[str, object], locale: str = "") -> str:
    """In one line, as in `amount £120.00 instead of £180.00`; empty where nothing is known of it any more."""
    return ", ".join(f"{name} {after} instead of {before}" for name, before, after in changes(quote, edited, locale))


def is_money(quote: CallQuote, name: str, value: object) -> bool:
    return bool(currency(quote)) and type(value) is int and name.endswith(_MONEY)


def currency(quote: CallQuote) -> str:
    return (quote.effect and quote.effect.currency) or ""


def label(name: str) -> str:
    """An argument's name for people: `amount_pence` reads `amount`."""
    for ending in _MONEY:
        name = name.removesuffix(ending)
    return name.replace("_", " ")


def _shown(quote: CallQuote, name: str, value: object, locale: str) -> str:
    if is_money(quote, name, value):
        return Money(int(str(value)), currency(quote)).text(locale)
    return excerpt(plain(value), 120)
