"""What a model call costs, and what a run's money reaches for."""

import pytest
from agent_runner.prices import NoPrice, Price, Prices, Rates
from contracts.parts import Usage
from hypothesis import given
from hypothesis import strategies as st

PRICES = Prices.load()
TOKENS = st.integers(0, 300_000)


def test_each_kind_of_token_has_its_own_price() -> None:
    price = Price(Rates(input=2000, output=10_000, cache_write=2500, cache_read=100))
    assert price.cost(Usage(input=1_000_000)) == 2_000_000
    assert price.cost(Usage(output=1_000_000)) == 10_000_000
    assert price.cost(Usage(cache_write=1_000_000)) == 2_500_000
    assert price.cost(Usage(cache_read=1_000_000)) == 100_000


def test_a_fraction_of_a_micro_dollar_counts_as_one() -> None:
    assert PRICES.of("claude-haiku-5-5").cost(Usage(cache_read=1)) == 1


def test_a_long_prompt_has_the_long_price_for_all_of_its_tokens() -> None:
    haiku = PRICES.of("claude-haiku-5-5")
    assert haiku.cost(Usage(input=100_000, output=1000)) == 10_500
    assert haiku.cost(Usage(input=1, cache_read=100_000, output=1000)) == 7_501


def test_a_dated_model_has_the_price_of_its_name() -> None:
    assert PRICES.of("claude-haiku-4-5-20251001") == PRICES.of("claude-haiku-4-5")


def test_a_model_without_a_price_is_named() -> None:
    with pytest.raises(NoPrice, match="gpt-9"):
        PRICES.of("gpt-9")


@given(st.sampled_from(["claude-sonnet-5-5", "claude-haiku-5-5", "stand-in"]), TOKENS, TOKENS, TOKENS, TOKENS)
def test_no_call_costs_more_than_was_reserved_for_it(
    model: str, fresh: int, write: int, read: int, output: int
) -> None:
    price = PRICES.of(model)
    usage = Usage(input=fresh, cache_write=write, cache_read=read, output=output)
    assert price.cost(usage) <= price.at_most(fresh + write + read, output)


@given(st.sampled_from(["claude-sonnet-5-5", "claude-haiku-5-5"]), TOKENS, st.integers(0, 5_000_000))
def test_output_that_is_affordable_is_paid_for(model: str, prompt: int, money: int) -> None:
    price = PRICES.of(model)
    output = price.affordable_output(prompt, money)
    if output >= 0:
        assert price.at_most(prompt, output) <= money
