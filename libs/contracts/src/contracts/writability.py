"""Whether the log takes what a process appends, for its readiness."""

import time
from collections.abc import Callable

# A process that appends nothing any more knows nothing either: then it is ready, and the next append will tell.
REMEMBERED_SECONDS = 15.0


class Writability:
    """How the last append of a process went. `clock` counts seconds, from anywhere."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: tuple[str, float] | None = None

    def failed(self, why: str) -> None:
        self._failed = why, self._clock()

    def succeeded(self) -> None:
        self._failed = None

    @property
    def trouble(self) -> str | None:
        """Why the last append was not taken; None where it was, or where that was long ago."""
        if self._failed is None:
            return None
        why, since = self._failed
        return why if self._clock() - since < REMEMBERED_SECONDS else None
