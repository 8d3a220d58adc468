"""Which runs wait for their model, as their runner says: remembered for as long as it goes on saying so."""

import time
from collections.abc import Callable

from contracts.model_wait import KEPT_FOR, ModelWait
from contracts.subjects import RunKey

from gateway.views import RunView

MOST = 20_000  # runs; of more than that nothing is shown


class ModelWaits:
    """changed: told of a run that begins to wait, waits for something else, or waits no more."""

    def __init__(self, changed: Callable[[RunKey], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._changed = changed
        self._clock = clock
        self._waits: dict[RunKey, tuple[ModelWait, float]] = {}

    def hear(self, key: RunKey, wait: ModelWait | None) -> None:
        known = self.of_key(key)
        if wait is None:
            self._waits.pop(key, None)
        elif key in self._waits or self._has_room():
            self._waits[key] = (wait, self._clock() + KEPT_FOR)
        if wait != known:
            self._changed(key)

    def _has_room(self) -> bool:
        if len(self._waits) >= MOST:  # of some nobody said that they are over, and nobody has looked at them since
            now = self._clock()
            self._waits = {key: waits for key, waits in self._waits.items() if now <= waits[1]}
        return len(self._waits) < MOST

    def of_key(self, key: RunKey) -> ModelWait | None:
        wait, until = self._waits.get(key, (None, 0.0))
        if wait is not None and self._clock() > until:
            del self._waits[key]
            return None
        return wait

    def of(self, view: RunView | None) -> ModelWait | None:
        """What the run of the view waits for. One that has ended, or that is with somebody else, waits for no model."""
        if view is None or view.status != "running":
            return None
        return self.of_key(RunKey(view.tenant, view.run))

    def of_tenant(self, tenant: str) -> dict[str, ModelWait]:
        """By run."""
        mine = [key for key in self._waits if key.tenant == tenant]
        return {key.run: wait for key in mine if (wait := self.of_key(key)) is not None}
