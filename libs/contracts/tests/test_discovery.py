"""An issuer without an address for its keys is asked where they are, and believed only about itself."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from contracts.discovery import discover, fetch, secure
from contracts.errors import Outage
from contracts.identity import Issuer, Verifier
from contracts.keys import PAUSE, KeySet
from cryptography.hazmat.primitives.asymmetric import ed25519
from pydantic import ValidationError

Json = dict[str, Any]


class Provider:
    """A provider whose pages a test changes; it counts what is asked of it."""

    def __init__(self) -> None:
        self.pages: dict[str, Json | str] = {}
        self.redirects: dict[str, str] = {}
        self.asked: list[str] = []
        self.url = ""

    def publish(self, **changes: Any) -> None:
        document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"} | changes
        self.pages["/.well-known/openid-configuration"] = document

    def sign_with(self, key_id: str) -> ed25519.Ed25519PrivateKey:
        key = ed25519.Ed25519PrivateKey.generate()
        jwk = json.loads(jwt.get_algorithm_by_name("EdDSA").to_jwk(key.public_key())) | {"kid": key_id, "use": "sig"}
        self.pages["/keys"] = {"keys": [jwk]}
        return key


@contextmanager
def serving(provider: Provider) -> Iterator[None]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            if target := provider.redirects.get(self.path):
                self.send_response(302)
                self.send_header("Location", target)
                self.end_headers()
                return
            page = provider.pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.end_headers()
            self.wfile.write((page if isinstance(page, str) else json.dumps(page)).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    provider = Provider()
    with serving(provider):
        provider.publish()
        yield provider


def signed(key: ed25519.Ed25519PrivateKey, key_id: str, issuer: str) -> str:
    claims = {
        "iss": issuer, "sub": "sam", "aud": "turngate", "iat": 0, "exp": 2**33, "tenant": "acme", "role": "approver",
    }  # fmt: skip
    return jwt.encode(claims, key, "EdDSA", headers={"kid": key_id})


def test_the_keys_of_an_issuer_are_found_by_its_own_document(provider: Provider) -> None:
    key = provider.sign_with("one")
    verifier = Verifier([Issuer(issuer=provider.url, tenants=["acme"])], "turngate")

    assert verifier.verify(signed(key, "one", provider.url)).subject == "sam"
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]


def test_keys_that_have_moved_are_found_again(provider: Provider) -> None:
    now = 1_000.0
    provider.sign_with("one")
    keys = KeySet(None, lambda: now, issuer=provider.url)
    assert keys.find("one") is not None

    provider.sign_with("two")
    provider.pages["/new-keys"] = provider.pages.pop("/keys")
    provider.publish(jwks_uri=f"{provider.url}/new-keys")
    now += PAUSE

    assert keys.find("two") is not None
    assert keys.find("one") is None


@pytest.mark.parametrize(
    "said",
    [
        {"issuer": "https://another.example"},
        {"issuer": None},
        {"jwks_uri": None},
        {"jwks_uri": "http://keys.example/jwks.json"},
        {"jwks_uri": "file:///etc/passwd"},
        {"token_endpoint": "http://login.example/token"},
    ],
    ids=str,
)
def test_a_document_that_is_not_the_issuers_own_is_not_believed(provider: Provider, said: Json) -> None:
    key = provider.sign_with("one")
    provider.publish(**said)
    with pytest.raises(Outage):
        discover(provider.url)
    with pytest.raises(Outage):
        Verifier([Issuer(issuer=provider.url, tenants=["acme"])], "turngate").verify(signed(key, "one", provider.url))


@pytest.mark.parametrize("page", ["", "{", "[]", "7", "x" * 1_000_001], ids=lambda page: page[:5])
def test_what_is_no_document_is_an_outage(provider: Provider, page: str) -> None:
    provider.pages["/.well-known/openid-configuration"] = page
    with pytest.raises(Outage, match="cannot be read"):
        discover(provider.url)


def test_nobody_is_sent_on_to_another_address(provider: Provider) -> None:
    provider.sign_with("one")
    provider.redirects["/moved"] = f"{provider.url}/keys"
    with pytest.raises(OSError, match="302"):
        fetch(f"{provider.url}/moved")


def test_a_document_may_be_read_elsewhere_than_at_the_issuer(provider: Provider) -> None:
    provider.publish(issuer="urn:example:demo")
    assert discover("urn:example:demo", provider.url).jwks_uri == f"{provider.url}/keys"


@pytest.mark.parametrize(
    ("url", "is_secure"),
    [
        ("https://login.example", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000", True),
        ("http://localhost", True),
        ("http://login.example", False),
        ("http://localhost.login.example", False),
        ("http://127.0.0.1.login.example", False),
        ("http://127.0.0.1@login.example", False),
        ("http://10.0.0.1", False),
        ("https://", False),
        ("http://[", False),
        ("file:///etc/passwd", False),
        ("ftp://127.0.0.1", False),
    ],
)
def test_plain_http_stays_on_this_machine(url: str, is_secure: bool) -> None:
    assert secure(url) is is_secure


@pytest.mark.parametrize(
    "wrong",
    [
        {"issuer": "http://login.example"},
        {"jwks": "http://login.example/jwks.json"},
        {"issuer": "urn:example:demo"},
        {"issuer": ""},
        {"tenants": []},
        {"tenants": ["*"]},
        {"algorithms": []},
        {"algorithms": ["HS256"]},
        {"algorithms": ["none"]},
        {"leeway_seconds": 3600},
        {"tenant_claims": "tenant"},
    ],
    ids=str,
)
def test_an_issuer_that_others_could_answer_for_is_not_configured(wrong: Json) -> None:
    with pytest.raises(ValidationError):
        Issuer.model_validate({"issuer": "https://login.example", "tenants": ["acme"]} | wrong)
