"""Checks tokens beside the event loop; while an issuer is slow, those never believed yet do not hold up the others."""

import asyncio
import hashlib
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from contracts.identity import InvalidToken, Principal, Verifier

_REMEMBERED = 10_000


class Tokens:
    """A token that is new here may name a key that has to be fetched first, or one that somebody has made up: either
    waits for its issuer. One that was believed before hardly ever does, so it is checked, as fully, by other threads.
    """

    def __init__(self, verifier: Verifier) -> None:
        self._verifier = verifier
        self._believed: OrderedDict[bytes, None] = OrderedDict()
        self._new = ThreadPoolExecutor(4, "new-tokens")
        self._known = ThreadPoolExecutor(4, "known-tokens")

    async def verify(self, token: str) -> Principal:
        """The principal that the token names. Raises what `Verifier.verify` does."""
        name = hashlib.sha256(token.encode()).digest()
        threads = self._known if name in self._believed else self._new
        try:
            principal = await asyncio.get_running_loop().run_in_executor(threads, self._verifier.verify, token)
        except InvalidToken:
            self._believed.pop(name, None)
            raise
        self._believed[name] = None
        self._believed.move_to_end(name)
        if len(self._believed) > _REMEMBERED:
            self._believed.popitem(last=False)
        return principal

    def close(self) -> None:
        for threads in (self._new, self._known):
            threads.shutdown(wait=False, cancel_futures=True)
