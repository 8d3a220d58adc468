"""The runs' data keys: made once, kept where they can be erased, and in each process for a few seconds at most."""

import base64
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import nats.errors
from nats.aio.client import Client

from contracts.errors import Outage
from contracts.requests import Requests
from contracts.sealing import ERASED, DataKey, Gone
from contracts.subjects import KEYS, RunKey

KEPT = 5.0  # seconds; so long after its erasure a key may still be in use somewhere
MOST = 20_000
# There is a message under the subject already: by the sequence that was expected, or by the stream's own limit.
_THERE_ALREADY = (10071, 10077, 10164)
_NO_MESSAGE = 10037


class KeyStore(Protocol):
    """Where keys outlive processes. Two implementations: a JetStream stream, and memory for simulations."""

    async def get(self, key: RunKey) -> bytes | None:
        """The run's key, None if there is none (any more). Raises Outage where nobody can tell."""

    async def create(self, key: RunKey, secret: bytes) -> bool:
        """Keeps a run's key; False if it has one."""

    async def erase(self, key: RunKey) -> bool:
        """Destroys the run's key; False if there was none."""


class KeyRing:
    """The keys that a process may use. One that was erased is used for `KEPT` seconds more at the longest."""

    def __init__(
        self, store: KeyStore, *, kept: float = KEPT, most: int = MOST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._kept_for = kept
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[RunKey, tuple[DataKey | Gone, float]] = OrderedDict()

    def known(self, key: RunKey) -> DataKey | Gone | None:
        """The key if it is in hand; None where it has to be fetched."""
        found, until = self._kept.get(key, (None, 0.0))
        return found if found is ERASED or until > self._clock() else None

    async def of(self, key: RunKey) -> DataKey | Gone:
        """The key of a run whose facts are sealed: that there is none means that it was erased."""
        if (known := self.known(key)) is not None:
            return known
        secret = await self._store.get(key)
        return self._keep(key, DataKey(secret) if secret else ERASED)

    async def make(self, key: RunKey) -> DataKey | Gone:
        """The key of a run that begins now. Of several that begin it at once, all get the same."""
        fresh = DataKey.new()
        if await self._store.create(key, fresh.secret):
            return self._keep(key, fresh)
        self.forget(key)
        return await self.of(key)

    async def erase(self, key: RunKey) -> bool:
        """Destroys a run's key: what it sealed is lost."""
        erased = await self._store.erase(key)
        self._keep(key, ERASED)
        return erased

    def forget(self, key: RunKey) -> None:
        self._kept.pop(key, None)

    def _keep(self, key: RunKey, found: DataKey | Gone) -> DataKey | Gone:
        self._kept[key] = found, self._clock() + self._kept_for
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return found


class MemoryKeys:
    """Keys that one process keeps to itself."""

    def __init__(self) -> None:
        self._keys: dict[RunKey, bytes] = {}

    async def get(self, key: RunKey) -> bytes | None:
        return self._keys.get(key)

    async def create(self, key: RunKey, secret: bytes) -> bool:
        return self._keys.setdefault(key, secret) is secret

    async def erase(self, key: RunKey) -> bool:
        return self._keys.pop(key, None) is not None


class JetStreamKeys:
    """One message a key in the stream KEYS, which takes a second one for no run. Read from the stream's leader: a
    replica that lags would make a key look erased."""

    def __init__(self, nc: Client, timeout: float = 5.0) -> None:
        self._requests = Requests(nc)
        self._timeout = timeout

    def on_error(self, error: Exception) -> None:
        """The client's error callback."""
        self._requests.on_error(error)

    async def get(self, key: RunKey) -> bytes | None:
        message = await self._message(key)
        return base64.b64decode(message["data"]) if message else None

    async def create(self, key: RunKey, secret: bytes) -> bool:
        subject = subject_of(key)
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        answer = await self._ask(subject, secret, headers)
        if error := answer.get("error"):
            if error.get("err_code") in _THERE_ALREADY:
                return False
            raise Outage(f"The key of {key.run} was not kept: {error.get('description')}")
        return True

    async def erase(self, key: RunKey) -> bool:
        message = await self._message(key)
        if message is None:
            return False
        # Overwritten where it lies, not only unlinked.
        answer = await self._ask("$JS.API.STREAM.MSG.DELETE.KEYS", json.dumps({"seq": message["seq"]}).encode())
        if "error" in answer and await self._message(key) is not None:
            raise Outage(f"The key of {key.run} was not erased: {answer['error'].get('description')}")
        return True

    async def _message(self, key: RunKey) -> dict[str, Any] | None:
        body = json.dumps({"last_by_subj": subject_of(key)}).encode()
        answer = await self._ask(f"$JS.API.STREAM.MSG.GET.{KEYS}", body)
        if error := answer.get("error"):
            if error.get("err_code") == _NO_MESSAGE:
                return None
            raise Outage(f"The key of {key.run} could not be read: {error.get('description')}")
        message: dict[str, Any] = answer["message"]
        return message

    async def _ask(self, subject: str, body: bytes, headers: dict[str, str] | None = None) -> dict[str, Any]:
        try:
            reply = await self._requests.ask(subject, body, timeout=self._timeout, headers=headers)
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The keys did not answer: {error!r}") from error
        answer: dict[str, Any] = json.loads(reply.data)
        return answer


def subject_of(key: RunKey) -> str:
    return f"keys.{key.tenant}.{key.run}"
