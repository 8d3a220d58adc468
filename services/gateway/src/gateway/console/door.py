"""In and out of the console: to the issuer, back with a sign-in, and out again with every stream that was open."""

from contextlib import suppress
from typing import Annotated
from urllib.parse import urlencode

from contracts.identity import InvalidToken
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import RedirectResponse, Response

from gateway import sign_in
from gateway.access import COOKIE, address, cookie_name, from_this_site, keep, token_of, unauthenticated
from gateway.console.pages import Reader, inside, outside
from gateway.ports import Ports
from gateway.problems import Problem
from gateway.public_url import by_another_name
from gateway.sign_in import Begun

router = APIRouter(include_in_schema=False)
BEGUN = "turngate_sign_in"
BEGUN_SECONDS = 600
MOST_BEGUN = 5  # tabs that sign in side by side
CALLBACK = "/sign-in/done"
UNAUTHENTICATED = [Depends(unauthenticated)]
Word = Annotated[str, Query(max_length=4096)]


@router.get("/sign-in", dependencies=UNAUTHENTICATED)
async def to_the_issuer(
    ports: Ports,
    request: Request,
    go_on: Annotated[str, Query(alias="next", max_length=2000)] = "/tickets",
    moved: bool = False,
) -> Response:
    """Leads to the issuer, and remembers in the browser what was asked and where it was going."""
    if not ports.sign_in.offered:
        return outside(ports.settings, None)
    if not moved and by_another_name(request, address(request)):
        # The issuer leads back to the configured name; what is remembered has to be remembered there.
        there = f"{address(request)}/sign-in?{urlencode({'next': inside(go_on), 'moved': 'true'})}"
        return RedirectResponse(there, 303, {"Cache-Control": "no-store"})
    begun = Begun(inside(go_on))
    try:
        target = await ports.sign_in.begin(begun, address(request) + CALLBACK)
    except Problem as problem:
        return outside(ports.settings, problem, go_on=begun.go_on)
    response = RedirectResponse(target, 303, {"Cache-Control": "no-store"})
    for name in _begun(request)[MOST_BEGUN - 1 :]:
        keep(request, response, name, "", 0)
    keep(request, response, _name_of(begun.state), begun.pack(), BEGUN_SECONDS)
    return response


@router.get(CALLBACK, dependencies=UNAUTHENTICATED)
async def back_from_the_issuer(
    ports: Ports, request: Request, state: Word = "", code: Word = "", iss: Word | None = None, error: Word = ""
) -> Response:
    begun = Begun.unpack(request.cookies.get(cookie_name(request, _name_of(state)), ""))
    if begun is None or not state or begun.state != state:
        problem = Problem(403, "Not signed in", "This sign-in was not begun here, or too long ago. Sign in again.")
        return outside(ports.settings, problem)
    try:
        if error or not code:
            raise Problem(403, "Not signed in", f"The issuer did not sign you in ({error or 'it sent no code'}).")
        token, principal = await ports.sign_in.finish(begun, address(request) + CALLBACK, code, iss)
    except Problem as problem:
        response = outside(ports.settings, problem, go_on=begun.go_on)
    else:
        response = RedirectResponse(inside(begun.go_on), 303, {"Cache-Control": "no-store"})
        keep(request, response, COOKIE, token, sign_in.seconds_of(principal))
    keep(request, response, _name_of(state), "", 0)
    return response


@router.post("/sign-out", dependencies=UNAUTHENTICATED)
async def sign_out(ports: Ports, request: Request) -> Response:
    """Ends this sign-in in all its tabs: their streams at once, whatever else they ask for from now on."""
    if not from_this_site(request):
        raise Problem(403, "Sent from another site", "You are still signed in.")
    with suppress(InvalidToken, Problem):  # nobody was signed in any more
        await ports.sessions.end(await ports.tokens.verify(token_of(request)))
    response = RedirectResponse("/signed-out", 303)
    keep(request, response, COOKIE, "", 0)
    return response


@router.get("/signed-out", dependencies=UNAUTHENTICATED)
async def signed_out(ports: Ports) -> Response:
    return outside(ports.settings, None, "You are signed out, in every tab.")


@router.get("/console/session")
async def session(_: Reader) -> Response:
    """Whether the cookie still holds: 204, or the 401 that every page would get."""
    return Response(status_code=204)


def _name_of(state: str) -> str:
    return f"{BEGUN}_{state[:8]}"


def _begun(request: Request) -> list[str]:
    """The cookies of sign-ins that were begun and not ended, the latest first."""
    prefix = cookie_name(request, BEGUN)
    found = [name.removeprefix(cookie_name(request, "")) for name in request.cookies if name.startswith(prefix)]
    return found[::-1]
