"""What a run's amounts are in, and how they are written: what the model and people are told of them."""

from dataclasses import dataclass

from contracts.currencies import exponent
from contracts.facts import RunStarted
from contracts.money import Money


@dataclass(frozen=True, slots=True)
class Unit:
    """The tenant's currency and locale; empty where the run does not say."""

    currency: str = ""
    locale: str = ""

    @classmethod
    def of(cls, started: RunStarted) -> "Unit":
        return cls(started.currency or "", started.locale or "")

    @property
    def needed(self) -> str:
        """What an amount among a call's arguments has to be."""
        whole = "a whole number in the minor unit of"
        if exponent(self.currency) is None:
            return f"{whole} the order's currency, as get_order shows it in brackets"
        return f"{whole} {self.currency}: 1250 is {Money(1250, self.currency).text(self.locale)}"

    @property
    def least(self) -> str:
        """The smallest amount that there is."""
        if exponent(self.currency) is None:
            return "1 penny, cent or whatever the minor unit of the order's currency is"
        return f"1, which is {Money(1, self.currency).text(self.locale)}"
