"""What a reader knows of one run: the events that it reads, in order, and the head."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from contracts.events import Event
from contracts.facts import Fact, RunStarted
from contracts.subjects import RunKey

F = TypeVar("F", bound=Fact)


@dataclass(frozen=True, slots=True)
class History:
    """`events` holds what its reader asked for, by ordinal; `head` is the run's last event, read for or not."""

    key: RunKey
    events: tuple[Event, ...] = ()
    head: Event | None = None

    def of(self, kind: type[F]) -> Iterator[tuple[Event, F]]:
        """Each event of a kind, with its fact."""
        for event in self.events:
            if isinstance(event.fact, kind):
                yield event, event.fact

    def all(self, kind: type[F]) -> list[F]:
        return [fact for _, fact in self.of(kind)]

    def first(self, kind: type[F]) -> F | None:
        return next((fact for _, fact in self.of(kind)), None)

    def last(self, kind: type[F]) -> F | None:
        return next((event.fact for event in reversed(self.events) if isinstance(event.fact, kind)), None)

    @property
    def started(self) -> RunStarted | None:
        return self.first(RunStarted)

    @property
    def end(self) -> Event | None:
        """The terminal event, if the run has ended."""
        return next((event for event in self.events if event.terminal), None)

    def behind(self, event: Event) -> "History":
        """This history up to and with `event`: what was known when it was said."""
        return History(self.key, tuple(e for e in self.events if e.ordinal <= event.ordinal), event)

    def with_event(self, event: Event) -> "History":
        return History(self.key, (*self.events, event), event)
