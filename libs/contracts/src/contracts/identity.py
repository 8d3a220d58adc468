"""Who someone is and what they may do: roles, scopes, and the check of a signed token."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import jwt
from pydantic import BaseModel

from contracts.facts import Person
from contracts.keys import KeySet
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
ALGORITHMS = ("EdDSA", "RS256", "ES256")
LONGEST = 16_000  # characters of a token
LONGEST_NAME = 512  # as facts carry them


class InvalidToken(Exception):
    """The token is not to be believed; the message says why, for its bearer."""


class Issuer(BaseModel):
    """An issuer that we believe, for these tenants only. `jwks` is a file's path or a URL."""

    issuer: str
    jwks: str
    tenants: list[str]


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or system, as a valid token said. `email` is one that their issuer has verified."""

    subject: str
    issuer: str
    tenant: str
    role: str
    scopes: frozenset[str]
    token_id: str | None
    expires_at: datetime
    email: str | None = None

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def person(self) -> Person:
        return Person(subject=self.subject, issuer=self.issuer, role=self.role, token_id=self.token_id)


class Verifier:
    """Checks tokens against the issuers that we believe."""

    def __init__(self, issuers: list[Issuer], audience: str) -> None:
        self._issuers = {issuer.issuer: (issuer, KeySet(issuer.jwks)) for issuer in issuers}
        self._audience = audience

    def verify(self, text: str) -> Principal:
        """The principal that the token names. Raises InvalidToken, with a reason that its bearer can act on, and Outage
        where its issuer's keys cannot be had. May wait for those, so not for an event loop. Safe in threads."""
        if len(text) > LONGEST:
            raise InvalidToken("The token is too long to be one of ours. Sign in again.")
        try:
            header = jwt.get_unverified_header(text)
            unverified = jwt.decode(text, options={"verify_signature": False})
            known = self._issuers.get(str(unverified.get("iss")))
            if known is None:
                raise InvalidToken("The token's issuer is not one that this system believes. Sign in again.")
            issuer, keys = known
            key = keys.find(header.get("kid"))
            if key is None:
                raise InvalidToken("The token is signed with a key that its issuer does not publish. Sign in again.")
            claims = jwt.decode(
                text,
                key=key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=issuer.issuer,
                options={"require": ["exp", "iat", "iss", "sub", "aud"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise InvalidToken("The token has expired. Sign in again.") from error
        except jwt.PyJWTError as error:
            raise InvalidToken(f"The token is not valid: {error}. Sign in again.") from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidToken("The token cannot be read. Sign in again.") from error
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
    if max(len(str(claims["sub"])), len(str(claims.get("jti", "")))) > LONGEST_NAME:
        raise InvalidToken(f"The token's sub and jti may have {LONGEST_NAME} characters.")
    try:
        expires_at = datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidToken("The token's exp is no time.") from error
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
        expires_at=expires_at,
        email=str(claims["email"]) if claims.get("email") and claims.get("email_verified") is True else None,
    )
