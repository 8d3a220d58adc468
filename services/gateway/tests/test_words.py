"""How money, times and other people's text are written."""

from datetime import UTC, datetime, timedelta

import pytest
from contracts.parts import Effect
from gateway.console import words
from gateway.texts import excerpt
from gateway.views import Moved

GONE = Effect(
    summary="Refund",
    object="ORD-1",
    amount_minor=124900,
    currency="GBP",
    before={"refunded_minor": 0, "status": "delivered", "lines": 2},
    after={"refunded_minor": 124900, "status": "returned", "lines": 2},
)


def test_money_is_written_in_full_and_what_goes_out_is_negative_in_the_ledger() -> None:
    assert words.amount(GONE) == "£1,249.00"
    assert words.ledger(GONE) == "−£1,249.00"
    assert words.ledger(None) == ""


def test_currencies_are_never_added_together() -> None:
    assert words.sums((Moved(currency="GBP", amount_minor=4000), Moved(currency="USD", amount_minor=1200))) == (
        "£40.00 + $12.00"
    )


def test_a_change_names_what_was_and_what_will_be_and_leaves_out_what_stays() -> None:
    assert words.changes(GONE) == [("refunded", "£0.00", "£1,249.00"), ("status", "delivered", "returned")]


@pytest.mark.parametrize(
    ("micro_usd", "text"), [(0, "$0.000"), (31_400, "$0.031"), (1_000_000, "$1.00"), (12_345_678, "$12.35")]
)
def test_model_spend_has_three_decimals_below_a_dollar(micro_usd: int, text: str) -> None:
    assert words.spend(micro_usd) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-3, "0 s"), (8, "8 s"), (59.9, "59 s"), (240, "4 min"), (3960, "1 h 06"), (200_000, "2 d")]
)
def test_ages_are_short(seconds: float, text: str) -> None:
    assert words.age(timedelta(seconds=seconds)).replace(words.NBSP, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.84, "0.8 s"), (252, "4 min 12 s"), (59.97, "1 min 0 s"), (3960, "1 h 06")]
)
def test_durations_are_as_exact_as_is_of_use(seconds: float, text: str) -> None:
    assert words.duration(timedelta(seconds=seconds)).replace(words.NBSP, " ") == text


def test_times_are_the_tenants() -> None:
    at = datetime(2026, 7, 1, 14, 2, 11, tzinfo=UTC)

    assert words.clock(at, "Europe/London") == "15:02:11"
    assert words.stamp(at, "Europe/London") == "1 Jul 2026 15:02:11 BST"
    assert words.iso(at) == "2026-07-01T14:02:11Z"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Refund \u202e00.081£\u202c", "Refund ⟨U+202E⟩00.081£⟨U+202C⟩"),
        ("a\u200bb\ufeff", "a⟨U+200B⟩b⟨U+FEFF⟩"),
        ("bell\x07 esc\x1b[31m", "bell⟨U+0007⟩ esc⟨U+001B⟩[31m"),
        ("tag\U000e0041", "tag⟨U+E0041⟩"),
        ("lines\r\nand\ttabs", "lines\nand\ttabs"),
        ("naïve 日本語 👩‍🚀 £180.00", "naïve 日本語 👩‍🚀 £180.00"),
    ],
)
def test_characters_that_hide_or_turn_text_are_shown(text: str, shown: str) -> None:
    assert words.visible(text) == shown


def test_an_excerpt_is_one_line_cut_behind_a_word() -> None:
    assert excerpt("Hello\n\n there,  Tom", 13) == "Hello there, …"
    assert excerpt("short") == "short"
