"""What is read from the broker for the operator."""

import pytest
from turngate.records import letter


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'"text"'])
def test_a_dead_letter_that_nobody_should_have_written_is_shown_all_the_same(data: bytes) -> None:
    assert set(letter(data)) == {"service", "subject", "event", "error"}


def test_a_dead_letter_is_shown_as_it_was_written() -> None:
    assert letter(b'{"service": "policy", "sequence": 7}')["service"] == "policy"
