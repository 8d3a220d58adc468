"""Who is asking: a bearer token, or the console's cookie; and what that person may do here."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from contracts.identity import InvalidToken, Principal
from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.responses import Response
from fastapi.security import HTTPBearer

from gateway.domain import NOT_IN_THEIR_NAME
from gateway.locales import LOCALE
from gateway.metrics import STREAMS
from gateway.problems import Problem
from gateway.sessions import session_of

if TYPE_CHECKING:
    from gateway.ports import Gateway

COOKIE = "turngate_session"
BEARER = HTTPBearer(auto_error=False, description="A token of an issuer that this system believes.")
SAFE = ("GET", "HEAD", "OPTIONS")
# How other systems take the tenant. Here only the token says it, and who tries otherwise is told so.
TENANT_HEADERS = ("tenant", "tenant-id", "x-tenant", "x-tenant-id", "turngate-tenant", "x-turngate-tenant")


def token_of(request: Request) -> str:
    """The token that came along. Raises a 401, and a 403 for a form that another site may have sent."""
    scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and bearer:
        return bearer.strip()
    if cookie := request.cookies.get(cookie_name(request, COOKIE)):
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
    return request.headers.get("origin") == address(request)


def address(request: Request) -> str:
    """Where people have this console open: scheme, name and port."""
    gateway: Gateway = request.app.state.gateway
    return gateway.settings.public_url


def is_secure(request: Request) -> bool:
    return address(request).startswith("https://")


def cookie_name(request: Request, name: str) -> str:
    """Over https a name that no other host and no plain http can set."""
    return f"__Host-{name}" if is_secure(request) else name


def keep(request: Request, response: Response, name: str, value: str, seconds: int) -> None:
    """A cookie that scripts cannot read and other sites' forms do not send. Empty and 0 seconds to forget it."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        samesite="lax",
        secure=is_secure(request),
    )


async def asker(request: Request) -> Principal:
    """The person or system that the token names. Raises a 401 with the reason, a 429 where they call too often."""
    gateway: Gateway = request.app.state.gateway
    try:
        principal = await gateway.tokens.verify(token_of(request))
    except Problem:
        await unauthenticated(request)
        raise
    except InvalidToken as error:
        await unauthenticated(request)
        raise Problem(
            401, "Token not accepted", str(error), {"WWW-Authenticate": 'Bearer error="invalid_token"'}
        ) from error
    gateway.limits.count(principal)
    if gateway.sessions.ended(principal):
        raise Problem(401, "Signed out", "This sign-in was ended. Sign in again.", {"WWW-Authenticate": "Bearer"})
    # A page says by whose sign-in it was made: another tab may have changed who this browser's cookie is of.
    if request.method not in SAFE and request.query_params.get("for", session_of(principal)) != session_of(principal):
        raise Problem(
            409,
            "Somebody else is signed in",
            f"This page was opened by another sign-in than this browser has now, {principal.subject}'s. "
            "Nothing was done. Reload the page and look who you are.",
        )
    if "tenant" in request.query_params or any(name in request.headers for name in TENANT_HEADERS):
        raise Problem(
            400,
            "No tenant to choose",
            "Nothing was done. The token says whose tenant this is; send nothing else of it.",
        )
    if request.method not in SAFE:
        request.state.claim = await gateway.request_keys.claim(request, principal)
    LOCALE.set(gateway.tenants.of(principal.tenant).locale)
    return principal


async def unauthenticated(request: Request) -> None:
    """Counts a call of somebody whom no token names. Raises a 429 where too many came from their address."""
    gateway: Gateway = request.app.state.gateway
    gateway.limits.count_unauthenticated(request.client.host if request.client else None)


class May:
    """The asker, if they may do at least one of these."""

    def __init__(self, *scopes: str) -> None:
        self.scopes = scopes

    async def __call__(self, request: Request, _: Annotated[object, Depends(BEARER)]) -> Principal:
        principal = await asker(request)
        if not any(principal.may(scope) for scope in self.scopes):
            why = f"This needs {' or '.join(self.scopes)}; the role {principal.role} does not have it."
            if "speak" in self.scopes and principal.may("decide"):
                why = f"{why} {NOT_IN_THEIR_NAME}"
            raise Problem(403, "Not for your role", why)
        return principal


def may(*scopes: str) -> May:
    """A dependency: the asker, if they may do at least one of these."""
    return May(*scopes)


def scopes_of(dependency: Dependant) -> tuple[str, ...] | None:
    """What a route asks of its caller: one of these scopes; None if it asks for nobody."""
    if isinstance(dependency.call, May):
        return dependency.call.scopes
    return next(filter(None, map(scopes_of, dependency.dependencies)), None)


class Streams:
    """How many streams each person has open in this process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[tuple[str, str, str]] = Counter()

    @contextmanager
    def one_more(self, principal: Principal) -> Iterator[None]:
        """A stream of this person, for as long as the block lasts. Raises a 429 where it is one too many."""
        person = (principal.tenant, principal.issuer, principal.subject)
        if self._open[person] >= self._most:
            raise Problem(
                429,
                "Too many streams",
                f"You have {self._most} streams open here. Close one and try again.",
                {"Retry-After": "5"},
            )
        self._open[person] += 1
        STREAMS.inc()
        try:
            yield
        finally:
            STREAMS.dec()
            self._open[person] -= 1
            if not self._open[person]:
                del self._open[person]
