"""A token is believed for what its issuer may say, while it is valid, and for nothing more."""

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from contracts.errors import Outage
from contracts.identity import ROLES, InvalidToken, Issuer, Principal, Verifier
from contracts.keys import OLDEST, PAUSE, KeySet
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

ISSUER = "https://issuer.example"
Json = dict[str, Any]


class Signer:
    """A private key and its public half as a JWK."""

    def __init__(self, key_id: str, algorithm: str = "EdDSA") -> None:
        self.key_id, self.algorithm = key_id, algorithm
        self.private: Any = {
            "EdDSA": ed25519.Ed25519PrivateKey.generate,
            "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
            "RS256": lambda: rsa.generate_private_key(65537, 2048),
        }[algorithm]()

    @property
    def jwk(self) -> Json:
        maker = jwt.get_algorithm_by_name(self.algorithm)
        return json.loads(maker.to_jwk(self.private.public_key())) | {"kid": self.key_id, "use": "sig"}

    def sign(self, claims: Json, **header: Any) -> str:
        return jwt.encode(claims, self.private, algorithm=self.algorithm, headers={"kid": self.key_id, **header})


ED, ES, RS = Signer("ed"), Signer("es", "ES256"), Signer("rs", "RS256")
STRANGER = Signer("ed")  # bears the name of ED's key


def claims(**changes: Any) -> Json:
    now = int(time.time())
    plain = {
        "iss": ISSUER, "sub": "sam", "aud": "turngate", "tenant": "acme", "role": "approver", "iat": now - 5,
        "exp": now + 600, "jti": "t-1",
    }  # fmt: skip
    return {name: value for name, value in (plain | changes).items() if value is not None}


def publish(file: Path, *signers: Signer) -> Path:
    file.write_text(json.dumps({"keys": [signer.jwk for signer in signers]}))
    return file


@pytest.fixture(scope="module")
def jwks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(tmp_path_factory.mktemp("issuer") / "jwks.json", ED, ES, RS)


@pytest.fixture(scope="module")
def verifier(jwks: Path) -> Verifier:
    return Verifier([Issuer(issuer=ISSUER, jwks=str(jwks), tenants=["acme", "globex"])], "turngate")


# What is believed


@pytest.mark.parametrize("signer", [ED, ES, RS], ids=lambda signer: signer.algorithm)
def test_a_valid_token_names_its_principal(verifier: Verifier, signer: Signer) -> None:
    valid = claims()
    principal = verifier.verify(signer.sign(valid))
    assert principal == Principal(
        subject="sam",
        issuer=ISSUER,
        tenant="acme",
        role="approver",
        scopes=ROLES["approver"],
        token_id="t-1",
        expires_at=datetime.fromtimestamp(valid["exp"] + 60, UTC),
    )
    assert principal.may("decide")
    assert not principal.may("policy")
    assert principal.person().model_dump(exclude_none=True) == {
        "subject": "sam", "issuer": ISSUER, "role": "approver", "token_id": "t-1"
    }  # fmt: skip


def test_an_issuer_may_call_its_claims_otherwise(jwks: Path) -> None:
    theirs = Issuer(
        issuer=ISSUER,
        jwks=str(jwks),
        tenants=["acme"],
        tenant_claim="https://turngate.example/tenant",
        role_claim="groups",
        limit_claim="ceiling",
        scope_claim=None,
    )
    valid = claims(
        **{"https://turngate.example/tenant": "acme", "groups": "lead", "ceiling": 70_000},
        tenant="globex",
        role="admin",
        limit_minor=1,
        scope="openid profile",
    )
    principal = Verifier([theirs], "turngate").verify(ED.sign(valid))
    assert (principal.tenant, principal.role, principal.limit_minor) == ("acme", "lead", 70_000)
    assert principal.scopes == ROLES["lead"]
    with pytest.raises(InvalidToken):
        Verifier([theirs], "turngate").verify(ED.sign(claims()))


def test_a_person_carries_their_own_limit_into_the_facts(verifier: Verifier) -> None:
    principal = verifier.verify(ED.sign(claims(limit_minor=20_000)))
    assert (principal.limit_minor, principal.person().limit_minor) == (20_000, 20_000)
    assert verifier.verify(ED.sign(claims(limit_minor=0))).limit_minor == 0
    assert verifier.verify(ED.sign(claims())).limit_minor is None


def test_an_issuer_signs_with_the_algorithms_that_were_agreed_only(jwks: Path) -> None:
    only = Verifier([Issuer(issuer=ISSUER, jwks=str(jwks), tenants=["acme"], algorithms=["ES256"])], "turngate")
    assert only.verify(ES.sign(claims()))
    for other in (ED, RS):
        with pytest.raises(InvalidToken, match="alg"):
            only.verify(other.sign(claims()))


def test_an_issuers_clock_may_be_off_by_what_was_agreed(jwks: Path) -> None:
    lenient = Verifier([Issuer(issuer=ISSUER, jwks=str(jwks), tenants=["acme"], leeway_seconds=30)], "turngate")
    now = int(time.time())
    assert lenient.verify(ED.sign(claims(exp=now - 5))).expires_at > datetime.now(UTC)
    assert lenient.verify(ED.sign(claims(nbf=now + 5, iat=now + 5)))
    for wrong in (claims(exp=now - 60), claims(nbf=now + 60)):
        with pytest.raises(InvalidToken):
            lenient.verify(ED.sign(wrong))


def test_an_issuers_clock_may_be_off_by_a_minute_where_nothing_else_was_agreed(verifier: Verifier) -> None:
    now = int(time.time())
    assert verifier.verify(ED.sign(claims(exp=now - 50))).expires_at > datetime.now(UTC)
    assert verifier.verify(ED.sign(claims(nbf=now + 50, iat=now + 50)))
    for wrong in (claims(exp=now - 61), claims(nbf=now + 90), claims(iat=now + 90)):
        with pytest.raises(InvalidToken):
            verifier.verify(ED.sign(wrong))


@pytest.mark.parametrize("signer", [ED, ES, RS], ids=lambda signer: signer.algorithm)
def test_a_token_may_leave_its_key_unnamed_where_exactly_one_fits(verifier: Verifier, signer: Signer) -> None:
    assert verifier.verify(jwt.encode(claims(), signer.private, signer.algorithm)).subject == "sam"


def test_a_token_that_leaves_its_key_unnamed_where_several_fit_is_told_so(tmp_path: Path) -> None:
    for_encryption = Signer("enc").jwk | {"use": "enc"}
    file, two = tmp_path / "jwks.json", [ED, Signer("ed-2")]
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    unnamed = jwt.encode(claims(), ED.private, "EdDSA")

    publish(file, *two)
    with pytest.raises(InvalidToken, match=r"does not name its key \(kid\)"):
        verifier.verify(unnamed)
    assert verifier.verify(ED.sign(claims()))

    nameless = {name: value for name, value in ED.jwk.items() if name != "kid"}
    file.write_text(json.dumps({"keys": [ES.jwk, for_encryption, nameless, RS.jwk]}))
    assert verifier.verify(unnamed)


@pytest.mark.parametrize(
    "claimed", ["lead", ["lead"], ["offline_access", "lead"], "lead uma_authorization", ["lead", "lead"]]
)
def test_the_role_may_be_among_words_or_in_a_list(verifier: Verifier, claimed: Any) -> None:
    assert verifier.verify(ED.sign(claims(role=claimed))).role == "lead"


@given(scopes=st.lists(st.sampled_from(["read", "decide", "policy", "openid"])), as_list=st.booleans())
def test_the_scope_may_be_words_or_a_list(verifier: Verifier, scopes: list[str], as_list: bool) -> None:
    principal = verifier.verify(ED.sign(claims(role="lead", scope=scopes if as_list else " ".join(scopes))))
    assert principal.scopes == ROLES["lead"] & set(scopes)


def test_an_issuer_is_named_once(jwks: Path) -> None:
    twice = [Issuer(issuer=ISSUER, jwks=str(jwks), tenants=[tenant]) for tenant in ("acme", "globex")]
    with pytest.raises(ValueError, match="twice"):
        Verifier(twice, "turngate")


# A sign-in


def id_token(**changes: Any) -> str:
    return ED.sign(claims(**{"aud": "console", "nonce": "n-1"} | changes))


def test_an_id_token_says_who_has_signed_in(verifier: Verifier) -> None:
    assert verifier.verify_sign_in(id_token(), "console", "n-1") == (ISSUER, "sam")
    assert verifier.verify_sign_in(id_token(aud=["console"], azp="console"), "console", "n-1") == (ISSUER, "sam")


@pytest.mark.parametrize(
    "wrong",
    [
        {"nonce": "n-2"},
        {"nonce": None},
        {"nonce": ""},
        {"aud": "turngate"},
        {"aud": ["console", "another"]},
        {"azp": "another"},
        {"iss": "https://evil.example"},
        {"exp": 1},
    ],
    ids=str,
)
def test_an_id_token_of_another_sign_in_signs_nobody_in(verifier: Verifier, wrong: Json) -> None:
    with pytest.raises(InvalidToken):
        verifier.verify_sign_in(id_token(**wrong), "console", "n-1")


def test_an_id_token_is_no_token_for_the_api(verifier: Verifier) -> None:
    with pytest.raises(InvalidToken):
        verifier.verify(id_token())


@pytest.mark.parametrize(
    ("said", "email"),
    [
        ({"email": "sam@mail.example", "email_verified": True}, "sam@mail.example"),
        ({"email": "sam@mail.example"}, None),
        ({"email": "sam@mail.example", "email_verified": False}, None),
        ({"email": "sam@mail.example", "email_verified": "no"}, None),
        ({"email_verified": True}, None),
    ],
)
def test_an_email_is_believed_where_the_issuer_has_verified_it(
    verifier: Verifier, said: Json, email: str | None
) -> None:
    assert verifier.verify(ED.sign(claims(**said))).email == email


@given(role=st.sampled_from(sorted(ROLES)), scopes=st.sets(st.sampled_from(sorted(set().union(*ROLES.values())))))
def test_a_token_narrows_what_its_role_may_and_never_widens_it(verifier: Verifier, role: str, scopes: set[str]) -> None:
    principal = verifier.verify(ED.sign(claims(role=role, scope=" ".join(scopes))))
    assert principal.scopes == ROLES[role] & scopes


@pytest.mark.parametrize(
    "scope", ["", "decide,policy", ["decide", 7], [["decide"]], [], {"decide": True}, 7, "DECIDE", "*"]
)
def test_a_scope_that_is_no_list_of_words_gives_nothing(verifier: Verifier, scope: Any) -> None:
    assert verifier.verify(ED.sign(claims(scope=scope))).scopes == frozenset()


def test_a_scope_raised_by_hand_breaks_the_signature(verifier: Verifier) -> None:
    head, _, signature = ED.sign(claims(role="operator", scope="read")).split(".")
    raised = claims(role="operator", scope="read run decide policy")
    with pytest.raises(InvalidToken):
        verifier.verify(f"{head}.{encoded(raised)}.{signature}")


def test_one_audience_of_many_is_enough(verifier: Verifier) -> None:
    assert verifier.verify(ED.sign(claims(aud=["other", "turngate"]))).subject == "sam"


# What is not


def encoded(document: Json | bytes) -> str:
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def forged(header: Json, body: Json | bytes, signature: str = "") -> str:
    return f"{encoded(header)}.{encoded(body)}.{signature}"


def signed_with_the_public_key() -> str:
    """The old trick: the public key's text as the secret of a symmetric signature."""
    public = RS.private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = f"{encoded({'alg': 'HS256', 'typ': 'JWT', 'kid': 'rs'})}.{encoded(claims())}"
    hmac = jwt.get_algorithm_by_name("HS256")
    return f"{head}.{encoded(hmac.sign(head.encode(), public))}"


def valid_but(**changes: Any) -> str:
    return ED.sign(claims(**changes))


FALSE = {
    "nothing": "",
    "a word": "token",
    "three words": "a.b.c",
    "dots": "...",
    "a lone surrogate": "\ud800.\ud800.\ud800",
    "a very long one": "a" * 100_000,
    "no signature": forged({"alg": "EdDSA", "kid": "ed"}, claims()),
    "alg none": forged({"alg": "none"}, claims()),
    "alg none with a key": forged({"alg": "none", "kid": "ed"}, claims()),
    "alg None": forged({"alg": "None", "kid": "ed"}, claims()),
    "a symmetric signature": signed_with_the_public_key(),
    "another's key of the same name": STRANGER.sign(claims()),
    "another key's name": ED.sign(claims(), kid="es"),
    "another algorithm than the key's": ES.sign(claims(), kid="rs"),
    "an unknown key": Signer("unknown").sign(claims()),
    "no key's name and another's signature": jwt.encode(claims(), STRANGER.private, "EdDSA"),
    "no key's name and a symmetric signature": jwt.encode(claims(), "a secret of thirty-two characters", "HS256"),
    "a key in its own header": STRANGER.sign(claims(), jwk=STRANGER.jwk),
    "a key at its own address": STRANGER.sign(claims(), jku="http://127.0.0.1:1/jwks.json"),
    "a body that is no object": forged({"alg": "EdDSA", "kid": "ed"}, b"[]"),
    "a body without end": forged({"alg": "EdDSA", "kid": "ed"}, b"[" * 5_000),
    "another issuer": valid_but(iss="https://evil.example"),
    "no issuer": valid_but(iss=None),
    "another audience": valid_but(aud="another"),
    "no audience": valid_but(aud=None),
    "expired": valid_but(exp=int(time.time()) - 61),
    "no expiry": valid_but(exp=None),
    "an expiry beyond time": valid_but(exp=10**18),
    "no issue": valid_but(iat=None),
    "not yet valid": valid_but(nbf=int(time.time()) + 86_400),
    "issued tomorrow": valid_but(iat=int(time.time()) + 86_400),
    "nobody": valid_but(sub=None),
    "nobody by an empty name": valid_but(sub=""),
    "nobody by a blank name": valid_but(sub=" "),
    "a very long subject": valid_but(sub="s" * 600),
    "a very long id": valid_but(jti="j" * 600),
    "no tenant": valid_but(tenant=None),
    "another issuer's tenant": valid_but(tenant="initech"),
    "a tenant that is no name": valid_but(tenant="*"),
    "a tenant with a line break": valid_but(tenant="acme\n"),
    "two tenants": valid_but(tenant=["acme", "globex"]),
    "no role": valid_but(role=None),
    "an unknown role": valid_but(role="root"),
    "two roles": valid_but(role=["approver", "lead"]),
    "two roles in one text": valid_but(role="approver lead"),
    "a list of no roles": valid_but(role=["offline_access"]),
    "a role among what is no text": valid_but(role=["lead", 7]),
    "a role in an object": valid_but(role={"lead": True}),
    "a role in capitals": valid_but(role="Lead"),
    "a key's name that is a path": ED.sign(claims(), kid="../../ed"),
    "a key's name that is a query": ED.sign(claims(), kid="ed' or '1'='1"),
    "a key's name that is empty": ED.sign(claims(), kid=""),
    "a limit in words": valid_but(limit_minor="none"),
    "a limit with a fraction": valid_but(limit_minor=0.5),
    "a limit below nothing": valid_but(limit_minor=-1),
    "a limit without end": valid_but(limit_minor=2**53),
    "a limit that is a yes": valid_but(limit_minor=True),
}


@pytest.mark.parametrize("token", FALSE.values(), ids=FALSE.keys())
def test_a_false_token_is_refused_with_a_reason(verifier: Verifier, token: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        verifier.verify(token)
    assert str(refused.value).endswith(".")
    assert "Traceback" not in str(refused.value)


@given(st.text(max_size=200) | st.lists(st.binary(max_size=40), min_size=3, max_size=3).map(
    lambda parts: ".".join(encoded(part) for part in parts)))  # fmt: skip
def test_whatever_is_no_token_is_refused_and_nothing_else_goes_wrong(verifier: Verifier, token: str) -> None:
    with pytest.raises(InvalidToken):
        verifier.verify(token)


@given(st.integers(0, 10_000), st.sampled_from("AZaz09-_"))
def test_a_changed_letter_is_found(verifier: Verifier, position: int, letter: str) -> None:
    valid = ED.sign(claims())
    position %= len(valid)
    changed = valid[:position] + letter + valid[position + 1 :]
    if base64_of(changed) == base64_of(valid):
        return  # the last letter of a part has bits that mean nothing
    with pytest.raises(InvalidToken):
        verifier.verify(changed)


def base64_of(token: str) -> list[bytes]:
    return [base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)) for part in token.split(".")]


def test_an_issuer_speaks_for_its_own_tenants_only(tmp_path: Path) -> None:
    other = Signer("ed")
    ours, theirs = publish(tmp_path / "ours.json", ED), publish(tmp_path / "theirs.json", other)
    verifier = Verifier(
        [
            Issuer(issuer=ISSUER, jwks=str(ours), tenants=["acme"]),
            Issuer(issuer="https://globex.example", jwks=str(theirs), tenants=["globex"]),
        ],
        "turngate",
    )
    assert verifier.verify(other.sign(claims(iss="https://globex.example", tenant="globex"))).tenant == "globex"
    for false in (
        other.sign(claims(iss="https://globex.example", tenant="acme")),
        ED.sign(claims(tenant="globex")),
        other.sign(claims()),
        ED.sign(claims(iss="https://globex.example", tenant="globex")),
    ):
        with pytest.raises(InvalidToken):
            verifier.verify(false)


def test_nobody_is_believed_where_there_is_no_issuer() -> None:
    with pytest.raises(InvalidToken):
        Verifier([], "turngate").verify(ED.sign(claims()))


# Keys that change


def test_a_key_that_is_published_later_is_believed_then_and_a_withdrawn_one_no_more(tmp_path: Path) -> None:
    file = publish(tmp_path / "jwks.json", ED)
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    new = Signer("new")
    assert verifier.verify(ED.sign(claims()))
    with pytest.raises(InvalidToken, match="does not publish"):
        verifier.verify(new.sign(claims()))

    publish(file, ED, new)
    assert verifier.verify(new.sign(claims()))
    assert verifier.verify(ED.sign(claims()))

    publish(file, new)
    assert verifier.verify(new.sign(claims()))
    with pytest.raises(InvalidToken, match="does not publish"):
        verifier.verify(ED.sign(claims()))


def test_a_key_replaced_under_its_name_is_the_new_one(tmp_path: Path) -> None:
    file = publish(tmp_path / "jwks.json", ED)
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    assert verifier.verify(ED.sign(claims()))
    publish(file, STRANGER)
    assert verifier.verify(STRANGER.sign(claims()))
    with pytest.raises(InvalidToken):
        verifier.verify(ED.sign(claims()))


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"keys": []}', '{"keys": 7}', None])
def test_keys_that_cannot_be_read_any_more_are_believed_on(tmp_path: Path, broken: str | None) -> None:
    file = publish(tmp_path / "jwks.json", ED)
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    assert verifier.verify(ED.sign(claims()))
    file.unlink() if broken is None else file.write_text(broken)
    assert verifier.verify(ED.sign(claims()))


def test_keys_that_could_never_be_read_are_an_outage_and_not_the_bearers_fault(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    with pytest.raises(Outage, match="keys"):
        verifier.verify(ED.sign(claims()))
    publish(file, ED)
    assert verifier.verify(ED.sign(claims()))


def test_a_key_for_encryption_signs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [ED.jwk | {"use": "enc"}, ES.jwk]}))
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    assert verifier.verify(ES.sign(claims()))
    with pytest.raises(InvalidToken):
        verifier.verify(ED.sign(claims()))


def test_a_symmetric_key_in_the_set_signs_nothing(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    secret = encoded(b"a secret of thirty-two characters")
    file.write_text(json.dumps({"keys": [ED.jwk, {"kty": "oct", "k": secret, "kid": "hs", "alg": "HS256"}]}))
    verifier = Verifier([Issuer(issuer=ISSUER, jwks=str(file), tenants=["acme"])], "turngate")
    token = jwt.encode(claims(), b"a secret of thirty-two characters", "HS256", headers={"kid": "hs"})
    with pytest.raises(InvalidToken):
        verifier.verify(token)


class Published:
    """An issuer's key address that counts how often it is asked."""

    def __init__(self) -> None:
        self.keys: list[Json] = [ED.jwk]
        self.up = True
        self.asked = 0


@contextmanager
def served(published: Published) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            published.asked += 1
            self.send_response(200 if published.up else 503)
            self.end_headers()
            self.wfile.write(json.dumps({"keys": published.keys}).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/jwks.json"
    finally:
        server.shutdown()
        server.server_close()


class Hand:
    """A clock that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_of_unknown_keys_is_one_fetch_a_pause() -> None:
    published, clock = Published(), Hand()
    with served(published) as url:
        keys = KeySet(url, clock)
        assert keys.find("ed") is not None
        with ThreadPoolExecutor(16) as threads:
            assert set(threads.map(keys.find, [f"unknown-{n}" for n in range(500)])) == {None}
        assert published.asked == 1

        published.keys.append(Signer("new").jwk)
        clock.now += PAUSE
        assert keys.find("new") is not None
        assert published.asked == 2
        for _ in range(3):
            clock.now += PAUSE
            with ThreadPoolExecutor(16) as threads:
                list(threads.map(keys.find, [f"unknown-{n}" for n in range(100)]))
        assert published.asked == 5


def test_known_keys_cost_no_fetch_until_they_are_old_and_a_withdrawn_one_goes_then() -> None:
    published, clock = Published(), Hand()
    with served(published) as url:
        keys = KeySet(url, clock)
        for _ in range(20):
            assert keys.find("ed") is not None
            clock.now += OLDEST / 20
        assert published.asked == 1
        published.keys = [ES.jwk]
        clock.now += 1
        assert keys.find("ed") is None
        assert published.asked == 2


def test_an_issuer_that_is_down_is_asked_once_a_pause_and_its_known_keys_are_believed_on() -> None:
    published, clock = Published(), Hand()
    with served(published) as url:
        keys = KeySet(url, clock)
        assert keys.find("ed") is not None
        published.up = False
        clock.now += OLDEST + 1
        for _ in range(50):
            assert keys.find("ed") is not None
            assert keys.find("unknown") is None
        assert published.asked == 2


def test_a_new_key_is_found_by_a_token_that_names_none_once_the_old_one_does_not_fit() -> None:
    published, clock = Published(), Hand()
    published.keys = [ED.jwk]
    with served(published) as url:
        keys = KeySet(url, clock)
        old = keys.find(None, "EdDSA")
        assert old is not None
        published.keys = [Signer("new").jwk]
        assert keys.find(None, "EdDSA", other_than=old) is None
        assert published.asked == 1, "one fetch a pause has to do"
        clock.now += PAUSE
        new = keys.find(None, "EdDSA", other_than=old)
        assert new is not None
        assert new.key_id == "new"
        assert keys.find(None, "ES256") is None


def test_an_issuer_that_was_never_up_is_an_outage() -> None:
    published, clock = Published(), Hand()
    published.up = False
    with served(published) as url:
        keys = KeySet(url, clock)
        for _ in range(5):
            with pytest.raises(Outage):
                keys.find("ed")
        assert published.asked == 1
        published.up = True
        clock.now += PAUSE
        assert keys.find("ed") is not None


# Roles


def test_no_role_may_what_is_anothers_by_accident() -> None:
    assert ROLES["approver"] < ROLES["lead"]
    assert ROLES["customer"] == {"chat"}
    assert [role for role, scopes in ROLES.items() if "speak" in scopes and "decide" in scopes] == []
    assert not ROLES["auditor"] & {"run", "cancel", "decide", "take_over", "policy", "limits", "stop", "erase"}
    assert not ROLES["admin"] & {"decide", "run", "policy", "limits"}
