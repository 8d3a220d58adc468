"""Facts as frames of a stream: made once for all who may see the same of them."""

from collections import OrderedDict

from contracts.events import Event
from contracts.identity import Principal

from gateway import sse
from gateway.shown import sees_customers, text

MAX_BYTES = 8_000_000


class Frames:
    """The frames of facts that were asked for last. They hold what was sealed, so an erasure drops them all."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str, bool], bytes] = OrderedDict()
        self._bytes = 0

    def of(self, event: Event, asker: Principal) -> bytes:
        key = (event.sequence, event.personal, sees_customers(asker))
        if (known := self._known.get(key)) is not None:
            return known
        frame = sse.frame(text(event, asker), id=event.sequence)
        self._known[key] = frame
        self._bytes += len(frame)
        while self._bytes > MAX_BYTES:
            self._bytes -= len(self._known.popitem(last=False)[1])
        return frame

    def forget(self) -> None:
        self._known.clear()
        self._bytes = 0
