"""The keys that an issuer publishes, in a file or at a URL, and never fetched more often than is good for it."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jwt
import structlog

from contracts.discovery import discover, fetch, is_url
from contracts.errors import Outage

logger = structlog.get_logger()

# Seconds. A key that is not known may be a new one, or an attacker's: either way one fetch a pause has to do.
PAUSE = 10.0
# A key that its issuer has withdrawn is believed for no longer than this.
OLDEST = 300.0


class KeySet:
    """A file is read again whenever it has changed; a URL once its answer is old, and for keys that are not in it.
    Without either the issuer's own discovery document says, each time anew, what the URL is.

    When none can be had the keys known so far go on being used.
    """

    def __init__(
        self, source: str | None, clock: Callable[[], float] = time.monotonic, *, issuer: str | None = None
    ) -> None:
        if source is None and issuer is None:
            raise ValueError("Keys come from a file, a URL or an issuer.")
        self._file = Path(source) if source is not None and not is_url(source) else None
        self._url = source if source is not None and is_url(source) else None
        self._issuer = issuer or ""
        self._source = source or self._issuer
        self._clock = clock
        self._keys: Mapping[str | None, jwt.PyJWK] = {}
        self._state: object = None
        self._lock = threading.Lock()
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
            if self._file is not None:
                self._refresh_from_file(self._file)
            else:
                self._refresh_from_afar(key_id)
        except (Outage, OSError, ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            logger.warning("keys not refreshed", source=self._source, error=repr(error))

    def _refresh_from_file(self, file: Path) -> None:
        found = file.stat()
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._state:
            self._keys = _signing_keys(json.loads(file.read_text()))
            self._state = state

    def _refresh_from_afar(self, key_id: str | None) -> None:
        now = self._clock()
        wanted = key_id not in self._keys or now - self._fetched > OLDEST
        if wanted and now - self._tried >= PAUSE:
            self._tried = now
            self._keys = _signing_keys(fetch(self._url or discover(self._issuer).jwks_uri))
            self._fetched = now


def _signing_keys(document: dict[str, Any]) -> dict[str | None, jwt.PyJWK]:
    keys = jwt.PyJWKSet.from_dict(document).keys
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}
