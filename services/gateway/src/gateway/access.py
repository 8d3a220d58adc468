"""Who is asking: a bearer token, or the console's cookie; and what that person may do here."""

import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated
from urllib.parse import urlsplit

from contracts.identity import InvalidToken, Principal
from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from gateway.metrics import STREAMS
from gateway.problems import Problem
from gateway.tokens import Tokens

COOKIE = "turngate_session"
BEARER = HTTPBearer(auto_error=False, description="A token of an issuer that this system believes.")
SAFE = ("GET", "HEAD", "OPTIONS")


def token_of(request: Request) -> str:
    """The token that came along. Raises a 401, and a 403 for a form that another site may have sent."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer:
        return bearer.strip()
    if cookie := request.cookies.get(COOKIE):
        if request.method not in SAFE and not from_this_site(request):
            raise Problem(
                403,
                "Sent from another site",
                "Nothing was done. A sign-in by cookie works on the console's own pages; programs send a bearer token.",
            )
        return cookie
    raise Problem(
        401,
        "Sign in first",
        "Send `Authorization: Bearer <token>`, or sign in to the console.",
        {"WWW-Authenticate": "Bearer"},
    )


def from_this_site(request: Request) -> bool:
    """Whether a browser says that its own page of ours sent this. A browser that says nothing is not believed."""
    if (fetch_site := request.headers.get("sec-fetch-site")) is not None:
        return fetch_site == "same-origin"
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host")


async def asker(request: Request) -> Principal:
    """The person or system that the token names. Raises a 401 with the reason."""
    tokens: Tokens = request.app.state.gateway.tokens
    try:
        return await tokens.verify(token_of(request))
    except InvalidToken as error:
        raise Problem(
            401, "Token not accepted", str(error), {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        ) from error


def session_of(principal: Principal) -> str:
    """Names one sign-in, so that a page's streams are never those of who was signed in before."""
    person = (principal.issuer, principal.tenant, principal.subject, str(principal.token_id))
    return hashlib.sha256("\n".join(person).encode()).hexdigest()[:16]


def may(*scopes: str) -> Callable[..., Awaitable[Principal]]:
    """A dependency: the asker, if they may do at least one of these."""

    async def allowed(request: Request, _: Annotated[object, Depends(BEARER)]) -> Principal:
        principal = await asker(request)
        if not any(principal.may(scope) for scope in scopes):
            raise Problem(
                403,
                "Not for your role",
                f"This needs {' or '.join(scopes)}; the role {principal.role} does not have it.",
            )
        return principal

    return allowed


class Streams:
    """How many streams each person has open in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[tuple[str, str, str]] = Counter()

    @contextmanager
    def one_more(self, principal: Principal) -> Iterator[None]:
        person = (principal.tenant, principal.issuer, principal.subject)
        self.check(principal)
        self._open[person] += 1
        STREAMS.inc()
        try:
            yield
        finally:
            STREAMS.dec()
            self._open[person] -= 1
            if not self._open[person]:
                del self._open[person]

    def check(self, principal: Principal) -> None:
        """Raises a 429 where the next stream would be one too many."""
        if self._open[(principal.tenant, principal.issuer, principal.subject)] >= self._most:
            raise Problem(
                429,
                "Too many streams",
                f"You have {self._most} streams open here. Close one and try again.",
                {"Retry-After": "5"},
            )
