"""The embedded issuer's tokens: for whom, and that they are believed."""

import json
from pathlib import Path

import pytest
from contracts.identity import InvalidToken, Verifier
from contracts.identity import Issuer as Believed
from turngate.issuer import AUDIENCE, ISSUER, Issuer
from turngate.people import STAFF, everybody, tenants_directory


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    issuer = Issuer(tmp_path / "issuer")
    issuer.prepare()
    return issuer


def verifier(issuer: Issuer, *tenants: str) -> Verifier:
    return Verifier([Believed(issuer=ISSUER, jwks=str(issuer.jwks), tenants=list(tenants))], AUDIENCE)


def test_a_token_says_who_it_is_for(issuer: Issuer) -> None:
    for who in STAFF:
        principal = verifier(issuer, "acme", "globex").verify(issuer.issue_to(who))
        assert (principal.subject, principal.tenant, principal.role) == (who.subject, who.tenant, who.role)
        assert principal.may("decide") == (who.role in ("approver", "lead"))


def test_a_token_of_another_issuers_key_is_not_believed(issuer: Issuer, tmp_path: Path) -> None:
    other = Issuer(tmp_path / "other")
    other.prepare()
    with pytest.raises(InvalidToken):
        verifier(issuer, "acme").verify(other.issue_to(STAFF[0]))


def test_a_token_ends(issuer: Issuer) -> None:
    with pytest.raises(InvalidToken, match="expired"):
        verifier(issuer, "acme").verify(issuer.issue("alex", "acme", "operator", lifetime=-70))


def test_the_key_stays_and_its_private_half_is_private(issuer: Issuer) -> None:
    before = issuer.jwks.read_text()
    issuer.prepare()
    assert issuer.jwks.read_text() == before
    assert "d" not in json.loads(before)["keys"][0]
    assert (issuer.home / "private.pem").stat().st_mode & 0o077 == 0


def test_the_customers_of_the_demo_shop_have_tokens_of_their_own() -> None:
    people = everybody(tenants_directory())
    tom = next(who for who in people if who.subject == "cust-C-1004")
    assert (tom.tenant, tom.role, tom.name) == ("acme", "customer", "Tom Whitfield")


def test_a_customers_token_says_their_email(issuer: Issuer) -> None:
    tom = next(who for who in everybody(tenants_directory()) if who.subject == "cust-C-1004")

    principal = verifier(issuer, "acme").verify(issuer.issue_to(tom))

    assert principal.email == tom.email is not None
