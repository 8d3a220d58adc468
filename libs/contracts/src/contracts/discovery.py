"""What an OpenID provider publishes about itself, fetched from nowhere else than where it was said to be."""

from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, build_opener

from pydantic import BaseModel, ValidationError

from contracts.errors import Outage
from contracts.strict import parse_json

TIMEOUT = 5.0
LONGEST = 1_000_000  # bytes of a document
PATH = "/.well-known/openid-configuration"


class Provider(BaseModel):
    """The part of the discovery document (OpenID Connect Discovery 1.0, section 3) that is used here."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str | None = None
    token_endpoint: str | None = None
    end_session_endpoint: str | None = None


def discover(issuer: str, at: str | None = None) -> Provider:
    """What the issuer says of itself, read below its own address, or below `at`. Raises Outage where it cannot be had,
    speaks for another issuer, or names an address that others could answer for. Waits, so not for an event loop."""
    url = (at or issuer).rstrip("/") + PATH
    try:
        provider = Provider.model_validate(fetch(url))
    except (OSError, ValueError) as error:
        told = "it is no discovery document" if isinstance(error, ValidationError) else repr(error)
        raise Outage(f"What the issuer says of itself ({url}) cannot be read: {told}.") from error
    if provider.issuer != issuer:
        raise Outage(f"{url} speaks for the issuer {provider.issuer}, not for {issuer}. Nothing of it is believed.")
    for address in (provider.jwks_uri, provider.authorization_endpoint, provider.token_endpoint):
        if address is not None and not secure(address):
            raise Outage(
                f"{url} names {address}, which is neither https nor on this machine. Nothing of it is believed."
            )
    return provider


def fetch(url: str) -> Any:
    """The JSON at a URL. Raises OSError or ValueError. Follows no redirect: an address is a part of what is trusted."""
    with _opener.open(url, timeout=TIMEOUT) as answer:
        text = answer.read(LONGEST + 1)
    if len(text) > LONGEST:
        raise ValueError(f"{url} answers with more than {LONGEST:,} bytes")
    return parse_json(text)


def is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def secure(url: str) -> bool:
    """Whether nobody on the way can answer instead: https, or http that does not leave this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and loopback(host)))


def loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Stay(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


_opener = build_opener(_Stay)
