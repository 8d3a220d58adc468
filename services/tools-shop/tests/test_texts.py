"""Text that comes from others, made harmless."""

import pytest
from contracts.canonical import canonical
from hypothesis import given
from hypothesis import strategies as st
from tools_shop import references, texts
from tools_shop.outcomes import Refusal
from tools_shop.toolsets.shop import shop

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=10,
)


async def no_help(question: str) -> None:
    return None


TOOLS = shop(no_help).tools
NAMES = sorted({name for tool in TOOLS.values() for name in tool.fields})


@given(ANY_TEXT, st.integers(8, 60))
def test_a_line_is_one_line_of_at_most_so_many_storable_characters(text, most):
    line = texts.one_line(text, most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert texts.storable(line)


@given(ANYTHING)
def test_whatever_is_echoed_the_log_can_hold(value):
    assert len(canonical(texts.echo(value))) < 200_000


@given(st.sampled_from(sorted(TOOLS)), ANYTHING | st.dictionaries(st.sampled_from(NAMES), ANYTHING))
def test_reading_arguments_never_raises_and_gives_what_the_log_can_hold(name, raw):
    arguments = TOOLS[name].read(raw)
    if isinstance(arguments, Refusal):
        assert 10 < len(arguments.text) < 1500
        canonical(arguments.text)
    else:
        canonical(arguments)


@pytest.mark.parametrize(
    "written", ["ORD-10042", "ord-10042", "  Ord-10042\n", "#ORD-10042", "“ORD-10042”", "ORD–10042."]
)
def test_a_reference_is_one_reference_however_it_is_written(written):
    assert references.read("order", written) == "ORD-10042"


def test_card_numbers_are_masked_and_other_numbers_are_not():
    masked = texts.without_card_numbers("4111 1111 1111 1111, cvv 123, order 10042, parcel 1550267734123456")
    assert masked == "[card ending 1111], cvv [removed], order 10042, parcel 1550267734123456"


def test_joiners_of_other_scripts_stay():
    assert texts.one_line("ব্রোকেন پیکج می‌خواهم", 80) == "ব্রোকেন پیکج می‌خواهم"
