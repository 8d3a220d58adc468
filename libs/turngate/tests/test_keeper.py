"""How long the supervisor waits before it starts a dead process again."""

from turngate.embedded.keeper import LONG_LIFE, LONGEST_WAIT, next_wait


def test_a_first_death_is_answered_at_once() -> None:
    assert next_wait(None, lived=0.1) == 0


def test_a_death_after_a_long_life_is_answered_at_once() -> None:
    assert next_wait(LONGEST_WAIT, lived=LONG_LIFE + 1) == 0


def test_deaths_in_a_row_are_answered_later_and_later_but_not_for_ever() -> None:
    waits, wait = [], 0.0
    for _ in range(8):
        wait = next_wait(wait, lived=0.1)
        waits.append(wait)
    assert waits == sorted(waits)
    assert waits[0] > 0
    assert waits[-1] == LONGEST_WAIT
