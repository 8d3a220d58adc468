"""Money is whole minor units, and reads the same wherever it is shown."""

import re

import pytest
from contracts.money import Money
from hypothesis import given
from hypothesis import strategies as st

amounts = st.integers(-(2**53), 2**53)


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (18_000, "GBP", "£180.00"),
        (-18_000, "GBP", "−£180.00"),
        (124_900, "GBP", "£1,249.00"),
        (0, "GBP", "£0.00"),
        (1, "GBP", "£0.01"),
        (-1, "GBP", "−£0.01"),
        (99, "USD", "$0.99"),
        (100_000_000, "EUR", "€1,000,000.00"),
        (1_200, "CHF", "CHF 12.00"),
        (-1_200, "CHF", "−CHF 12.00"),
        (1_200, "JPY", "¥1,200"),
        (1_200, "KWD", "KWD 1.200"),
        (1_200, "CAD", "CA$12.00"),
        (18_000, "XOF", "XOF 18,000"),
        (18_000, "XAF", "XAF 18,000"),
        (18_000, "UGX", "UGX 18,000"),
        (18_000, "LYD", "LYD 18.000"),
        (18_000, "CLF", "CLF 1.8000"),
        (18_000, "XXX", "18000 minor units of XXX"),
    ],
)
def test_an_amount_reads_as_people_write_it(amount: int, currency: str, text: str) -> None:
    assert Money(amount, currency).text() == text


@given(amounts, st.sampled_from(["GBP", "USD", "EUR", "CHF", "JPY", "KWD", "XOF", "UGX", "CLF"]))
def test_no_minor_unit_is_lost_in_the_text(amount: int, currency: str) -> None:
    text = Money(amount, currency).text()
    digits = int(re.sub(r"\D", "", text))
    assert (-digits if text.startswith("−") else digits) == amount


@given(amounts, amounts)
def test_different_amounts_read_differently(one: int, other: int) -> None:
    assert (Money(one, "GBP").text() == Money(other, "GBP").text()) == (one == other)
