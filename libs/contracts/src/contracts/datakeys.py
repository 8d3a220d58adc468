"""The runs' data keys: made once, kept where they can be erased, and in each process for a few seconds at most."""

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts.errors import Outage
from contracts.requests import Requests
from contracts.sealing import ERASED, DataKey, Gone
from contracts.subjects import KEYS, RunKey

KEPT = 5.0  # seconds; so long after its erasure a key may still be in use somewhere
MOST = 20_000
# There is a message under the subject already: by the sequence that was expected, or by the stream's own limit.
_THERE_ALREADY = (10071, 10077, 10164)


class Missing(Outage):
    """There is no key, and nothing says that it was erased: a replica lags, or the stream was lost."""


class KeyStore(Protocol):
    """Where keys outlive processes. Two implementations: a JetStream stream, and memory for simulations."""

    async def get(self, key: RunKey) -> bytes | None:
        """The run's key, empty where it was erased, None if there is none. Raises Outage where nobody can tell."""

    async def create(self, key: RunKey, secret: bytes) -> bool:
        """Keeps a run's key; False if it has one."""

    async def erase(self, key: RunKey) -> bool:
        """Destroys the run's key, and keeps that it was; False if there was none."""


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
        """The key of a run whose facts are sealed. Raises Missing where there is none that was erased."""
        if (known := self.known(key)) is not None:
            return known
        secret = await self._store.get(key)
        if secret is None:
            raise Missing(f"There is no key for what is sealed in {key.run} of {key.tenant}, and none was erased.")
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
        known, self._keys[key] = self._keys.get(key), b""
        return bool(known)


class JetStreamKeys:
    """One message a key in the stream KEYS, which takes no second one for a run. Erasing is the set-up user's."""

    def __init__(self, nc: Client, timeout: float = 5.0) -> None:
        self._requests = Requests(nc)
        self._timeout = timeout

    def on_error(self, error: Exception) -> None:
        """The client's error callback."""
        self._requests.on_error(error)

    async def get(self, key: RunKey) -> bytes | None:
        found = await self._find(key)
        return found[1] if found else None

    async def create(self, key: RunKey, secret: bytes) -> bool:
        headers = {"Nats-Expected-Last-Subject-Sequence": "0"}
        answer = json.loads((await self._ask(_subject(key), secret, headers)).data)
        if error := answer.get("error"):
            if error.get("err_code") in _THERE_ALREADY:
                return False
            raise Outage(f"The key of {key.run} was not kept: {error.get('description')}")
        return True

    async def erase(self, key: RunKey) -> bool:
        sequence, secret = await self._find(key) or (0, b"")
        if secret:
            # Overwritten where it lies, not only unlinked: that is what the stream does where it is not told otherwise.
            answer = json.loads((await self._ask(f"$JS.API.STREAM.MSG.DELETE.{KEYS}", _body(seq=sequence))).data)
            if "error" in answer:
                raise Outage(f"The key of {key.run} was not erased: {answer['error'].get('description')}")
        await self.create(key, b"")
        return bool(secret)

    async def _find(self, key: RunKey) -> tuple[int, bytes] | None:
        """The key and where it is. Any replica may answer, and one that lags has not heard of a key that is new."""
        for last in (False, False, True):
            answer = await self._ask(f"$JS.API.DIRECT.GET.{KEYS}", _body(last_by_subj=_subject(key)))
            headers = answer.headers or {}
            if "Nats-Sequence" in headers:
                return int(headers["Nats-Sequence"]), answer.data
            if headers.get("Status") != "404":
                raise Outage(f"The keys refused a read: {headers.get('Status')} {headers.get('Description')}")
            if not last:
                await asyncio.sleep(0.05)
        return None

    async def _ask(self, subject: str, body: bytes, headers: dict[str, str] | None = None) -> Msg:
        try:
            return await self._requests.ask(subject, body, timeout=self._timeout, headers=headers)
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The keys did not answer: {error!r}") from error


def _subject(key: RunKey) -> str:
    return f"keys.{key.tenant}.{key.run}"


def _body(**query: str | int) -> bytes:
    return json.dumps(query).encode()
