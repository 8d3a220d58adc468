"""Documents from outside are read strictly: what readers could take differently is refused."""

import json
from typing import Any

import pytest
import yaml
from contracts.strict import Ambiguous, parse_json, parse_yaml
from hypothesis import given
from hypothesis import strategies as st

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_what_is_said_once_is_read_as_ever(value: Any) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=3), VALUES, st.integers(0, 4))
def test_a_key_that_stands_twice_is_refused_at_any_depth(known: dict[str, Any], other: Any, depth: int) -> None:
    key = next(iter(known))
    text = f"{json.dumps(known)[:-1]}, {json.dumps(key)}: {json.dumps(other)}}}"
    for level in range(depth):
        text = f'{{"a": {text}}}' if level % 2 else f"[1, {text}]"
    with pytest.raises(Ambiguous, match="stands twice"):
        parse_json(text)


def test_a_key_is_the_same_however_it_is_spelt() -> None:
    with pytest.raises(Ambiguous):
        parse_json(r'{"decision": "decline", "d\u0065cision": "approve"}')


@pytest.mark.parametrize("text", ['{"a": NaN}', "[Infinity]", "-Infinity"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(Ambiguous, match="no number"):
        parse_json(text)


@pytest.mark.parametrize("text", ["", "{", b"\xff\xfe\xfd", "[" * 100_000, '{"a":' * 50_000, "9" * 5000])
def test_what_is_no_json_is_a_value_error_and_nothing_worse(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(
    "text", ["a: 1\nb: 2\na: 3\n", "x:\n- y:\n    a: 1\n    a: 1\n", "{a: 1, 'a': 2}", "yes: 1\ntrue: 2\n"]
)
def test_a_key_that_stands_twice_in_yaml_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(yaml.MarkedYAMLError, match="stands twice in one mapping") as refused:
        parse_yaml(text)
    assert refused.value.problem_mark is not None


def test_yaml_is_read_as_ever() -> None:
    text = "a: &base {b: 1, c: 2}\nd:\n  <<: *base\n  b: 3\ne: [1, 2.5, null, yes]\n"
    assert parse_yaml(text) == yaml.safe_load(text)
    with pytest.raises(yaml.YAMLError):
        parse_yaml("!!python/object/apply:os.getpid []")
