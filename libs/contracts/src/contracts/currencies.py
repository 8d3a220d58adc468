"""How amounts of a currency are written: its minor unit is ISO 4217's, the rest is as CLDR has it for a locale.

CLDR's own digits say how a currency is customarily rounded for reading, which is less than its minor unit for some (a
rial, a lek): what is counted in minor units could not be shown by them (docs/decisions/0017).
"""

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from babel import Locale, UnknownLocaleError
from babel.numbers import get_currency_symbol, get_decimal_symbol, get_group_symbol
from iso4217 import Currency

MINUS = "−"
# Of a tenant that names none, and of logs from before tenants did.
_NO_LOCALE = "en"
_NUMBERS = "latn"
_CURRENCY_SIGN = "¤"


@dataclass(frozen=True, slots=True)
class Style:
    """How one locale writes amounts of one currency: `positive` and `negative` are what stands around the digits.

    grouping: sizes of the last group of digits and of those before it. signs: what else people may call the currency.
    """

    exponent: int
    positive: tuple[str, str]
    negative: tuple[str, str]
    group: str
    decimal: str
    grouping: tuple[int, int]
    signs: tuple[str, ...]


def exponent(code: str) -> int | None:
    """How many decimal places a currency's minor unit is; None for what is no currency that anything is paid in."""
    return _EXPONENTS.get(code)


def known_currency(code: str) -> str:
    """The code, if amounts of it can be read. Raises ValueError, which says what to do."""
    if exponent(code) is None:
        raise ValueError(
            f"{code[:40]!r} is no currency that ISO 4217 has a minor unit for: its amounts could not be read. "
            "Give the code of one that is in use, such as GBP"
        )
    return code


def known_locale(name: str) -> str:
    """The locale's name as CLDR writes it, `en_GB` for `en-gb`. Raises ValueError, which says what to do."""
    asked = name.replace("-", "_")
    try:
        found = Locale.parse(asked)
    except (ValueError, UnknownLocaleError):
        found = None
    # CLDR names the script as well (`zh_Hant_TW`); a territory that it does not know it leaves out.
    if found is None or not {*asked.lower().split("_")} <= {*str(found).lower().split("_")}:
        raise ValueError(
            f"{name[:40]!r} is no locale that CLDR knows. Give a language and a territory, such as en_GB or de_DE"
        )
    return str(found)


@lru_cache(maxsize=1024)
def style(code: str, locale: str = "") -> Style | None:
    """None for a currency whose minor unit is not known."""
    places = exponent(code)
    if places is None:
        return None
    found = _locale(locale or _NO_LOCALE)
    symbol, pattern = _symbol(code, found), found.currency_formats["standard"]
    around = [_around(prefix, suffix, symbol) for prefix, suffix in zip(pattern.prefix, pattern.suffix, strict=True)]
    if not locale:  # as amounts were written before there were locales
        around = [(before.translate(_PLAIN_BLANKS), after.translate(_PLAIN_BLANKS)) for before, after in around]
    return Style(
        exponent=places,
        positive=around[0],
        negative=around[1],
        group=get_group_symbol(found, numbering_system=_NUMBERS),
        decimal=get_decimal_symbol(found, numbering_system=_NUMBERS),
        grouping=pattern.grouping,
        signs=tuple(dict.fromkeys((symbol, code, _seen(get_currency_symbol(code, found))))),
    )


@lru_cache(maxsize=64)
def own_digits(locale: str) -> tuple[str, str] | None:
    """The group and decimal separators between a locale's own digits; None where those are 0 to 9."""
    found = _locale(locale or _NO_LOCALE)
    own = found.default_numbering_system
    if own == _NUMBERS or own not in found.number_symbols:
        return None
    return get_group_symbol(found, numbering_system=own), get_decimal_symbol(found, numbering_system=own)


def _locale(name: str) -> Locale:
    """What a log names and CLDR has no more is written as where nothing is named."""
    try:
        return Locale.parse(name)
    except (ValueError, UnknownLocaleError):
        return Locale.parse(_NO_LOCALE)


def _symbol(code: str, locale: Locale) -> str:
    """The locale's symbol, or the code where that could be taken for another currency's, or turns the reading order."""
    symbol = _seen(get_currency_symbol(code, locale))
    if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in symbol):
        return code
    return symbol if _looks(str(locale))[_look(symbol)] == 1 else code


@lru_cache(maxsize=64)
def _looks(locale: str) -> Mapping[str, int]:
    """How many currencies have symbols that look the same in a locale."""
    return Counter(_look(_seen(get_currency_symbol(code, locale))) for code in _EXPONENTS)


def _look(symbol: str) -> str:
    """What of a symbol tells it from another: no blanks, no dots, no case, no width (`F CFA` and `FCFA`)."""
    plain = unicodedata.normalize("NFKC", symbol).casefold()
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] in "LNS")


def _seen(text: str) -> str:
    """Without what is not seen: marks of direction, which other texts show as what they are."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


def _around(prefix: str, suffix: str, symbol: str) -> tuple[str, str]:
    """A pattern's two sides of the digits, with the symbol in its place: set off by a blank where both are letters."""
    before, after = _seen(prefix).replace("-", MINUS), _seen(suffix).replace("-", MINUS)
    if before.endswith(_CURRENCY_SIGN) and _is_set_off(symbol[-1]):
        before += "\u00a0"
    if after.startswith(_CURRENCY_SIGN) and _is_set_off(symbol[0]):
        after = "\u00a0" + after
    return before.replace(_CURRENCY_SIGN, symbol), after.replace(_CURRENCY_SIGN, symbol)


def _is_set_off(letter: str) -> bool:
    return unicodedata.category(letter)[0] not in "SZ"


_PLAIN_BLANKS = dict.fromkeys(map(ord, "\u00a0\u202f"), " ")
_EXPONENTS: dict[str, int] = {one.code: one.exponent for one in Currency if one.exponent is not None}
