"""Requests that end at once where the broker refuses them: only the client's error callback hears of that."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.errors import Forbidden

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')


@dataclass(frozen=True, slots=True)
class Refusal:
    """What the broker did not let us do. Its subject is in lower case: so the client hands errors on."""

    listening: bool
    subject: str

    def __str__(self) -> str:
        if self.listening:
            return f"The broker does not let this service listen on {self.subject}: it hears nothing there. {_CHECK}"
        return f"The broker does not let this service publish {self.subject}: nothing was sent. {_CHECK}"


_CHECK = "Check the service's NATS user."


def refusal(error: Exception) -> Refusal | None:
    """What was refused, where that is what the client's error says."""
    found = _REFUSED.search(str(error).lower())
    return Refusal(found[1] == "subscription", found[2]) if found else None


@dataclass(eq=False, slots=True)
class _Waiting:
    task: "asyncio.Task[object]"
    refused: bool = False


class Requests:
    """One connection's requests in flight. Its `on_error` has to be told of the connection's errors."""

    def __init__(self, nc: Client) -> None:
        self._nc = nc
        self._waiting: dict[str, set[_Waiting]] = {}

    async def ask(self, subject: str, payload: bytes, *, timeout: float, headers: dict[str, str] | None = None) -> Msg:
        """The answer. Raises Forbidden where the broker refuses the publish, and what the client raises otherwise."""
        with self.refusable(subject):
            return await self._nc.request(subject, payload, timeout=timeout, headers=headers)

    @contextmanager
    def refusable(self, subject: str) -> Iterator[None]:
        """While one waits for what a publish on the subject brings. Raises Forbidden where the broker refuses it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - whoever awaits is in a task
        waiting = _Waiting(task)
        name = subject.lower()  # the client hands errors on in lower case
        self._waiting.setdefault(name, set()).add(waiting)
        try:
            yield
        except asyncio.CancelledError:
            if not waiting.refused or task.uncancel() > 0:
                raise
            raise Forbidden(str(Refusal(False, subject))) from None
        finally:
            self._waiting[name].discard(waiting)
            if not self._waiting[name]:
                del self._waiting[name]

    def on_error(self, error: Exception) -> None:
        """The client's error callback."""
        refused = refusal(error)
        for waiting in self._waiting.get(refused.subject, ()) if refused and not refused.listening else ():
            if not waiting.refused:
                waiting.refused = True
                waiting.task.cancel()
