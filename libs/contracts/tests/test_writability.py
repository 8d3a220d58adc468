"""A process knows whether the log takes what it appends, and says so of its readiness."""

from contracts.writability import REMEMBERED_SECONDS, Writability


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_wrong_before_anything_was_appended() -> None:
    assert Writability(Clock()).trouble is None


def test_a_failed_append_is_told_until_one_is_taken() -> None:
    writability = Writability(Clock())
    writability.failed("no space left on device")
    assert writability.trouble == "no space left on device"

    writability.succeeded()

    assert writability.trouble is None


def test_who_appends_nothing_any_more_is_ready_again_after_a_while() -> None:
    clock = Clock()
    writability = Writability(clock)
    writability.failed("no space left on device")

    clock.now += REMEMBERED_SECONDS

    assert writability.trouble is None
