"""A run told fact by fact, in memory or to a real log, each fact said by its own author."""

from datetime import UTC, datetime, timedelta

from contracts.events import Draft, Event
from contracts.facts import Fact
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.memory import MemoryLog
from contracts.subjects import RunKey
from gateway.folding import fold
from gateway.views import RunView

KEY = RunKey("acme", "TCK-2004-1")


class Told:
    """`at` is what the clock says; each fact comes a little later than the one before."""

    def __init__(self, *facts: Fact, key: RunKey = KEY) -> None:
        self.key = key
        self.at = datetime(2026, 11, 29, 14, 2, 11, tzinfo=UTC)
        self._log = MemoryLog(lambda: self.at)
        self.say(*facts)

    def say(self, *facts: Fact) -> list[Event]:
        said = []
        for fact in facts:
            head = self.history.head
            said.append(self._log.say(self.history, Draft(fact, head, key=f"{head.ordinal if head else 0}")))
            self.at += timedelta(seconds=2)
        return said

    def append(self, draft: Draft) -> Event:
        return self._log.say(self.history, draft)

    def wait(self, **span: float) -> None:
        self.at += timedelta(**span)

    @property
    def history(self) -> History:
        return self._log.history(self.key)

    @property
    def events(self) -> tuple[Event, ...]:
        return self.history.events

    @property
    def view(self) -> RunView:
        view = fold(self.events)
        assert view is not None
        return view


class Others:
    """The other four services, and the desk, as far as a test needs them to speak."""

    def __init__(self, logs: dict[str, JetStreamLog]) -> None:
        self._logs = logs

    async def say(self, run: str, *facts: Fact, tenant: str = "acme") -> list[Event]:
        key, said = RunKey(tenant, run), []
        for fact in facts:
            log = self._logs[fact.author]
            history = await log.read(key)
            said.append(await log.append(history, Draft(fact, history.head, key=str(len(history.events)))))
        return said
