"""Who someone is and what they may do: roles, scopes, and the check of a signed token."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import jwt
from pydantic import BaseModel

from contracts.facts import Person
from contracts.subjects import BadToken, token

# What each role may do. A token's own scopes can only narrow this.
ROLES: dict[str, frozenset[str]] = {
    "customer": frozenset({"chat"}),
    "operator": frozenset({"read", "run", "cancel", "take_over", "spend"}),
    "approver": frozenset({"read", "run", "cancel", "take_over", "spend", "decide"}),
    "lead": frozenset({"read", "run", "cancel", "take_over", "spend", "decide", "limits", "policy"}),
    "auditor": frozenset({"read", "audit", "spend"}),
    "admin": frozenset({"read", "audit", "spend", "stop", "subscribers", "erase", "dead"}),
}
# Who outranks whom when a hold asks for a role.
RANKS = {"approver": 1, "lead": 2}
ALGORITHMS = ("EdDSA", "RS256", "ES256")


class InvalidToken(Exception):
    """The token is not to be believed; the message says why, for its bearer."""


class Issuer(BaseModel):
    """An issuer that we believe, for these tenants only. `jwks` is a file's path or a URL."""

    issuer: str
    jwks: str
    tenants: list[str]


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or system, as a valid token said."""

    subject: str
    issuer: str
    tenant: str
    role: str
    scopes: frozenset[str]
    token_id: str | None
    expires_at: datetime

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def person(self) -> Person:
        return Person(subject=self.subject, issuer=self.issuer, role=self.role, token_id=self.token_id)


class Verifier:
    """Checks tokens against the issuers that we believe."""

    def __init__(self, issuers: list[Issuer], audience: str) -> None:
        self._issuers = {issuer.issuer: issuer for issuer in issuers}
        self._audience = audience

    def verify(self, text: str) -> Principal:
        """The principal that the token names. Raises InvalidToken, with a reason that its bearer can act on."""
        try:
            header = jwt.get_unverified_header(text)
            unverified = jwt.decode(text, options={"verify_signature": False})
            issuer = self._issuers.get(unverified.get("iss", ""))
            if issuer is None:
                raise InvalidToken("The token's issuer is not one that this system believes. Sign in again.")
            claims = jwt.decode(
                text,
                key=_key(issuer.jwks, header),
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=issuer.issuer,
                options={"require": ["exp", "iat", "iss", "sub", "aud"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise InvalidToken("The token has expired. Sign in again.") from error
        except jwt.PyJWTError as error:
            raise InvalidToken(f"The token is not valid: {error}. Sign in again.") from error
        return _principal(claims, issuer)


def _principal(claims: dict[str, Any], issuer: Issuer) -> Principal:
    tenant, role = str(claims.get("tenant", "")), str(claims.get("role", ""))
    try:
        token(tenant)
    except BadToken as error:
        raise InvalidToken("The token names no tenant.") from error
    if tenant not in issuer.tenants:
        raise InvalidToken(f"The token's issuer may not speak for tenant {tenant}.")
    if role not in ROLES:
        raise InvalidToken("The token names no role that this system knows.")
    scopes = ROLES[role]
    if "scope" in claims:
        scopes &= frozenset(str(claims["scope"]).split())
    return Principal(
        subject=str(claims["sub"]),
        issuer=issuer.issuer,
        tenant=tenant,
        role=role,
        scopes=scopes,
        token_id=claims.get("jti"),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
    )


def _key(jwks: str, header: dict[str, Any]) -> jwt.PyJWK:
    for key in _keys(jwks):
        if key.key_id == header.get("kid"):
            return key
    _keys.cache_clear()  # the issuer may have rotated its keys
    for key in _keys(jwks):
        if key.key_id == header.get("kid"):
            return key
    raise InvalidToken("The token is signed with a key that its issuer does not publish. Sign in again.")


@lru_cache(maxsize=16)
def _keys(jwks: str) -> tuple[jwt.PyJWK, ...]:
    if jwks.startswith(("http://", "https://")):
        return tuple(jwt.PyJWKClient(jwks).get_signing_keys())
    return tuple(jwt.PyJWKSet.from_dict(json.loads(Path(jwks).read_text())).keys)
