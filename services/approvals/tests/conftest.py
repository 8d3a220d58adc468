"""A run told fact by fact, for tests of pure functions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from contracts import events
from contracts.events import Draft, Event
from contracts.facts import Fact
from contracts.history import History
from contracts.subjects import RunKey


class Told:
    """A history that grows by what is said in it. Each fact comes a second after the last unless told otherwise."""

    def __init__(self) -> None:
        self.history = History(RunKey("acme", "TCK-2004-1"))
        self.now = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)

    def say(self, fact: Fact, *, cause: Event | None = None, key: str = "", after: timedelta | None = None) -> Event:
        self.now += timedelta(seconds=1) if after is None else after
        return self.append(Draft(fact, cause, key))

    def append(self, draft: Draft) -> Event:
        head = self.history.head
        event = events.write(self.history.key, draft, head, self.now)
        event = replace(event, sequence=head.sequence + 1 if head else 1)
        self.history = self.history.with_event(event)
        return event


@pytest.fixture
def run() -> Told:
    return Told()
