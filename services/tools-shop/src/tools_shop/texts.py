"""Text from tickets, models and the shop's own rows: all of it hostile, so bounded, and harmless on its line."""

import re
import unicodedata
from datetime import date
from typing import Any

from contracts.money import Money

# Characters that turn the order of what a person reads. Joiners stay: several scripts need them.
_DIRECTION = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_BLANKS = re.compile(r"\s+")
_CARD = re.compile(r"(?<!\d)(?:\d[ -]?){9,15}(\d{4})(?!\d)")
_CARD_CODE = re.compile(r"\b(cvv|cvc|cv2|csc)(\W{0,3})\d{3,4}\b", re.IGNORECASE)
_LUHN = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_UNITS = {"GBP": "pence", "USD": "cents", "EUR": "cents", "CAD": "cents", "AUD": "cents"}


def storable(text: str) -> bool:
    """Whether the database and the log can hold it as it is: no NUL, no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def one_line(text: str, most: int) -> str:
    """On one line, without control and direction characters, at most `most` characters; a cut is marked."""
    text = text[: most * 4]
    if not (text.isascii() and text.isprintable()):
        text = "".join(_harmless(character) for character in text.translate(_DIRECTION))
    text = _BLANKS.sub(" ", text).strip()
    return text if len(text) <= most else f"{text[: most - 6].rstrip()} (cut)"


def shown(value: str, most: int = 48) -> str:
    """Something unrecognised as it may be repeated: quoted, cut, and everything outside ASCII written out."""
    escaped = value[:most].encode("ascii", "backslashreplace").decode()
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)
    return f'"{printable[:most]}{"…" if len(value) > most or len(printable) > most else ""}"'


def without_card_numbers(text: str) -> str:
    """Payment card numbers masked to their last four digits, security codes altogether."""
    text = _CARD.sub(lambda found: f"[card ending {found[1]}]" if _is_card(found[0]) else found[0], text)
    return _CARD_CODE.sub(r"\1\2[removed]", text)


def masked(email: str) -> str:
    """An address as it may be shown: `t•••@mail.example`."""
    local, _, domain = email.partition("@")
    return f"{local[:1]}•••@{domain}"


def amount(minor: int, currency: str, locale: str = "") -> str:
    """For a model that must hand amounts on in minor units: `£34.00 (3400 pence)`."""
    return f"{Money(minor, currency).text(locale)} ({minor} {_UNITS.get(currency, 'minor units')})"


def day(value: date | str | None) -> str:
    """`9 November 2026`, or `an unknown day`."""
    if value is None:
        return "an unknown day"
    value = date.fromisoformat(value[:10]) if isinstance(value, str) else value
    return f"{value.day} {value:%B %Y}"


def more(count: int, listed: int, what: str) -> list[str]:
    """The line that says how many of a list are not shown, as in `And 12 more items, which are not shown.`; none where
    all are."""
    return [f"And {count - listed} more {what}, which are not shown."] if count > listed else []


def echo(value: Any, depth: int = 4) -> Any:
    """Arguments that could not be used, cut down to what a fact may hold."""
    if isinstance(value, str):
        return one_line(value.encode(errors="replace").decode(), 200)
    if isinstance(value, bool) or value is None or (isinstance(value, int | float) and abs(value) < 2**53):
        return value
    if isinstance(value, dict) and depth:
        return {str(echo(str(key))): echo(item, depth - 1) for key, item in list(value.items())[:20]}
    if isinstance(value, list) and depth:
        return [echo(item, depth - 1) for item in value[:20]]
    return f"({type(value).__name__})"


def _harmless(character: str) -> str:
    if character.isspace():
        return " "
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    return "" if unicodedata.category(character) == "Cc" else character


def _is_card(text: str) -> bool:
    digits = [int(character) for character in text if character.isdecimal()]
    return (sum(digits[-1::-2]) + sum(_LUHN[digit] for digit in digits[-2::-2])) % 10 == 0
