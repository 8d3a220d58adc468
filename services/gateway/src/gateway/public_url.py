"""The console's own address is configured. What a client says in its Host header is never made an address of ours."""

from urllib.parse import urlsplit

from contracts.discovery import loopback
from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send

SENT_HOST = "turngate.sent_host"


class PublicUrl:
    """Has every request look as if it were sent to the configured address, so that all absolute URLs name that one."""

    def __init__(self, app: ASGIApp, url: str) -> None:
        parts = urlsplit(url)
        self._app, self._scheme, self._host = app, parts.scheme, parts.netloc.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            sent = [value for name, value in scope["headers"] if name == b"host"]
            others = [(name, value) for name, value in scope["headers"] if name != b"host"]
            scope["headers"] = [(b"host", self._host), *others]
            scope["scheme"] = self._scheme
            scope[SENT_HOST] = sent[0].decode("latin-1") if sent else ""
        await self._app(scope, receive, send)


def by_another_name(request: Request, url: str) -> bool:
    """Whether a browser of this machine reached a console of this machine by another of its names, such as localhost:
    the cookies of one are not sent to the other."""
    configured, sent = urlsplit(url), str(request.scope[SENT_HOST])
    try:
        name = urlsplit(f"//{sent}").hostname or ""
    except ValueError:
        return False
    return sent != configured.netloc and loopback(name) and loopback(configured.hostname or "")
