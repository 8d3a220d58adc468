"""The embedded issuer's key and what it signs for the people of the demo."""

import hashlib
import json
import os
import secrets
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from contracts.identity import ROLES
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from turngate.embedded.passwords import write_private
from turngate.people import Somebody

ISSUER = "urn:turngate:embedded"
AUDIENCE = "turngate"
CLIENT = "turngate-console"
CLIENT_SECRET = "TURNGATE_SIGN_IN_CLIENT_SECRET"  # noqa: S105 - the name of the variable that holds it
LIFETIME_SECONDS = 12 * 60 * 60
IDENTIFIES_SECONDS = 5 * 60


class Unknown(LookupError):
    """Nobody of that name lives in that tenant; the message names those who do."""


@dataclass(frozen=True)
class Issuer:
    """The key under `<data>/issuer`: the private half for this process, `jwks.json` for everyone; and `secret`, which
    only the account that it belongs to can read, for those who ask the issuer for anything."""

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
        if not self._secret.exists() or self._secret.stat().st_mode & 0o077:
            write_private(self._secret, secrets.token_urlsafe(32) + "\n")  # one that others could read is none
        document = json.dumps({"keys": [self._public()]}, indent=2) + "\n"
        if not self.jwks.exists() or self.jwks.read_text() != document:
            beside = self.jwks.with_suffix(".new")
            beside.write_text(document)
            beside.replace(self.jwks)

    def issue(self, subject: str, tenant: str, role: str, lifetime: int = LIFETIME_SECONDS, **claims: Any) -> str:
        """A signed token of the role's scopes, valid from now on for `lifetime` seconds."""
        scopes = " ".join(sorted(ROLES[role]))
        return self._sign(
            {"sub": subject, "aud": AUDIENCE, "tenant": tenant, "role": role, "scope": scopes, **claims}, lifetime
        )

    def issue_to(self, who: Somebody) -> str:
        claims: dict[str, Any] = {"name": who.name} | (
            {"email": who.email, "email_verified": True} if who.email else {}
        )
        return self.issue(who.subject, who.tenant, who.role, **claims)

    def identify(self, who: Somebody, client: str, nonce: str | None) -> str:
        """An ID token: tells the client who has signed in, and opens nothing."""
        claims = {"sub": who.subject, "aud": client, "name": who.name} | ({"nonce": nonce} if nonce else {})
        return self._sign(claims, IDENTIFIES_SECONDS)

    def _sign(self, claims: dict[str, Any], lifetime: int) -> str:
        now = int(time.time())
        about = {"iss": ISSUER, "jti": str(uuid.uuid4()), "iat": now, "nbf": now - 5, "exp": now + lifetime}
        return jwt.encode(about | claims, self._key(), algorithm="EdDSA", headers={"kid": self._public()["kid"]})

    @property
    def secret(self) -> str:
        return self._secret.read_text().strip()

    @property
    def _secret(self) -> Path:
        return self.home / "secret"

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
