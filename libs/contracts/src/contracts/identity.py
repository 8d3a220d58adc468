"""Who someone is and what they may do: roles, scopes, and the check of a signed token."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, Self

import jwt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from contracts.discovery import is_url, secure
from contracts.keys import KeySet
from contracts.parts import Person
from contracts.subjects import BadToken, token

# What each role may do. A token's own scopes can only narrow this.
ROLES: dict[str, frozenset[str]] = {
    "customer": frozenset({"chat"}),
    "operator": frozenset({"read", "personal", "run", "speak", "cancel", "take_over", "spend"}),
    "approver": frozenset({"read", "personal", "run", "cancel", "take_over", "spend", "decide"}),
    "lead": frozenset({"read", "personal", "run", "cancel", "take_over", "spend", "decide", "limits", "policy"}),
    "auditor": frozenset({"read", "audit", "spend"}),
    "admin": frozenset({"read", "audit", "spend", "stop", "subscribers", "erase", "dead"}),
}
Algorithm = Literal["EdDSA", "RS256", "ES256"]
LONGEST = 16_000  # characters of a token
LONGEST_NAME = 512  # as facts carry them
LARGEST_LIMIT = 2**53 - 1


class InvalidToken(Exception):
    """The token is not to be believed; the message says why, for its bearer."""


class Issuer(BaseModel):
    """An issuer that we believe, for these tenants only.

    jwks: a file's path or a URL; without it the issuer's discovery document says where its keys are.
    tenant_claim, role_claim, limit_claim: the claims that name the tenant, the role, and a person's own limit.
    scope_claim: whose words narrow what the role may; None where the issuer's scopes mean something else.
    role_claim and scope_claim may be one text with spaces or a list of texts.
    leeway_seconds: how far the issuer's clock may be from ours.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: str = Field(min_length=1)
    jwks: str | None = Field(None, min_length=1)
    tenants: list[str] = Field(min_length=1)
    tenant_claim: str = Field("tenant", min_length=1)
    role_claim: str = Field("role", min_length=1)
    limit_claim: str = Field("limit_minor", min_length=1)
    scope_claim: str | None = Field("scope", min_length=1)
    algorithms: list[Algorithm] = Field(["EdDSA", "RS256", "ES256"], min_length=1)
    leeway_seconds: int = Field(60, ge=0, le=300)

    @model_validator(mode="after")
    def _cannot_be_answered_for(self) -> Self:
        for name, address in (("issuer", self.issuer), ("jwks", self.jwks)):
            if address is not None and is_url(address) and not secure(address):
                raise ValueError(
                    f"the {name} {address} is neither https nor on this machine: anyone could answer for it"
                )
        if self.jwks is None and not is_url(self.issuer):
            raise ValueError(f"say where the keys of {self.issuer} are (jwks): it is no URL to be asked for them")
        for tenant in self.tenants:
            token(tenant)
        return self


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or system, as a valid token said. `email` is one that their issuer has verified, `limit_minor` the most
    that they may release, where their issuer sets them a limit of their own."""

    subject: str
    issuer: str
    tenant: str
    role: str
    scopes: frozenset[str]
    token_id: str | None
    expires_at: datetime
    email: str | None = None
    limit_minor: int | None = None

    def may(self, scope: str) -> bool:
        return scope in self.scopes

    def person(self) -> Person:
        return Person(
            subject=self.subject,
            issuer=self.issuer,
            role=self.role,
            token_id=self.token_id,
            limit_minor=self.limit_minor,
        )


class Verifier:
    """Checks tokens against the issuers that we believe."""

    def __init__(self, issuers: list[Issuer], audience: str) -> None:
        self._issuers = {one.issuer: (one, KeySet(one.jwks, issuer=one.issuer)) for one in issuers}
        if len(self._issuers) < len(issuers):
            raise ValueError("An issuer is there twice. Name it once, with all its tenants.")
        self._audience = audience

    def verify(self, text: str) -> Principal:
        """The principal that the token names. Raises InvalidToken, with a reason that its bearer can act on, and Outage
        where its issuer's keys cannot be had. May wait for those, so not for an event loop. Safe in threads."""
        return _principal(*self._claims(text, self._audience))

    def verify_sign_in(self, id_token: str, client: str, nonce: str) -> tuple[str, str]:
        """Issuer and subject of an ID token that was made for this client and this very sign-in, as OpenID Connect Core
        1.0, section 3.1.3.7, asks. Raises as `verify`."""
        claims, issuer = self._claims(id_token, client)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise InvalidToken("The sign-in was begun elsewhere. Sign in again.")
        if claims.get("azp", client) != client or (isinstance(claims["aud"], list) and claims["aud"] != [client]):
            raise InvalidToken("The sign-in was made for another application. Sign in again.")
        return issuer.issuer, str(claims["sub"])

    def _claims(self, text: str, audience: str) -> tuple[dict[str, Any], Issuer]:
        if len(text) > LONGEST:
            raise InvalidToken("The token is too long to be one of ours. Sign in again.")
        try:
            header = jwt.get_unverified_header(text)
            unverified = jwt.decode(text, options={"verify_signature": False})
            known = self._issuers.get(str(unverified.get("iss")))
            if known is None:
                raise InvalidToken("The token's issuer is not one that this system believes. Sign in again.")
            issuer, keys = known
            claims = _checked(text, audience, issuer, keys, header.get("kid"), header.get("alg"))
        except jwt.ExpiredSignatureError as error:
            raise InvalidToken("The token has expired. Sign in again.") from error
        except jwt.PyJWTError as error:
            raise InvalidToken(f"The token is not valid: {error}. Sign in again.") from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidToken("The token cannot be read. Sign in again.") from error
        if not str(claims["sub"]).strip():
            raise InvalidToken("The token says nobody's name (its sub is empty). Sign in again.")
        return claims, issuer


def _checked(
    text: str, audience: str, issuer: Issuer, keys: KeySet, key_id: str | None, algorithm: str | None
) -> dict[str, Any]:
    """The claims, if one of the issuer's keys has signed them and they hold now."""

    def decode(key: jwt.PyJWK | None) -> dict[str, Any]:
        if key is None:
            why = (
                "is signed with a key that its issuer does not publish"
                if key_id is not None
                else "does not name its key (kid), and not exactly one of its issuer's fits"
            )
            raise InvalidToken(f"The token {why}. Sign in again.")
        claims: dict[str, Any] = jwt.decode(
            text,
            key=key,
            algorithms=list(issuer.algorithms),
            audience=audience,
            issuer=issuer.issuer,
            leeway=issuer.leeway_seconds,
            options={"require": ["exp", "iat", "iss", "sub", "aud"]},
        )
        return claims

    found = keys.find(key_id, algorithm)
    try:
        return decode(found)
    except jwt.InvalidSignatureError:
        if key_id is not None or (newer := keys.find(None, algorithm, other_than=found)) is None:
            raise
        return decode(newer)  # the issuer has changed its only key, and the token does not say so


def _words(claimed: object) -> list[str]:
    """The words of a claim that is one text with spaces, or a list of texts; none where it is neither."""
    claimed = claimed if isinstance(claimed, list) else [claimed]
    texts = [text for text in claimed if isinstance(text, str)]
    return " ".join(texts).split() if len(texts) == len(claimed) else []


def _principal(claims: Mapping[str, Any], issuer: Issuer) -> Principal:
    tenant = str(claims.get(issuer.tenant_claim, ""))
    roles = sorted(ROLES.keys() & set(_words(claims.get(issuer.role_claim))))
    try:
        token(tenant)
    except BadToken as error:
        raise InvalidToken("The token names no tenant.") from error
    if tenant not in issuer.tenants:
        raise InvalidToken(f"The token's issuer may not speak for tenant {tenant}.")
    if not roles:
        raise InvalidToken("The token names no role that this system knows.")
    if len(roles) > 1:
        raise InvalidToken(f"The token names several roles ({', '.join(roles)}). Have its issuer name one of them.")
    [role] = roles
    if max(len(str(claims["sub"])), len(str(claims.get("jti", "")))) > LONGEST_NAME:
        raise InvalidToken(f"The token's sub and jti may have {LONGEST_NAME} characters.")
    try:
        expires_at = datetime.fromtimestamp(int(claims["exp"]) + issuer.leeway_seconds, UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidToken("The token's exp is no time.") from error
    scopes = ROLES[role]
    if issuer.scope_claim is not None and issuer.scope_claim in claims:
        scopes &= frozenset(_words(claims[issuer.scope_claim]))
    return Principal(
        subject=str(claims["sub"]),
        issuer=issuer.issuer,
        tenant=tenant,
        role=role,
        scopes=scopes,
        token_id=claims.get("jti"),
        expires_at=expires_at,
        email=str(claims["email"]) if claims.get("email") and claims.get("email_verified") is True else None,
        limit_minor=_limit(claims.get(issuer.limit_claim)),
    )


def _limit(claimed: object) -> int | None:
    """A limit that cannot be understood is no reason to set none."""
    if claimed is None:
        return None
    if isinstance(claimed, bool) or not isinstance(claimed, int) or not 0 <= claimed <= LARGEST_LIMIT:
        raise InvalidToken("The token's own limit is no amount in minor units (a whole number, such as pence).")
    return claimed
