"""Every currency in every locale: what a minor unit is, how an amount is shown, and how it is typed."""

import json
import re
import timeit
import unicodedata
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from babel import Locale, localedata
from babel.numbers import format_currency, get_decimal_symbol, get_group_symbol, list_currencies
from contracts.currencies import exponent, known_currency, known_locale
from contracts.money import Money, read
from hypothesis import example, given
from hypothesis import strategies as st

KNOWN = sorted(code for code in list_currencies() if exponent(code) is not None)
UNKNOWN = sorted(code for code in list_currencies() if exponent(code) is None)
COMMON = (
    "",
    "en_GB",
    "en_US",
    "de_DE",
    "fr_FR",
    "ja_JP",
    "ar_EG",
    "en_IN",
    "fa_IR",
    "de_CH",
    "es_ES",
    "he_IL",
    "hi_IN",
)
LOCALES = sorted(localedata.locale_identifiers())
amounts = st.integers(-(2**53) + 1, 2**53 - 1)
sums = st.integers(0, 2**53 - 1)
currencies = st.sampled_from(KNOWN)
locales = st.sampled_from(COMMON) | st.sampled_from(LOCALES)


@pytest.mark.parametrize(
    ("amount", "currency", "locale", "text"),
    [
        (124_900, "GBP", "en_GB", "£1,249.00"),
        (-1_800, "GBP", "en_GB", "−£18.00"),
        (1_200, "USD", "en_US", "$12.00"),
        (1_200, "USD", "en_GB", "US$12.00"),
        (124_900, "EUR", "de_DE", "1.249,00\u00a0€"),
        (-124_900, "EUR", "de_DE", "−1.249,00\u00a0€"),
        (124_900, "EUR", "fr_FR", "1\u202f249,00\u00a0€"),
        (18_000, "XOF", "fr_SN", "18\u202f000\u00a0XOF"),
        (124_900, "JPY", "ja_JP", "￥124,900"),
        (12_345_678_900, "INR", "en_IN", "₹12,34,56,789.00"),
        (124_900, "EGP", "ar_EG", "1,249.00\u00a0EGP"),
        (-124_900, "CHF", "de_CH", "CHF−1’249.00"),
    ],
)
def test_an_amount_reads_as_the_tenants_locale_writes_it(amount: int, currency: str, locale: str, text: str) -> None:
    assert Money(amount, currency).text(locale) == text


# CLDR rounds some of these for reading; a minor unit of them is less than that.
@pytest.mark.parametrize(
    ("codes", "places"),
    [
        ("CLP ISK JPY KRW PYG RWF UGX VND XAF XOF XPF", 0),
        ("AFN ALL EUR GBP HUF IDR IRR KPW LAK LBP MGA MMK MRU RSD SOS SYP USD YER", 2),
        ("BHD IQD JOD KWD LYD OMR TND", 3),
        ("CLF UYW", 4),
    ],
)
def test_a_minor_unit_is_what_iso_4217_says_it_is(codes: str, places: int) -> None:
    assert {code: exponent(code) for code in codes.split()} == dict.fromkeys(codes.split(), places)


def test_no_currency_changes_its_minor_unit_unnoticed_when_a_library_is_brought_up_to_date() -> None:
    # What an amount in a log means must not move with a version. A currency that was taken out of use stays readable
    # only for as long as it is here: decide what to do before this file is changed.
    golden = json.loads((Path(__file__).parent / "minor_units.json").read_text())
    assert {code: exponent(code) for code in golden} == golden


@given(amounts, currencies, locales)
@example(18_000, "XOF", "en_GB")
@example(18_000, "IQD", "ar_IQ")
def test_no_minor_unit_is_lost_in_the_text(amount: int, currency: str, locale: str) -> None:
    text = Money(amount, currency).text(locale)
    digits = int(re.sub(r"[^0-9]", "", text))
    assert (-digits if "−" in text else digits) == amount


@given(sums, currencies, locales)
@example(1_249, "KWD", "de_DE")
@example(18_000, "XOF", "fr_SN")
@example(2**53 - 1, "INR", "en_IN")
def test_what_is_shown_and_what_is_to_be_typed_are_read_as_the_same_amount(
    amount: int, currency: str, locale: str
) -> None:
    money = Money(amount, currency)
    assert read(money.text(locale), currency, locale) == amount
    assert read(money.typed(locale), currency, locale) == amount
    assert read(f" {currency} {money.typed(locale)} ", currency, locale) == amount


ZEROS = {"arab": 0x660, "arabext": 0x6F0, "deva": 0x966, "beng": 0x9E6, "mymr": 0x1040}


@given(sums, currencies, st.sampled_from(["ar_EG", "fa_IR", "mr_IN", "bn_BD", "my_MM", "ne_NP", "ckb_IQ"]))
def test_the_digits_of_the_locale_are_read_as_well(amount: int, currency: str, locale: str) -> None:
    system, places = Locale.parse(locale).default_numbering_system, exponent(currency) or 0
    group, decimal = (get(locale, numbering_system=system) for get in (get_group_symbol, get_decimal_symbol))
    whole, rest = divmod(amount, 10**places)
    first, thousands = (whole // 1000, f"{group}{whole % 1000:03d}") if 1000 <= whole < 100_000 else (whole, "")
    plain = f"{first}{thousands}{decimal}{rest:0{places}d}" if places else f"{first}{thousands}"
    typed = "".join(chr(ZEROS[system] + int(letter)) if letter in "0123456789" else letter for letter in plain)
    assert read(typed, currency, locale) == amount


@pytest.mark.parametrize(
    ("typed", "currency", "locale", "minor"),
    [
        ("1249,00", "EUR", "de_DE", 124_900),
        ("1.249,00 €", "EUR", "de_DE", 124_900),
        ("€ 1.249", "EUR", "de_DE", 124_900),
        ("12,5", "EUR", "de_DE", 1_250),
        ("1 249,00", "EUR", "fr_FR", 124_900),
        ("1\u00a0249,00 €", "EUR", "fr_FR", 124_900),
        ("18000", "XOF", "fr_SN", 18_000),
        ("F CFA 18 000", "XOF", "fr_SN", 18_000),
        ("1'249.00", "CHF", "de_CH", 124_900),
        ("12,34,567", "INR", "en_IN", 123_456_700),
        ("١٬٢٤٩٫٥٠", "EGP", "ar_EG", 124_950),
        ("1249.50", "EGP", "ar_EG", 124_950),
        ("۱۲۴۹", "IRR", "fa_IR", 124_900),
        ("usd 12", "USD", "en_US", 1_200),
    ],
)
def test_an_amount_is_read_as_people_of_the_locale_write_it(typed: str, currency: str, locale: str, minor: int) -> None:
    assert read(typed, currency, locale) == minor


@pytest.mark.parametrize(
    ("typed", "currency", "locale"),
    [
        ("12.50", "EUR", "de_DE"),  # a group of two digits is none
        ("12,50", "GBP", "en_GB"),
        ("1,249", "KWD", "en_GB"),  # a thousand and more, or one and a bit
        ("1.249", "KWD", "de_DE"),
        ("1,249.0000", "KWD", "en_GB"),
        ("12.5", "JPY", "ja_JP"),
        ("18000,00", "XOF", "fr_SN"),
        ("1.249.00", "EUR", "de_DE"),
        ("1,2,3", "GBP", "en_GB"),
        ("12,34,567", "USD", "en_US"),
        ("$12", "CAD", "en_US"),
        ("€12", "GBP", "en_GB"),
        ("££12", "GBP", "en_GB"),
        ("£12 GBP GBP", "GBP", "en_GB"),
        ("٣", "GBP", "en_GB"),
        ("٣3", "EGP", "ar_EG"),
        ("٣۳", "EGP", "ar_EG"),
        ("-5", "GBP", "en_GB"),
        ("−5", "GBP", "en_GB"),
        ("1e3", "GBP", "en_GB"),
        ("", "GBP", "en_GB"),
        ("£", "GBP", "en_GB"),
        (".", "GBP", "en_GB"),
        ("½", "GBP", "en_GB"),
        ("9" * 40, "GBP", "en_GB"),
        ("12", "XXX", "en_GB"),
        ("12", "", ""),
    ],
)
def test_an_amount_that_is_not_clear_is_none(typed: str, currency: str, locale: str) -> None:
    assert read(typed, currency, locale) is None


@given(st.text(max_size=70), currencies, locales)
def test_whatever_is_typed_is_an_amount_or_none(typed: str, currency: str, locale: str) -> None:
    minor = read(typed, currency, locale)
    assert minor is None or 0 <= minor < 2**53


@pytest.mark.parametrize("locale", COMMON)
def test_no_two_currencies_are_written_so_that_one_could_be_taken_for_the_other(locale: str) -> None:
    # `F CFA` and `FCFA` are two currencies; nobody can be asked to see the blank.
    written = Counter(
        (
            exponent(code),
            re.sub(r"[\s.]", "", unicodedata.normalize("NFKC", Money(100_000, code).text(locale)).casefold()),
        )
        for code in KNOWN
    )
    assert [text for text, times in written.items() if times > 1] == []


@given(amounts, currencies, locales)
def test_nothing_in_an_amount_is_unseen_or_turns_the_reading_order(amount: int, currency: str, locale: str) -> None:
    text = Money(amount, currency).text(locale)
    assert not [letter for letter in text if unicodedata.category(letter)[0] == "C"]
    assert not [letter for letter in text if unicodedata.bidirectional(letter) in ("R", "AL")]


@pytest.mark.parametrize("code", [*UNKNOWN, "ZZZ", "XAU"])
def test_an_amount_of_a_currency_that_is_not_known_is_never_a_guess(code: str) -> None:
    assert Money(18_000, code).text("en_GB") == f"18000 minor units of {code}"
    assert Money(-18_000, code).text() == f"−18000 minor units of {code}"
    assert read("180", code) is None
    with pytest.raises(ValueError, match=f"'{code}' is no currency that ISO 4217 has a minor unit for"):
        known_currency(code)


def test_an_amount_of_no_currency_is_told_in_minor_units() -> None:
    assert Money(18_000, "").text() == "18000 minor units"


@pytest.mark.parametrize("currency", ["GBP", "EUR", "JPY", "USD", "KWD", "XPF", "INR", "CHF"])
@pytest.mark.parametrize(
    "locale", ["en_GB", "en_US", "de_DE", "fr_FR", "ja_JP", "en_IN", "nl_NL", "sv_SE", "pt_BR", "ko_KR"]
)
def test_where_cldr_shows_every_minor_unit_an_amount_reads_as_cldr_has_it(currency: str, locale: str) -> None:
    for minor in (0, 5, 124_900, 12_345_678_901):
        whole = Decimal(minor).scaleb(-(exponent(currency) or 0))
        theirs = format_currency(whole, currency, locale=locale)
        # Letters are set off from the digits here, as CLDR says to and babel does not.
        assert Money(minor, currency).text(locale).replace("\u00a0", "") == theirs.replace("\u00a0", "")


@pytest.mark.parametrize(
    ("name", "canonical"), [("en_GB", "en_GB"), ("en-gb", "en_GB"), ("zh_TW", "zh_Hant_TW"), ("fa", "fa")]
)
def test_a_locale_is_known_by_its_name_in_cldr(name: str, canonical: str) -> None:
    assert known_locale(name) == canonical


@pytest.mark.parametrize("name", ["", "C", "xx", "en_ZZ", "de_FR", "en_GB.UTF-8", "../en", "english"])
def test_a_locale_that_cldr_does_not_know_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(ValueError, match=r"is no locale that CLDR knows\. Give a language and a territory"):
        known_locale(name)


def test_an_amount_is_written_in_a_few_microseconds_once_its_currency_is_known() -> None:
    # It is written many times a page; what CLDR has of a locale is looked up once.
    Money(124_900, "GBP").text("en_GB")
    seconds = min(timeit.repeat(lambda: Money(124_900, "GBP").text("en_GB"), number=1000, repeat=5))
    assert seconds / 1000 < 100e-6
