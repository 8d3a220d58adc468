"""Money: an integer of minor units and its currency, how people read it and how they type it."""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from contracts.canonical import LARGEST
from contracts.currencies import MINUS, Style, own_digits, style

_LONGEST = 60  # characters of a typed amount
_BLANK = re.compile(r"[\s\u00a0\u2009\u202f]")
_UNSEEN = re.compile("[\u061c\u200e\u200f\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Money:
    """`amount_minor` is in the currency's minor unit as ISO 4217 has it (pence, cents, whole yen); `currency` is its
    code."""

    amount_minor: int
    currency: str

    def text(self, locale: str = "") -> str:
        """In full, as in `£1,249.00` or `−£18.00` (U+2212): every minor unit, whatever the locale.

        An amount of a currency that is not known is told in minor units.
        """
        known = style(self.currency, locale)
        if known is None:
            of = f" of {self.currency}" if self.currency else ""
            return f"{MINUS if self.amount_minor < 0 else ''}{abs(self.amount_minor)} minor units{of}"
        before, after = known.negative if self.amount_minor < 0 else known.positive
        whole, rest = divmod(abs(self.amount_minor), 10**known.exponent)
        return f"{before}{_grouped(whole, known)}{_places(rest, known)}{after}"

    def typed(self, locale: str = "") -> str:
        """As a person types it, as in `1249.00`."""
        known = style(self.currency, locale)
        if known is None:
            return str(self.amount_minor)
        whole, rest = divmod(abs(self.amount_minor), 10**known.exponent)
        return f"{MINUS if self.amount_minor < 0 else ''}{whole}{_places(rest, known)}"


def read(typed: str, currency: str, locale: str = "") -> int | None:
    """The minor units of an amount as the locale writes it: `120`, `120.5`, `£1,120.00`. None for what is none, is less
    than nothing or is not clear; nothing is rounded and nothing is guessed."""
    known = style(currency, locale)
    if known is None or len(typed) > _LONGEST:
        return None
    text = _without_sign(_BLANK.sub(" ", _UNSEEN.sub("", typed)).strip(), known)
    number = _in_plain_digits(text, known, locale)
    if number is None:
        return None
    digits, group, decimal = number
    found = _pattern(group, decimal, known.grouping, known.exponent).fullmatch(digits)
    if found is None or not (found["whole"] or found["places"]):
        return None
    whole, places = found["whole"] or "", found["places"]
    if places is None and 0 < known.grouping[0] <= known.exponent and len(re.findall(r"\D", whole)) == 1:
        return None  # `1,249` of a currency with three decimal places: a group here, and decimals elsewhere
    minor = int(re.sub(r"\D", "", whole) + (places or "").ljust(known.exponent, "0"))
    return minor if minor <= LARGEST else None


def _grouped(whole: int, known: Style) -> str:
    last, others = known.grouping
    if last == others == 3:
        return f"{whole:,}".replace(",", known.group)
    digits = str(whole)
    parts = [digits[-last:]]
    digits = digits[:-last]
    while digits:
        parts.append(digits[-others:])
        digits = digits[:-others]
    return known.group.join(reversed(parts))


def _places(rest: int, known: Style) -> str:
    return f"{known.decimal}{rest:0{known.exponent}d}" if known.exponent else ""


def _without_sign(text: str, known: Style) -> str:
    """The digits of an amount: the currency may be named once, in front or behind."""
    for sign in sorted(known.signs, key=len, reverse=True):
        sign = _BLANK.sub(" ", sign)
        if sign and text.upper().startswith(sign.upper()):
            return text[len(sign) :].strip()
        if sign and text.upper().endswith(sign.upper()):
            return text[: -len(sign)].strip()
    return text


def _in_plain_digits(text: str, known: Style, locale: str) -> tuple[str, str, str] | None:
    """The text in 0 to 9, with the separators between them: digits of another script only where they are the locale's
    own, and never of two scripts."""
    scripts = {ord(letter) - int(letter) for letter in text if letter.isdecimal()}
    if not scripts <= {ord("0")}:
        own = own_digits(locale)
        if own is None or len(scripts) != 1:
            return None
        plain = "".join(str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in text)
        return plain, *own
    return text, known.group, known.decimal


@lru_cache(maxsize=256)
def _pattern(group: str, decimal: str, grouping: tuple[int, int], places: int) -> re.Pattern[str]:
    last, others = grouping
    between = "['’]" if group == "’" else re.escape(_BLANK.sub(" ", group))
    whole = rf"\d{{1,16}}|\d{{1,{others}}}(?:{between}\d{{{others}}})*{between}\d{{{last}}}"
    behind = rf"(?:{re.escape(decimal)}(?P<places>\d{{0,{places}}}))?" if places else "(?P<places>(?!))?"
    return re.compile(rf"(?P<whole>{whole}){behind}", re.ASCII)
