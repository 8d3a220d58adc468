"""The way in to the embedded issuer: for those who can read the secret of the data directory, its owner's account.

Other accounts of a machine reach its ports too. The secret comes in a link and is exchanged at once for a cookie that
opens the sign-in page and nothing else.
"""

import hashlib
import hmac
import time
from collections.abc import Callable

ENTER = "/enter"
KEY = "key"
ENTERED_SECONDS = 12 * 60 * 60


class Entrance:
    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock
        # Cookies know no ports: another system of this machine has one of another name.
        self.cookie = f"turngate_entered_{hashlib.sha256(self._secret).hexdigest()[:8]}"

    def knows(self, given: str) -> bool:
        """Whether this is the secret, compared in a time that tells nothing of it."""
        return hmac.compare_digest(given.encode(errors="replace"), self._secret)

    def cookie_value(self) -> str:
        """What the browser keeps from now on: it says until when, and cannot be made without the secret."""
        return self._signed(str(int(self._clock()) + ENTERED_SECONDS))

    def is_open_to(self, kept: str) -> bool:
        until, _, _ = kept.partition(".")
        if not (kept.isascii() and until.isdecimal() and hmac.compare_digest(self._signed(until), kept)):
            return False
        return int(until) > self._clock()

    def _signed(self, until: str) -> str:
        signature = hmac.new(self._secret, f"entered until {until}".encode(), hashlib.sha256)
        return f"{until}.{signature.hexdigest()}"
