"""What the tokens of a model call cost, in micro-dollars."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from importlib.resources import files
from typing import Any

from contracts.parts import Usage
from contracts.strict import parse_yaml

_DATE = re.compile(r"-\d{8}$")
_PARTS = 1000  # prices are kept as integers: micro-dollars for so many tokens


class NoPrice(LookupError):
    """The price list does not have this model, so a cost limit could not be kept."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Micro-dollars for 1,000 tokens of each kind."""

    input: int
    output: int
    cache_write: int
    cache_read: int

    def of(self, usage: Usage) -> int:
        """Micro-dollars, rounded up."""
        total = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_write * self.cache_write
            + usage.cache_read * self.cache_read
        )
        return -(-total // _PARTS)


@dataclass(frozen=True, slots=True)
class Price:
    """A model's rates; `long` holds for every token of a request whose prompt is longer than `long_above` tokens."""

    rates: Rates
    long: Rates | None = None
    long_above: int = 0

    def rates_for(self, prompt_tokens: int) -> Rates:
        return self.long if self.long and prompt_tokens > self.long_above else self.rates

    def cost(self, usage: Usage) -> int:
        """Micro-dollars of one call."""
        return self.rates_for(usage.input + usage.cache_write + usage.cache_read).of(usage)

    def at_most(self, prompt_tokens: int, output_tokens: int) -> int:
        """Micro-dollars that a call cannot exceed, whatever is cached."""
        rates = self.rates_for(prompt_tokens)
        dearest = max(rates.input, rates.cache_write)
        return -(-(prompt_tokens * dearest + output_tokens * rates.output) // _PARTS)

    def affordable_output(self, prompt_tokens: int, micro_usd: int) -> int:
        """How many tokens of output `micro_usd` pays for behind such a prompt; negative if not even the prompt."""
        rates = self.rates_for(prompt_tokens)
        return (micro_usd * _PARTS - prompt_tokens * max(rates.input, rates.cache_write)) // rates.output


class Prices:
    """The price list. A dated model (`…-20251001`) has the price of its undated name."""

    def __init__(self, models: Mapping[str, Price]) -> None:
        self._models = models

    @classmethod
    def load(cls) -> "Prices":
        given = parse_yaml(files("agent_runner").joinpath("prices.yaml").read_text("utf-8"))
        return cls({name: _price(entry) for name, entry in given["models"].items()})

    def of(self, model: str) -> Price:
        """Raises NoPrice."""
        price = self._models.get(model) or self._models.get(_DATE.sub("", model))
        if price is None:
            raise NoPrice(model)
        return price


def _price(entry: dict[str, Any]) -> Price:
    long = entry.get("above_prompt")
    return Price(_rates(entry), _rates(long) if long else None, long["tokens"] if long else 0)


def _rates(entry: dict[str, Any]) -> Rates:
    """US dollars a million tokens are micro-dollars a token."""
    kinds = ("input", "output", "cache_write", "cache_read")
    return Rates(**{kind: int(Decimal(str(entry[kind])) * _PARTS) for kind in kinds})
