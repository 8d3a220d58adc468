"""The log in memory, for simulations and for tests of what reads it: the same rules of appending, no broker."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from contracts import events
from contracts.errors import Conflict
from contracts.events import Draft, Event
from contracts.history import History
from contracts.sealing import ERASED, DataKey, Gone
from contracts.subjects import RunKey
from contracts.tracing import traceparent_behind


class MemoryLog:
    """A `Log` that one process keeps to itself. `accepted` holds every event in the order of the stream.

    sealed: whether personal data is sealed in the payloads, as on a broker.
    """

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC), *, sealed: bool = False) -> None:
        self.accepted: list[Event] = []
        self._keys: dict[RunKey, DataKey | Gone] = {}
        self._sealed = sealed
        self._runs: dict[RunKey, tuple[Event, ...]] = {}
        self._clock = clock

    async def read(self, key: RunKey, at: Event | None = None) -> History:
        return self.history(key)

    async def append(self, history: History, draft: Draft) -> Event:
        return self.say(history, draft)

    def history(self, key: RunKey) -> History:
        run = self._runs.get(key, ())
        return History(key, run, run[-1] if run else None)

    def say(self, history: History, draft: Draft) -> Event:
        """`append`, for callers that are not asynchronous."""
        run = self._runs.get(history.key, ())
        if (history.head.ordinal if history.head else -1) != len(run) - 1:
            raise Conflict(f"{history.key.run} has grown since it was read.")
        parent = traceparent_behind(draft.cause, history.head)
        data_key = self._keys.setdefault(history.key, DataKey.new()) if self._sealed else None
        event = events.write(history.key, draft, history.head, self._clock(), parent, data_key)
        event = replace(event, sequence=len(self.accepted) + 1)
        self.accepted.append(event)
        self._runs[history.key] = (*run, event)
        return event

    def erase(self, key: RunKey) -> None:
        """Destroys the run's key: its sealed data is lost, and what is still said of it is said without."""
        self._keys[key] = ERASED
        self.accepted = [events.opened(e, ERASED) if e.key == key else e for e in self.accepted]
        self._runs[key] = tuple(e for e in self.accepted if e.key == key)
