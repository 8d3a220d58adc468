"""Money: an integer of minor units and its currency, and how people read it."""

from dataclasses import dataclass

# ISO 4217 minor unit exponents that differ from 2, for the currencies in use.
_EXPONENTS = {"JPY": 0, "KRW": 0, "CLP": 0, "ISK": 0, "VND": 0, "BHD": 3, "KWD": 3, "JOD": 3, "OMR": 3, "TND": 3}
_SYMBOLS = {"GBP": "£", "USD": "$", "EUR": "€", "JPY": "¥"}


@dataclass(frozen=True, slots=True)
class Money:
    """`amount_minor` is in the currency's minor unit (pence, cents); `currency` is its ISO 4217 code."""

    amount_minor: int
    currency: str

    def text(self) -> str:
        """In full, as in `£1,249.00` or `−£18.00` (U+2212); a currency without a symbol is named: `CHF 12.00`."""
        exponent = _EXPONENTS.get(self.currency, 2)
        whole, rest = divmod(abs(self.amount_minor), 10**exponent)
        digits = f"{whole:,}" + (f".{rest:0{exponent}d}" if exponent else "")
        symbol = _SYMBOLS.get(self.currency, f"{self.currency} ")
        return f"{'−' if self.amount_minor < 0 else ''}{symbol}{digits}"
