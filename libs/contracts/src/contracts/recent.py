"""The histories that a process keeps in memory: the ones used last, up to a number of bytes."""

from collections import OrderedDict

from contracts.facts import RunErased
from contracts.history import History
from contracts.subjects import RunKey

MOST_BYTES = 32_000_000  # of payloads; parsed facts take a few times as much


class Recent:
    """Histories by run. Those that were used longest ago go first, and a run that has ended or been erased at once."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._kept: OrderedDict[RunKey, tuple[History, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: RunKey) -> History | None:
        kept = self._kept.get(key)
        return kept[0] if kept else None

    def put(self, history: History) -> History:
        """Keeps a history, which must go on from the one that was kept of its run; gives it back."""
        known, weight = self._kept.pop(history.key, (None, 0))
        self.bytes -= weight
        news = history.events[len(known.events) if known else 0 :]
        if any(event.terminal or event.kind == RunErased.kind for event in (history.head, *news) if event):
            return history
        weight += sum(len(event.payload) for event in news)
        self._kept[history.key] = (history, weight)
        self.bytes += weight
        while self.bytes > self._most and len(self._kept) > 1:
            _, (_, freed) = self._kept.popitem(last=False)
            self.bytes -= freed
        return history
