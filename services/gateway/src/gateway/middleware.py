"""Around every request: a limit on its body, the headers that browsers need, and the counters."""

import time
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.metrics import REQUESTS, SECONDS
from gateway.problems import Problem, answer

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
METHODS = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
# The only thing that is the same for everybody.
STATIC = "/static/"
# Calls that take texts of tens of thousands of characters.
LONG = ("/v1/tickets", "/v1/policy")
# Where a request's state holds its whole body, as bytes.
BODY = "body"
# Where it holds the claim on its Idempotency-Key. What was refused has used up no key.
CLAIM = "claim"


class BodyLimit:
    """Answers 413 to a body of more than `most` bytes, announced or not; `long` at the calls that take long texts.
    A smaller one is read at once."""

    def __init__(self, app: ASGIApp, most: int, long: int) -> None:
        self._app = app
        self._most = most
        self._long = long

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        most = self._long if scope["path"] in LONG else self._most
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            return await answer(Request(scope), _too_large(most))(scope, receive, send)
        parts: list[Message] = []
        seen = 0
        while not parts or parts[-1].get("more_body"):
            parts.append(await receive())
            seen += len(parts[-1].get("body", b""))
            if seen > most:
                return await answer(Request(scope), _too_large(most))(scope, receive, send)
        scope.setdefault("state", {})[BODY] = b"".join(part.get("body", b"") for part in parts)
        await self._app(scope, replayed(parts, receive), send)


def _too_large(most: int) -> Problem:
    return Problem(413, "Too large", f"This request's body has at most {most:,} bytes. Nothing was done; send less.")


def replayed(parts: list[Message], receive: Receive) -> Receive:
    """Receives what has been received before, and then what comes."""
    again = iter(parts)

    async def replaying() -> Message:
        return next(again, None) or await receive()

    return replaying


class Around:
    """Security headers on every answer, and how many answers of which kind there were."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started = time.monotonic()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                claim = scope.get("state", {}).get(CLAIM)
                if claim is not None and 400 <= message["status"] < 500:
                    await claim.release()
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not scope["path"].startswith(STATIC):
                    headers.setdefault("Cache-Control", "no-store")
                _count(scope, message, time.monotonic() - started)
            await send(message)

        await self._app(scope, receive, sending)


def _count(scope: Scope, message: Message, seconds: float) -> None:
    route: Any = scope.get("route")
    path = getattr(route, "path", "unrouted")
    # A client may make methods up: each would be counted, and kept, for ever.
    method = scope["method"] if scope["method"] in METHODS else "other"
    REQUESTS.labels(method, path, message["status"]).inc()
    SECONDS.labels(method, path).observe(seconds)
