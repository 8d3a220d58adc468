"""The canonical form is RFC 8785's, whatever way it is made."""

import json
import math
from typing import Any

import pytest
import rfc8785
from contracts.canonical import LARGEST, canonical, sha256
from hypothesis import example, given
from hypothesis import strategies as st

text = st.text(st.characters(exclude_categories=("Cs",)))
plain_numbers = st.integers(-LARGEST, LARGEST) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda number: not LARGEST < abs(number) < 1e21
)
anything = st.recursive(
    st.none() | st.booleans() | plain_numbers | text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=25,
)


@given(anything)
@example({"\U0001f600": 1, "\ufb33": 2, "a": [1.5, -0.0, 1e21, 5e-324]})
@example({'\x00\x1f\x7f\u2028"\\/<': "\x08\x0c\n\r\t\x1b\u007f\u0080"})
@example([LARGEST, -LARGEST, 0.1, 100.0, 1e-7, 123456789012345.6])
def test_it_is_what_rfc8785_writes(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(anything)
def test_what_was_written_is_read_and_written_again_the_same(value: Any) -> None:
    written = canonical(value)
    assert canonical(json.loads(written)) == written


@given(st.dictionaries(text, anything, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, Any], random: Any) -> None:
    keys = list(value)
    random.shuffle(keys)
    assert sha256({key: value[key] for key in keys}) == sha256(value)


@pytest.mark.parametrize("where", [lambda bad: bad, lambda bad: [1, [bad]], lambda bad: {"a": {"b": (bad,)}}])
@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        math.inf,
        -math.inf,
        LARGEST + 1,
        -LARGEST - 1,
        10**30,
        float(2**53),
        -1e20,
        "\ud800",
        "half an emoji \udc00",
        b"bytes",
        {1, 2},
    ],
)
def test_what_json_cannot_carry_is_refused(bad: Any, where: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical(where(bad))


@pytest.mark.parametrize("key", [1, None, True, "\udfff", ("a",)])
def test_a_key_that_is_no_text_is_refused(key: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        canonical({"a": 1, key: 2})


@given(st.floats(min_value=2.0**53, max_value=1e21, exclude_max=True))
def test_a_float_that_would_be_spelled_as_a_large_integer_is_refused(number: float) -> None:
    # Python reads `100000000000000000000` as an integer, which the form cannot carry: nobody could check its seal.
    with pytest.raises(ValueError, match="beyond"):
        canonical({"amount": number})


def test_what_is_nested_without_end_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ValueError, match="nested"):
        canonical(value)


def test_a_digest_is_lower_case_hex_of_the_form() -> None:
    assert (
        sha256({"b": 1, "a": [True, None, "é"]}) == "17c8c6f7f948ee1c9b93b1bc35f6edc29cbaf3022bff7d076d1c4831dd8a44a2"
    )
