"""Tool arguments as models misspell them: carried exactly, or not at all and said so."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from agent_runner.arguments import LONGEST, read
from contracts.canonical import canonical
from contracts.parts import UNREADABLE
from hypothesis import given
from hypothesis import strategies as st

SHARED = Path(os.environ.get("TURNGATE_SHARED", Path(__file__).parents[4] / "shared"))


@pytest.mark.parametrize(
    ("spelled", "why"),
    [
        ('{"amount":NaN}', "NaN is no number"),
        ('{"amount":-Infinity}', "-Infinity is no number"),
        ('{"amount":1e400}', "a number without end"),
        ('{"amount":9007199254740993}', "an integer beyond 2^53"),
        (f'{{"amount":{"9" * 5000}}}', "an integer beyond 2^53"),
        ('{"amount":1,"amount":999999}', "a key is there twice"),
        ('{"amount":1,"am\\u006funt":999999}', "a key is there twice"),
        ('{"a":{"b":1,"b":2}}', "a key is there twice"),
        ('{"reason":"\\ud83d"}', "half a character"),
        ('{"\\ud83d":1}', "half a character"),
        ('{"reason":"\ud83d"}', "half a character"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, f"longer than {LONGEST} characters"),
        ('{"a":' * 40 + "1" + "}" * 40, "nested deeper than 32"),
        ('{"amount":4999', "not JSON"),
        ('{"amount":1}{"amount":1}', "not JSON"),
        ("{'amount': 1}", "not JSON"),
        ('```json\n{"amount":1}\n```', "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"ORD-1"', "not a JSON object"),
    ],
)
def test_what_cannot_be_carried_exactly_is_unreadable_and_says_why(spelled: str, why: str) -> None:
    found = read(spelled)
    assert list(found) == [UNREADABLE]
    assert found[UNREADABLE].startswith(f"{why}: ")
    assert found[UNREADABLE].isascii() or found[UNREADABLE].removesuffix("…").isascii()
    assert len(canonical(found)) < 3_000


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("", {}),
        ("{}", {}),
        ('{"amount":9007199254740991}', {"amount": 2**53 - 1}),
        ('{"amount":49.99,"n":null,"l":[1,"x",true]}', {"amount": 49.99, "n": None, "l": [1, "x", True]}),
        ('{"reason":"\\ud83d\\ude00 \u0000"}'.replace("\u0000", "\\u0000"), {"reason": "\U0001f600 \x00"}),
    ],
)
def test_what_is_plain_json_comes_through_unchanged(spelled: str, meant: dict[str, Any]) -> None:
    assert read(spelled) == meant


@given(st.text() | st.text('{}[]":,1eEN.\\u-'))
def test_whatever_is_spelled_can_be_said_in_a_fact(spelled: str) -> None:
    canonical(read(spelled))


@given(
    st.dictionaries(
        st.text(),
        st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8),
        max_size=4,
    )
)
def test_an_object_is_read_as_it_is_or_not_at_all(value: dict[str, Any]) -> None:
    found = read(json.dumps(value))
    assert found == value or list(found) == [UNREADABLE]


@pytest.mark.skipif(not (SHARED / "cases/arguments.jsonl").exists(), reason="the shared cases are not here")
def test_no_raw_spelling_of_the_shared_cases_comes_through_as_another_call() -> None:
    rows = [json.loads(line) for line in (SHARED / "cases/arguments.jsonl").read_text().splitlines()]
    raw = [row for row in rows if row["raw"] is not None]
    assert len(raw) > 10
    for row in raw:
        spelled = row["raw"]
        if isinstance(spelled, dict):
            opens, middle, closes, n = spelled["$repeat_pair"]
            spelled = opens * n + middle + closes * n
        found = read(spelled)
        canonical(found)
        # No text is a call without arguments, a key in another case an unknown one: both are the tool's to refuse.
        assert list(found) == [UNREADABLE] or row["category"] in ("raw_no_text", "raw_key_case_variant"), row["id"]
