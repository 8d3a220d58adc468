"""What is wrong with given data is said in plain words, and nothing of it is repeated but a wrong name."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from contracts.validation import MAX_REPEATED, explain
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, field_validator

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


class Wanted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: Literal["open", "done"]
    text: Annotated[str, Field(min_length=2, max_length=8)]
    amount: Annotated[int, Field(ge=1, lt=100)]
    at: AwareDatetime
    name: Annotated[str, Field(pattern=r"^[a-z]+$")] = "a"
    both: list[int] = []
    share: float = 1.0
    yes: bool = True

    @field_validator("amount")
    @classmethod
    def not_thirteen(cls, value: int) -> int:
        if value == 13:
            raise ValueError("thirteen is no amount")
        return value


GOOD: dict[str, Any] = {"status": "open", "text": "hello", "amount": 5, "at": "2026-11-29T00:00:00Z"}


def said(**changed: Any) -> str:
    given = {name: value for name, value in (GOOD | changed).items() if value is not ...}
    with pytest.raises(ValidationError) as found:
        Wanted.model_validate(given)
    return explain(found.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"status": "odd"}, "status: must be 'open' or 'done', not 'odd'"),
        ({"status": 5}, "status: must be 'open' or 'done'"),
        ({"text": ...}, "text: is missing"),
        ({"text": None}, "text: must be a text"),
        ({"text": "x"}, "text: must have at least 2 characters"),
        ({"text": "xxxxxxxxx"}, "text: may have at most 8 characters"),
        ({"amount": 0}, "amount: must be at least 1"),
        ({"amount": 100}, "amount: must be less than 100"),
        ({"amount": "many"}, "amount: must be a whole number"),
        ({"amount": 1.5}, "amount: must be a whole number"),
        ({"amount": 13}, "amount: thirteen is no amount"),
        ({"at": "soon"}, "at: must be a date and time with a zone, as in 2026-11-29T00:00:00Z"),
        ({"at": datetime(2026, 11, 29)}, "at: must be a date and time with a zone, as in 2026-11-29T00:00:00Z"),
        ({"name": "A"}, "name: must have the form ^[a-z]+$"),
        ({"both": [1, "two"]}, "both.1: must be a whole number"),
        ({"share": "half"}, "share: must be a number"),
        ({"yes": "perhaps"}, "yes: must be true or false"),
        ({"colour": "red"}, "colour: is not known here: leave it out"),
        ({"text": ..., "amount": 0}, "text: is missing; amount: must be at least 1"),
    ],
)
def test_each_mistake_has_its_words(changed: dict[str, Any], words: str) -> None:
    assert said(**changed) == words


def test_a_strangers_name_is_repeated_short_and_harmless() -> None:
    long = said(status="\x1b[2J" + "x" * 500)
    assert "\x1b" not in long
    assert "�[2J" in long
    assert len(long) < MAX_REPEATED + 60


@given(ANYTHING)
def test_nothing_is_said_in_the_words_of_the_library(value: Any) -> None:
    """Given anything at all in place of any field, no library is named and no secret is repeated."""
    for name in GOOD:
        try:
            Wanted.model_validate(GOOD | {name: value})
        except ValidationError as error:
            words = explain(error)
            assert not re.search(r"pydantic|Input should|Value error|validation error|\[type=", words)
            assert words.startswith(f"{name}")
