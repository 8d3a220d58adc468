"""The embedded issuer: signs tokens for the people of the demo. Loopback only, and never beside a real issuer."""

import argparse
import hashlib
import json
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jwt
from contracts.identity import ROLES
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from turngate.embedded.passwords import write_private
from turngate.people import Somebody, everybody

ISSUER = "urn:turngate:embedded"
AUDIENCE = "turngate"
LIFETIME_SECONDS = 12 * 60 * 60


class Unknown(LookupError):
    """Nobody of that name lives in that tenant; the message names those who do."""


@dataclass(frozen=True)
class Issuer:
    """The key under `<data>/issuer`: the private half for this process, `jwks.json` for everyone."""

    home: Path

    @property
    def jwks(self) -> Path:
        return self.home / "jwks.json"

    def prepare(self) -> None:
        """Makes the key where there is none."""
        self.home.mkdir(parents=True, exist_ok=True)
        if not self._private.exists():
            key = Ed25519PrivateKey.generate()
            text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
            write_private(self._private, text)
        document = json.dumps({"keys": [self._public()]}, indent=2) + "\n"
        if not self.jwks.exists() or self.jwks.read_text() != document:
            beside = self.jwks.with_suffix(".new")
            beside.write_text(document)
            beside.replace(self.jwks)

    def issue(self, subject: str, tenant: str, role: str, lifetime: int = LIFETIME_SECONDS, **claims: Any) -> str:
        """A signed token of the role's scopes, valid from now on for `lifetime` seconds."""
        now = int(time.time())
        body = {
            "iss": ISSUER,
            "sub": subject,
            "aud": AUDIENCE,
            "tenant": tenant,
            "role": role,
            "scope": " ".join(sorted(ROLES[role])),
            "jti": str(uuid.uuid4()),
            "iat": now,
            "nbf": now - 5,
            "exp": now + lifetime,
            **claims,
        }
        return jwt.encode(body, self._key(), algorithm="EdDSA", headers={"kid": self._public()["kid"]})

    def issue_to(self, who: Somebody) -> str:
        claims: dict[str, Any] = {"name": who.name} | (
            {"email": who.email, "email_verified": True} if who.email else {}
        )
        return self.issue(who.subject, who.tenant, who.role, **claims)

    @property
    def _private(self) -> Path:
        return self.home / "private.pem"

    def _key(self) -> Ed25519PrivateKey:
        key = load_pem_private_key(self._private.read_bytes(), password=None)
        if not isinstance(key, Ed25519PrivateKey):
            raise TypeError(f"{self._private} does not hold an Ed25519 key")
        return key

    def _public(self) -> dict[str, Any]:
        public: dict[str, Any] = jwt.algorithms.OKPAlgorithm.to_jwk(self._key().public_key(), as_dict=True)
        kid = hashlib.sha256(public["x"].encode()).hexdigest()[:16]
        return {**public, "use": "sig", "alg": "EdDSA", "kid": kid}


def find(people: list[Somebody], subject: str, tenant: str | None) -> Somebody:
    """The person, if the name says enough. Raises Unknown with who there is."""
    named = [who for who in people if who.subject == subject and tenant in (None, who.tenant)]
    if len(named) == 1:
        return named[0]
    if named:
        raise Unknown(f"{subject} is in several tenants ({', '.join(who.tenant for who in named)}); say which.")
    there = ", ".join(
        f"{who.subject} ({who.tenant})" for who in people if who.role != "customer" and tenant in (None, who.tenant)
    )
    raise Unknown(f"Nobody here is called {subject}{f' in {tenant}' if tenant else ''}. There are: {there or 'none'}.")


def real_issuers(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether somebody else issues the tokens. Then this one does not serve."""
    return bool(environ.get("TURNGATE_ISSUERS"))


def app(issuer: Issuer, people: list[Somebody]) -> Any:
    """`POST /token {"as", "tenant"}`, `GET /people`, `GET /.well-known/jwks.json`. Only for callers on this machine
    that name it as such: a web page that points a name of its own here gets nothing."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def token(request: Request) -> Response:
        if request.headers.get("content-type", "").split(";")[0] != "application/json":
            return JSONResponse({"detail": 'Send {"as", "tenant"} as application/json.'}, 415)
        try:
            wanted = await request.json()
            who = find(people, str(wanted["as"]), wanted.get("tenant"))
        except Unknown as error:
            return JSONResponse({"detail": str(error)}, 404)
        except (ValueError, KeyError, TypeError, AttributeError):
            return JSONResponse({"detail": 'Send {"as": "alex", "tenant": "acme"}.'}, 400)
        text = issuer.issue_to(who)
        return JSONResponse({"access_token": text, "token_type": "Bearer", "expires_in": LIFETIME_SECONDS})

    async def list_people(_: Request) -> Response:
        shown = [{**asdict(who), "as": who.subject} for who in people]
        return JSONResponse({"people": shown})

    async def jwks(_: Request) -> Response:
        return Response(issuer.jwks.read_text(), media_type="application/json")

    async def healthy(_: Request) -> Response:
        return JSONResponse({"status": "ok", "service": "issuer"})

    return Starlette(
        routes=[
            Route("/token", token, methods=["POST"]),
            Route("/people", list_people),
            Route("/.well-known/jwks.json", jwks),
            Route("/readyz", healthy),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="turngate.issuer", description="Signs tokens for the demo's people.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--tenants", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    if real_issuers():
        raise SystemExit("Tokens are issued elsewhere (TURNGATE_ISSUERS is set): the embedded issuer does not serve.")
    import uvicorn

    issuer = Issuer(given.home)
    issuer.prepare()
    uvicorn.run(app(issuer, everybody(given.tenants)), host="127.0.0.1", port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
