"""The keys that an issuer publishes, in a file or at a URL, and never fetched more often than is good for it."""

import json
import threading
import time
from collections.abc import Callable
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
        self._keys: list[jwt.PyJWK] = []
        self._state: object = None
        self._lock = threading.Lock()
        self._fetched = self._tried = float("-inf")

    def find(
        self, key_id: str | None, algorithm: str | None = None, *, other_than: jwt.PyJWK | None = None
    ) -> jwt.PyJWK | None:
        """The key of that name, or for None the only one that signs by the algorithm. None if the issuer publishes no
        such key, or several; the one that was found before (`other_than`) is then no answer, as it may be out of date.
        Raises Outage if no keys could ever be had."""

        def known() -> jwt.PyJWK | None:
            key = _named(self._keys, key_id) if key_id is not None else _only_one(self._keys, algorithm)
            return None if key is other_than else key

        # Who asks for a known key does not wait for someone else's fetch.
        if self._lock.acquire(blocking=known() is None):
            try:
                self._refresh(known)
            finally:
                self._lock.release()
        if not self._keys:
            raise Outage(f"The issuer's keys ({self._source}) cannot be read.")
        return known()

    def _refresh(self, known: Callable[[], jwt.PyJWK | None]) -> None:
        try:
            if self._file is not None:
                self._refresh_from_file(self._file)
            else:
                self._refresh_from_afar(known)
        except (Outage, OSError, ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            logger.warning("keys not refreshed", source=self._source, error=repr(error))

    def _refresh_from_file(self, file: Path) -> None:
        found = file.stat()
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if state != self._state:
            self._keys = _signing_keys(json.loads(file.read_text()))
            self._state = state

    def _refresh_from_afar(self, known: Callable[[], jwt.PyJWK | None]) -> None:
        now = self._clock()
        wanted = known() is None or now - self._fetched > OLDEST
        if wanted and now - self._tried >= PAUSE:
            self._tried = now
            self._keys = _signing_keys(fetch(self._url or discover(self._issuer).jwks_uri))
            self._fetched = now


def _signing_keys(document: dict[str, Any]) -> list[jwt.PyJWK]:
    keys = jwt.PyJWKSet.from_dict(document).keys
    return [key for key in keys if key.public_key_use in (None, "sig")]


def _named(keys: list[jwt.PyJWK], key_id: str) -> jwt.PyJWK | None:
    return next((key for key in reversed(keys) if key.key_id == key_id), None)


def _only_one(keys: list[jwt.PyJWK], algorithm: str | None) -> jwt.PyJWK | None:
    """A token may leave its key unnamed where there is no doubt (OpenID Connect Core 1.0, section 10.1)."""
    fitting = [key for key in keys if key.algorithm_name == algorithm]
    return fitting[0] if len(fitting) == 1 else None
