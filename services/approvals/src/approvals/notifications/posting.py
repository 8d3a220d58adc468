"""Posts to receivers on the internet: signed, in bounded time, to public addresses only, following nobody elsewhere."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from urllib.parse import urlsplit

import httpcore
import standardwebhooks

from approvals.notifications.addresses import Guarded, OutOfBounds
from approvals.notifications.delivery import Undelivered
from approvals.notifications.targets import web_address

USER_AGENT = "turngate-notifications/1"
RESOLVERS = 4  # threads of their own: a slow name server must not take those that check tokens


class Post:
    """`loopback` allows receivers on this machine, and plain http to them: for tests and local use."""

    def __init__(self, pool: httpcore.AsyncConnectionPool, timeout: float, *, loopback: bool) -> None:
        self._pool, self._timeout, self._loopback = pool, timeout, loopback

    async def send(self, url: str, body: bytes, headers: dict[str, str]) -> None:
        """Done once the receiver has answered 2xx. Raises Undelivered with what it did instead."""
        if urlsplit(url).scheme != "https" and not self._loopback:
            raise Undelivered("a receiver is told over https only", final=True)
        sent = [("content-type", "application/json"), ("user-agent", USER_AGENT), *headers.items()]
        try:
            async with (
                asyncio.timeout(self._timeout),
                self._pool.stream("POST", url, headers=sent, content=body) as response,
            ):
                status = response.status
        except OutOfBounds as error:
            raise Undelivered(str(error)) from error
        except TimeoutError as error:
            raise Undelivered(f"no answer within {self._timeout:g} s") from error
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
            raise Undelivered(f"{type(error).__name__}: {error}") from error
        if 300 <= status < 400:
            raise Undelivered(f"it answered {status}: redirects are not followed")
        if not 200 <= status < 300:
            # Gone: by the standard, the receiver wants to hear no more.
            raise Undelivered(f"it answered {status}", final=status == 410)


@asynccontextmanager
async def posting(timeout: float, *, loopback: bool) -> AsyncIterator[Post]:
    resolvers = ThreadPoolExecutor(RESOLVERS, "resolver")
    try:
        async with httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            network_backend=Guarded(resolvers, loopback=loopback),
            max_connections=None,
            max_keepalive_connections=0,
        ) as pool:
            yield Post(pool, timeout, loopback=loopback)
    finally:
        resolvers.shutdown(wait=False, cancel_futures=True)


def signed(secret: str, message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    """The headers of a Standard Webhook. Raises Undelivered where the secret is none."""
    try:
        signature = standardwebhooks.Webhook(secret).sign(message_id, at, body.decode())
    except Exception as error:  # the library raises what base64 raises, and an error of its own that it does not export
        raise Undelivered("its signing secret is not a Standard Webhooks secret (whsec_ and base64)") from error
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signature,
    }


def secret_address(value: str) -> str:
    """A URL that came as a secret. Raises Undelivered where it is none, without saying it."""
    try:
        return web_address(value)
    except ValueError:
        raise Undelivered("its variable does not hold a URL") from None
