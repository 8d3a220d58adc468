"""Signing people in to the console: OpenID Connect's authorization code with PKCE, at the one issuer that is set."""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import quote, urlencode

import httpx
import structlog
from contracts.discovery import Provider, discover
from contracts.errors import Outage
from contracts.identity import InvalidToken, Principal, Verifier

from gateway.problems import Problem
from gateway.settings import Settings
from gateway.tokens import Tokens

logger = structlog.get_logger()
REMEMBERED_SECONDS = 300.0
TIMEOUT = 5.0
# A browser keeps no cookie of more than 4,096 bytes, its name and attributes included.
LONGEST = 3_800


@dataclass(frozen=True)
class Begun:
    """A sign-in under way. Only the browser that began it knows this, in a cookie, so only that one can end it."""

    go_on: str
    state: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def pack(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def unpack(cls, text: str) -> Self | None:
        try:
            known = json.loads(base64.urlsafe_b64decode(text))
            return cls(*(str(known[name]) for name in ("go_on", "state", "nonce", "verifier")))
        except (ValueError, KeyError, TypeError):
            return None

    @property
    def challenge(self) -> str:
        """RFC 7636, S256."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()


class SignIn:
    def __init__(self, settings: Settings, verifier: Verifier, tokens: Tokens) -> None:
        self._client = settings.sign_in_client_id
        self._secret = settings.sign_in_client_secret.get_secret_value() if settings.sign_in_client_secret else ""
        self._issuer = settings.sign_in_issuer or ""
        self._url = settings.sign_in_url
        self._scope = settings.sign_in_scope
        self._audience = settings.audience
        self._verifier = verifier
        self._tokens = tokens
        self._provider: Provider | None = None
        self._asked = 0.0

    @property
    def offered(self) -> bool:
        return self._client is not None

    async def begin(self, begun: Begun, callback: str) -> str:
        """Where the browser goes to say who is there. Raises a 503 while the issuer is away."""
        provider = await self._known()
        asked = {
            "response_type": "code",
            "client_id": self._client,
            "redirect_uri": callback,
            "scope": self._scope,
            "audience": self._audience,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": begun.challenge,
            "code_challenge_method": "S256",
        }
        address = str(provider.authorization_endpoint)
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"

    async def finish(self, begun: Begun, callback: str, code: str, said_issuer: str | None) -> tuple[str, Principal]:
        """The token that the code stands for, and whom it names. Raises a Problem if there is the least doubt."""
        if said_issuer not in (None, self._issuer):  # RFC 9207
            raise Problem(403, "Not signed in", "Another issuer answered than was asked. Nobody was signed in.")
        answer = await self._redeem(begun, callback, code)
        token, id_token = answer.get("access_token"), answer.get("id_token")
        if not isinstance(token, str) or not isinstance(id_token, str):
            raise _unusable("it sent no access_token or no id_token")
        try:
            who = await asyncio.to_thread(self._verifier.verify_sign_in, id_token, str(self._client), begun.nonce)
            principal = await self._tokens.verify(token)
        except InvalidToken as error:
            raise Problem(
                403, "Not signed in", f"The issuer signed you in, but not for this console. {error}"
            ) from error
        if who != (principal.issuer, principal.subject) or who[0] != self._issuer:
            raise Problem(403, "Not signed in", "The issuer's two tokens name two people. Nobody was signed in.")
        if len(token) > LONGEST:
            raise _unusable(f"its token has {len(token):,} characters, and a cookie takes {LONGEST:,}")
        return token, principal

    async def _redeem(self, begun: Begun, callback: str, code: str) -> dict[str, Any]:
        provider = await self._known()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": begun.verifier,
        }
        basic = httpx.BasicAuth(quote(str(self._client), safe=""), quote(self._secret, safe=""))
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT) as client:
                response = await client.post(str(provider.token_endpoint), data=form, auth=basic)
            answer = response.json()
        except httpx.HTTPError as error:
            raise _away(error) from error
        except ValueError as error:
            raise _unusable("its answer cannot be read") from error
        if not isinstance(answer, dict) or response.is_error:
            refusal = answer.get("error") if isinstance(answer, dict) else None
            logger.warning("sign-in refused", status=response.status_code, error=refusal)
            if refusal == "invalid_grant":
                raise Problem(403, "Not signed in", "The sign-in took too long or was used before. Sign in again.")
            raise _unusable("it does not accept this console's client id, secret or address")
        return answer

    async def _known(self) -> Provider:
        if self._provider is None or time.monotonic() - self._asked > REMEMBERED_SECONDS:
            try:
                provider = await asyncio.to_thread(discover, self._issuer, self._url)
            except Outage as error:
                raise _away(error) from error
            if provider.authorization_endpoint is None or provider.token_endpoint is None:
                raise _unusable("it names no address to sign in at")
            self._provider, self._asked = provider, time.monotonic()
        return self._provider


def seconds_of(principal: Principal) -> int:
    """For how long a sign-in may last from now on."""
    return max(0, int((principal.expires_at - datetime.now(UTC)).total_seconds()))


def _away(error: Exception) -> Problem:
    logger.warning("issuer away", error=repr(error))
    return Problem(503, "Sign-in is away", "The issuer of tokens does not answer. Try again in a moment.")


def _unusable(why: str) -> Problem:
    logger.error("issuer unusable", why=why)
    return Problem(
        502,
        "Sign-in failed",
        f"The issuer of tokens cannot be used: {why}. Tell who runs this system; nobody was signed in.",
    )
