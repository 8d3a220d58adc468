"""The embedded issuer as an OpenID provider: for this machine only, and never beside a real one."""

import argparse
import base64
import hashlib
import hmac
import os
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from contracts.discovery import PATH, loopback
from contracts.strict import parse_json
from contracts.unreal import ModelIs, notice
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from turngate import chooser
from turngate.entrance import ENTER, ENTERED_SECONDS, KEY, Entrance
from turngate.issuer import CLIENT, CLIENT_SECRET, ISSUER, LIFETIME_SECONDS, Issuer, Unknown, find, real_issuers
from turngate.people import Somebody, everybody

CALLBACK = "/sign-in/done"
CODE_SECONDS = 60
MOST_CODES = 1000
NOT_KEPT = {"Cache-Control": "no-store"}


class Refused(Exception):
    """What OAuth 2.0 calls an error: `code` is one of its words, the rest is for people."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True)
class Asked:
    """An authorization request (OpenID Connect Core 1.0, section 3.1.2.1) that may be answered."""

    redirect_uri: str
    state: str
    nonce: str
    code_challenge: str

    def back(self, **answer: str) -> Response:
        return RedirectResponse(f"{self.redirect_uri}?{urlencode(answer | {'state': self.state, 'iss': ISSUER})}", 303)


@dataclass(frozen=True)
class Code:
    asked: Asked
    who: Somebody
    until: float = field(default_factory=lambda: time.monotonic() + CODE_SECONDS)


class Provider:
    """Signs people in for one client, the console: authorization code with PKCE, each code good once, for a minute."""

    def __init__(
        self, issuer: Issuer, people: list[Somebody], client_secret: str, console: str, model: ModelIs | None = None
    ) -> None:
        self._issuer = issuer
        self._entrance = Entrance(issuer.secret)
        self._console = console
        self._people = people
        self._client_secret = client_secret
        self._unreal = notice(model, "demo")
        self._codes: dict[str, Code] = {}

    async def enter(self, request: Request) -> Response:
        """Exchanges the secret of the link for a cookie, and leads on, so that it stays in no address bar."""
        if not self._entrance.knows(request.query_params.get(KEY, "")):
            return _page(chooser.refused(chooser.NOT_LET_IN, self._unreal), 403)
        response = RedirectResponse(self._console, 303, {**NOT_KEPT, "Referrer-Policy": "no-referrer"})
        response.set_cookie(
            self._entrance.cookie,
            self._entrance.cookie_value(),
            max_age=ENTERED_SECONDS,
            path="/authorize",
            httponly=True,
            samesite="lax",
        )
        return response

    async def authorize(self, request: Request) -> Response:
        """Shows whom one can be; a choice leads back to the console with a code."""
        if not self._entrance.is_open_to(request.cookies.get(self._entrance.cookie, "")):
            return _page(chooser.refused(chooser.NOT_LET_IN, self._unreal), 403)
        given = dict(request.query_params if request.method == "GET" else await _form(request))
        redirect_uri = given.get("redirect_uri", "")
        if given.get("client_id") != CLIENT or not is_callback(redirect_uri):
            return _page(
                chooser.refused("Open the console under an address of this machine, such as 127.0.0.1.", self._unreal),
                400,
            )
        try:
            asked = _asked(given, redirect_uri)
        except Refused as refusal:
            answer = {"error": refusal.code, "error_description": str(refusal), "state": given.get("state", "")}
            return RedirectResponse(f"{redirect_uri}?{urlencode(answer)}", 303)
        if request.method == "GET":
            return _page(chooser.page(self._people, given, self._unreal), forms_lead_to=redirect_uri)
        if not _own_page(request):
            return _page(chooser.refused("This was sent by another page. Nobody was signed in.", self._unreal), 403)
        try:
            who = find(self._people, given.get("as", ""), given.get("tenant"))
        except Unknown as unknown:
            return _page(chooser.refused(str(unknown), self._unreal), 404)
        return asked.back(code=self._code(asked, who))

    def _code(self, asked: Asked, who: Somebody) -> str:
        now = time.monotonic()
        self._codes = {code: one for code, one in self._codes.items() if one.until > now}
        if len(self._codes) >= MOST_CODES:
            self._codes.clear()
        code = secrets.token_urlsafe(32)
        self._codes[code] = Code(asked, who)
        return code

    async def token(self, request: Request) -> Response:
        """For the console a code's tokens; for the command line, which sends JSON, a token of the person it names."""
        if "origin" in request.headers or "sec-fetch-site" in request.headers:
            return JSONResponse({"detail": "Tokens are for programs of this machine, not for web pages."}, 403)
        if request.headers.get("content-type", "").split(";")[0] == "application/json":
            return await self._named(request)
        try:
            return self._redeemed(await _form(request), request.headers.get("authorization", ""))
        except Refused as refusal:
            status = 401 if refusal.code == "invalid_client" else 400
            return JSONResponse({"error": refusal.code, "error_description": str(refusal)}, status, NOT_KEPT)

    async def _named(self, request: Request) -> Response:
        if not self._is_let_in(request):
            return _not_let_in()
        try:
            wanted = parse_json(await request.body())
            who = find(self._people, str(wanted["as"]), wanted.get("tenant"))
        except Unknown as error:
            return JSONResponse({"detail": str(error)}, 404)
        except (ValueError, KeyError, TypeError, AttributeError):
            return JSONResponse({"detail": 'Send {"as": "alex", "tenant": "acme"}.'}, 400)
        return JSONResponse(self._access(who), headers=NOT_KEPT)

    def _redeemed(self, given: dict[str, str], authorization: str) -> Response:
        if not self._is_the_client(authorization):
            raise Refused("invalid_client", "Send the client's id and secret as Basic authentication.")
        if given.get("grant_type") != "authorization_code":
            raise Refused("unsupported_grant_type", "Only authorization_code is answered here.")
        code = self._codes.pop(given.get("code", ""), None)  # good once, whatever comes of it
        if code is None or code.until <= time.monotonic():
            raise Refused("invalid_grant", "The code is unknown, used or too old.")
        if given.get("redirect_uri") != code.asked.redirect_uri:
            raise Refused("invalid_grant", "The code was made for another address.")
        if not hmac.compare_digest(challenge_of(given.get("code_verifier", "")), code.asked.code_challenge):
            raise Refused("invalid_grant", "The code was asked for by somebody else.")
        id_token = self._issuer.identify(code.who, CLIENT, code.asked.nonce)
        return JSONResponse(self._access(code.who) | {"id_token": id_token, "scope": "openid"}, headers=NOT_KEPT)

    def _access(self, who: Somebody) -> dict[str, Any]:
        text = self._issuer.issue_to(who)
        return {"access_token": text, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS}

    def _is_the_client(self, authorization: str) -> bool:
        scheme, _, encoded = authorization.partition(" ")
        try:
            name, _, secret = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            return False
        known = hmac.compare_digest(unquote(secret).encode(), self._client_secret.encode())
        return scheme.lower() == "basic" and unquote(name) == CLIENT and known

    def _is_let_in(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._entrance.knows(given.strip())

    async def list_people(self, request: Request) -> Response:
        if not self._is_let_in(request):
            return _not_let_in()
        return JSONResponse({"people": [{**asdict(who), "as": who.subject} for who in self._people]})

    async def jwks(self, _: Request) -> Response:
        return Response(self._issuer.jwks.read_text(), media_type="application/json")

    async def discovery(self, request: Request) -> Response:
        host, port = request.scope["server"]  # where this listens, not what a Host header says
        here = f"http://{host}:{port}"
        return JSONResponse(
            {
                "issuer": ISSUER,
                "authorization_endpoint": f"{here}/authorize",
                "token_endpoint": f"{here}/token",
                "jwks_uri": f"{here}/.well-known/jwks.json",
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["EdDSA"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic"],
                "code_challenge_methods_supported": ["S256"],
                "scopes_supported": ["openid"],
                "authorization_response_iss_parameter_supported": True,
            }
        )


def app(
    issuer: Issuer, people: list[Somebody], client_secret: str, console: str = "/", model: ModelIs | None = None
) -> Starlette:
    """Only for callers on this machine that name it as such: a web page that points a name of its own here gets
    nothing. `console` is where the link of the entrance leads on to."""
    provider = Provider(issuer, people, client_secret, console, model)

    async def healthy(_: Request) -> Response:
        return JSONResponse({"status": "ok", "service": "issuer"})

    async def style(_: Request) -> Response:
        return Response(chooser.STYLE, media_type="text/css")

    return Starlette(
        routes=[
            Route(PATH, provider.discovery),
            Route("/.well-known/jwks.json", provider.jwks),
            Route(ENTER, provider.enter),
            Route("/authorize", provider.authorize, methods=["GET", "POST"]),
            Route("/token", provider.token, methods=["POST"]),
            Route("/people", provider.list_people),
            Route("/style.css", style),
            Route("/readyz", healthy),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


def is_callback(uri: str) -> bool:
    """Whether a console of this machine listens there, whatever its port (RFC 8252, section 7.3)."""
    try:
        parts = urlsplit(uri)
        host, plain = parts.hostname or "", parts.port is not None and parts.username is None
    except ValueError:
        return False
    return (
        plain
        and (parts.scheme, parts.path, parts.query, parts.fragment) == ("http", CALLBACK, "", "")
        and loopback(host)
    )


def challenge_of(verifier: str) -> str:
    """RFC 7636, S256."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _asked(given: dict[str, str], redirect_uri: str) -> Asked:
    if given.get("response_type") != "code":
        raise Refused("unsupported_response_type", "Only a code is given here.")
    if "openid" not in given.get("scope", "").split():
        raise Refused("invalid_scope", "Ask for openid.")
    if given.get("code_challenge_method") != "S256" or not given.get("code_challenge"):
        raise Refused("invalid_request", "Send a code_challenge of the method S256.")
    if not given.get("state"):
        raise Refused("invalid_request", "Send a state.")
    return Asked(redirect_uri, given["state"], given.get("nonce", ""), given["code_challenge"])


def _not_let_in() -> Response:
    detail = "Send the secret of the data directory (its file issuer/secret) as a bearer token."
    return JSONResponse({"detail": detail}, 401, {**NOT_KEPT, "WWW-Authenticate": "Bearer"})


async def _form(request: Request) -> dict[str, str]:
    return {name: value for name, value in (await request.form()).items() if isinstance(value, str)}


def _own_page(request: Request) -> bool:
    """A browser says who sends a form. One that says nothing is not believed."""
    if (fetch_site := request.headers.get("sec-fetch-site")) is not None:
        return fetch_site == "same-origin"
    return request.headers.get("origin") == f"http://{request.headers['host']}"


def _page(text: str, status: int = 200, forms_lead_to: str = "") -> Response:
    target = urlsplit(forms_lead_to)
    forms = f"'self' {target.scheme}://{target.netloc}" if forms_lead_to else "'none'"
    policy = f"default-src 'none'; style-src 'self'; form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        # With no-referrer the form would come with an Origin of null, as one from anywhere.
        "Referrer-Policy": "same-origin",
        **NOT_KEPT,
    }
    return HTMLResponse(text, status, headers)


def main() -> None:
    parser = argparse.ArgumentParser(prog="turngate.provider", description="Signs the demo's people in.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--tenants", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--console", default="/")
    given = parser.parse_args()
    if real_issuers():
        raise SystemExit("Tokens are issued elsewhere (TURNGATE_ISSUERS is set): the embedded issuer does not serve.")
    secret = os.environ.get(CLIENT_SECRET)
    if not secret:
        raise SystemExit(f"Set {CLIENT_SECRET} to what the console has too. Nobody can sign in without it.")
    import uvicorn

    issuer = Issuer(given.home)
    issuer.prepare()
    model = TypeAdapter(ModelIs | None).validate_python(os.environ.get("TURNGATE_MODEL_IS") or None)
    served = app(issuer, everybody(given.tenants), secret, given.console, model)
    uvicorn.run(served, host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
