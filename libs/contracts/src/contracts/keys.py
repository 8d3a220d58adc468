"""The keys that an issuer publishes, from a file or from a URL, and never fetched more often than is good for it."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt
import structlog

from contracts.errors import Outage

logger = structlog.get_logger()

# Seconds. A key that is not known may be a new one, or an attacker's: either way one fetch a pause has to do.
PAUSE = 10.0
# A key that its issuer has withdrawn is believed for no longer than this.
OLDEST = 300.0
TIMEOUT = 5.0


class KeySet:
    """A file is read again whenever it has changed; a URL once its answer is old, and for keys that are not in it.

    When neither can be had the keys known so far go on being used.
    """

    def __init__(self, source: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._clock = clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._state: object = None
        self._lock = threading.Lock()
        self._remote = jwt.PyJWKClient(source, cache_jwk_set=False, timeout=TIMEOUT) if _is_url(source) else None
        self._fetched = self._tried = float("-inf")

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key, or None if the issuer does not publish it. Raises Outage if no keys could ever be had."""
        # Who asks for a known key does not wait for someone else's fetch.
        if self._lock.acquire(blocking=key_id not in self._keys):
            try:
                self._refresh(key_id)
            finally:
                self._lock.release()
        if not self._keys:
            raise Outage(f"The issuer's keys ({self._source}) cannot be read.")
        return self._keys.get(key_id)

    def _refresh(self, key_id: str | None) -> None:
        try:
            if self._remote is None:
                self._refresh_from_file(Path(self._source))
            else:
                self._refresh_from(self._remote, key_id)
        except (OSError, ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            logger.warning("keys not refreshed", source=self._source, error=repr(error))

    def _refresh_from_file(self, file: Path) -> None:
        found = file.stat()
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._state:
            self._keys = _signing_keys(json.loads(file.read_text()))
            self._state = state

    def _refresh_from(self, remote: jwt.PyJWKClient, key_id: str | None) -> None:
        now = self._clock()
        wanted = key_id not in self._keys or now - self._fetched > OLDEST
        if wanted and now - self._tried >= PAUSE:
            self._tried = now
            self._keys = _signing_keys(remote.fetch_data())
            self._fetched = now


def _is_url(source: str) -> bool:
    return source.startswith(("http://", "https://"))


def _signing_keys(document: dict[str, Any]) -> dict[str | None, jwt.PyJWK]:
    keys = jwt.PyJWKSet.from_dict(document).keys
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}
