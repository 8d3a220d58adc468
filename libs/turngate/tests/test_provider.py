"""The embedded issuer over HTTP: signs the demo's people in to the console, and gives nothing to web pages."""

import html
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from contracts.identity import InvalidToken, Verifier
from contracts.identity import Issuer as Believed
from starlette.testclient import TestClient
from turngate.entrance import Entrance
from turngate.issuer import AUDIENCE, CLIENT, CLIENT_SECRET, ISSUER, Issuer
from turngate.people import everybody, tenants_directory
from turngate.provider import app, challenge_of, is_callback, main

SECRET = "a secret"
CONSOLE = "http://127.0.0.1:8100/sign-in/done"
VERIFIER = "v" * 43
ASKED = {
    "client_id": CLIENT, "redirect_uri": CONSOLE, "response_type": "code", "scope": "openid", "state": "s-1",
    "nonce": "n-1", "code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256",
}  # fmt: skip
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def issuer(tmp_path: Path) -> Issuer:
    issuer = Issuer(tmp_path / "issuer")
    issuer.prepare()
    return issuer


@pytest.fixture
def client(issuer: Issuer) -> TestClient:
    """Of the owner of the data directory, who has opened the link."""
    client = other_account(issuer)
    assert client.get("/enter", params={"key": issuer.secret}).status_code == 303
    client.headers["Authorization"] = f"Bearer {issuer.secret}"
    return client


def other_account(issuer: Issuer) -> TestClient:
    """Of anybody else who reaches the port."""
    application = app(issuer, everybody(tenants_directory()), SECRET, "http://127.0.0.1:8100")
    return TestClient(application, base_url="http://127.0.0.1:7000", follow_redirects=False)


@pytest.fixture
def verifier(issuer: Issuer) -> Verifier:
    return Verifier([Believed(issuer=ISSUER, jwks=str(issuer.jwks), tenants=["acme", "globex"])], AUDIENCE)


def choose(client: TestClient, person: str = "sam", **changes: str) -> httpx.Response:
    form = ASKED | {"as": person, "tenant": "acme"} | changes
    answer: httpx.Response = client.post("/authorize", data=form, headers=OWN_PAGE)
    return answer


def code_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return parse_qs(urlsplit(answer.headers["location"]).query)["code"][0]


def redeem(client: TestClient, code: str, auth: tuple[str, str] = (CLIENT, SECRET), **changes: str) -> httpx.Response:
    form = {
        "grant_type": "authorization_code", "code": code, "redirect_uri": CONSOLE, "code_verifier": VERIFIER
    } | changes  # fmt: skip
    answer: httpx.Response = client.post("/token", data=form, auth=auth)
    return answer


def test_a_person_is_chosen_and_signed_in(client: TestClient, verifier: Verifier) -> None:
    page = client.get("/authorize", params=ASKED)
    assert page.status_code == 200
    assert "Sam" in page.text
    assert "Tom Whitfield" not in page.text, "customers have no console"

    back = choose(client)
    assert back.headers["location"].startswith(f"{CONSOLE}?")
    said = parse_qs(urlsplit(back.headers["location"]).query)
    assert (said["state"], said["iss"]) == (["s-1"], [ISSUER])

    answer = redeem(client, said["code"][0])
    tokens = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert verifier.verify_sign_in(tokens["id_token"], CLIENT, "n-1") == (ISSUER, "sam")
    assert verifier.verify(tokens["access_token"]).role == "approver"
    with pytest.raises(InvalidToken):
        verifier.verify(tokens["id_token"])


def test_it_says_of_itself_where_everything_is(client: TestClient) -> None:
    document = client.get("/.well-known/openid-configuration").json()
    assert document["issuer"] == ISSUER
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        assert document[name].startswith("http://127.0.0.1:7000/")
    assert client.get(document["jwks_uri"]).json()["keys"][0]["alg"] == "EdDSA"


def test_a_code_is_good_once(client: TestClient) -> None:
    code = code_of(choose(client))
    assert redeem(client, code).status_code == 200
    assert redeem(client, code).json()["error"] == "invalid_grant"


def test_a_code_is_good_for_a_minute(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turngate.provider.CODE_SECONDS", 0)
    assert redeem(client, code_of(choose(client))).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code": "another"}, "invalid_grant"),
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:9000/sign-in/done"}, "invalid_grant"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
    ids=str,
)
def test_a_code_is_for_who_asked_for_it(client: TestClient, changes: dict[str, str], error: str) -> None:
    answer = redeem(client, **({"code": code_of(choose(client))} | changes))  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize("auth", [(CLIENT, "wrong"), ("another", SECRET), (CLIENT, "")])
def test_a_code_is_for_the_console_alone(client: TestClient, auth: tuple[str, str]) -> None:
    code = code_of(choose(client))
    answer = redeem(client, code, auth)
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert redeem(client, code).status_code == 200, "who may not redeem it cannot use it up either"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "profile"}, "invalid_scope"),
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"state": ""}, "invalid_request"),
    ],
    ids=str,
)
def test_an_incomplete_request_is_sent_back(client: TestClient, changes: dict[str, str], error: str) -> None:
    for answer in (client.get("/authorize", params=ASKED | changes), choose(client, **changes)):
        assert answer.status_code == 303
        assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == [error]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "https://evil.example/sign-in/done",
        "http://evil.example/sign-in/done",
        "http://127.0.0.1.evil.example:80/sign-in/done",
        "http://127.0.0.1:8100@evil.example/sign-in/done",
        "http://someone@127.0.0.1:8100/sign-in/done",
        "http://127.0.0.1:8100/elsewhere",
        "http://127.0.0.1:8100/sign-in/done?next=//evil.example",
        "http://127.0.0.1:8100/sign-in/done#x",
        "http://127.0.0.1:x/sign-in/done",
        "javascript:alert(1)",
        "//127.0.0.1:8100/sign-in/done",
    ],
)
def test_nobody_is_sent_anywhere_else_than_to_a_console_of_this_machine(client: TestClient, uri: str) -> None:
    for answer in (client.get("/authorize", params=ASKED | {"redirect_uri": uri}), choose(client, redirect_uri=uri)):
        assert answer.status_code == 400
        assert "location" not in answer.headers


def test_a_console_may_be_on_any_port_of_this_machine() -> None:
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert is_callback(f"http://{host}:12345/sign-in/done")


def test_another_client_is_not_served(client: TestClient) -> None:
    assert client.get("/authorize", params=ASKED | {"client_id": "another"}).status_code == 400


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"}],
    ids=str,
)
def test_no_other_page_chooses(client: TestClient, headers: dict[str, str]) -> None:
    answer = client.post("/authorize", data=ASKED | {"as": "ada", "tenant": "acme"}, headers=headers)
    assert answer.status_code == 403
    assert "location" not in answer.headers


def test_what_was_asked_is_handed_on_unchanged_and_inert(client: TestClient) -> None:
    page = client.get("/authorize", params=ASKED | {"state": '"><script>alert(1)</script>'})
    assert "<script>" not in page.text
    [state] = {html.unescape(value) for value in re.findall(r'name="state" value="([^"]*)"', page.text)}
    assert state == '"><script>alert(1)</script>'
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:8100;" in policy


# Who is let in

HOUR = 3600


@pytest.mark.parametrize("key", ["", "wrong", "é", "\ud800", None])
def test_without_the_secret_of_the_data_directory_nobody_gets_anything(issuer: Issuer, key: str | None) -> None:
    client = other_account(issuer)
    params = {} if key is None else {"key": key.encode(errors="replace")}
    entered = client.get("/enter", params=params)
    bearer = {} if key is None else {"Authorization": b"Bearer " + key.encode(errors="replace")}
    with_a_cookie = {"Cookie": f"{Entrance(issuer.secret).cookie}=99999999999.{'0' * 64}"}

    assert entered.status_code == 403
    assert "set-cookie" not in entered.headers
    for headers in ({}, with_a_cookie):
        assert client.get("/authorize", params=ASKED, headers=headers).status_code == 403
        chosen = client.post("/authorize", data=ASKED | {"as": "sam", "tenant": "acme"}, headers=headers | OWN_PAGE)
        assert chosen.status_code == 403
        assert "location" not in chosen.headers
        assert "Sam" not in client.get("/authorize", params=ASKED, headers=headers).text
    for answer in (
        client.post("/token", json={"as": "sam", "tenant": "acme"}, headers=bearer),
        client.post("/token", json={"as": "mallory"}, headers=bearer),
        client.get("/people", headers=bearer),
    ):
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert "access_token" not in answer.text
        assert "alex" not in answer.text


def test_the_link_leaves_its_secret_nowhere_and_leads_to_the_console(issuer: Issuer) -> None:
    client = other_account(issuer)
    entered = client.get("/enter", params={"key": issuer.secret})

    assert (entered.status_code, entered.headers["location"]) == (303, "http://127.0.0.1:8100")
    assert (entered.headers["cache-control"], entered.headers["referrer-policy"]) == ("no-store", "no-referrer")
    cookie = entered.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/authorize"} <= set(cookie.split("; "))
    assert "Domain" not in cookie
    assert issuer.secret not in f"{entered.headers} {entered.text}"
    assert "Sam" in client.get("/authorize", params=ASKED).text
    # the cookie opens the page and nothing else
    assert client.post("/token", json={"as": "sam"}, headers={"Cookie": cookie}).status_code == 401


def test_the_cookie_of_the_entrance_ends_and_cannot_be_prolonged() -> None:
    now = 1_000_000.0
    entrance = Entrance("a secret", lambda: now)
    kept = entrance.cookie_value()
    until, _, signature = kept.partition(".")

    assert entrance.is_open_to(kept)
    assert not entrance.is_open_to(f"{int(until) + 1}.{signature}")
    assert not Entrance("another", lambda: now).is_open_to(kept)
    for false in ("", ".", until, f"{until}.", f".{signature}", "x.y", "\ud800.\ud800"):
        assert not entrance.is_open_to(false)
    now += 12 * HOUR
    assert not entrance.is_open_to(kept)


def test_the_secret_is_its_owners_alone_the_same_at_every_start_and_renewed_once_others_could_read_it(
    issuer: Issuer,
) -> None:
    first, file = issuer.secret, issuer.home / "secret"
    assert len(first) >= 40
    assert file.stat().st_mode & 0o777 == 0o600
    issuer.prepare()
    assert issuer.secret == first
    file.chmod(0o640)
    issuer.prepare()
    assert issuer.secret != first
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_issuer_names_the_address_where_it_listens_whatever_a_caller_calls_it(issuer: Issuer) -> None:
    client = other_account(issuer)
    document = client.get("/.well-known/openid-configuration", headers={"Host": "localhost:9999"}).json()
    assert document["token_endpoint"] == "http://127.0.0.1:7000/token"


# The command line's way


def test_programs_of_this_machine_get_a_token_by_name(client: TestClient, verifier: Verifier) -> None:
    given = client.post("/token", json={"as": "sam", "tenant": "acme"}).json()
    assert verifier.verify(given["access_token"]).role == "approver"
    assert {"as": "sam", "tenant": "acme", "role": "approver"}.items() <= client.get("/people").json()["people"][
        1
    ].items()
    refused = client.post("/token", json={"as": "mallory"})
    assert refused.status_code == 404
    assert "alex (acme)" in refused.json()["detail"]
    assert client.post("/token", content=b'{"as": "sam"}', auth=(CLIENT, "false")).status_code == 401
    assert client.post("/token", json=["sam"]).status_code == 400


@pytest.mark.parametrize("headers", [{"Origin": "http://127.0.0.1:7000"}, {"Sec-Fetch-Site": "none"}], ids=str)
def test_no_web_page_gets_a_token(client: TestClient, headers: dict[str, str]) -> None:
    for answer in (
        client.post("/token", json={"as": "sam", "tenant": "acme"}, headers=headers),
        client.post("/token", content=b'{"as": "sam"}', headers=headers | {"Content-Type": "text/plain"}),
        client.post("/token", data={"as": "sam"}, headers=headers),
    ):
        assert answer.status_code == 403
        assert "access_token" not in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7000", "127.0.0.1.evil.example", "10.0.0.1"])
def test_a_web_page_that_points_its_own_name_here_gets_nothing(issuer: Issuer, host: str) -> None:
    client = TestClient(app(issuer, everybody(tenants_directory()), SECRET), base_url=f"http://{host}")
    for path in ("/people", "/.well-known/openid-configuration", "/authorize"):
        assert client.get(path).status_code == 400
    assert client.post("/token", json={"as": "sam", "tenant": "acme"}).status_code == 400


def test_it_does_not_serve_beside_a_real_issuer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TURNGATE_ISSUERS", '[{"issuer": "https://login.example"}]')
    monkeypatch.setenv(CLIENT_SECRET, SECRET)
    monkeypatch.setattr("sys.argv", ["issuer", "--home", str(tmp_path), "--tenants", str(tmp_path), "--port", "1"])
    with pytest.raises(SystemExit, match="issued elsewhere"):
        main()


def test_it_does_not_serve_without_a_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TURNGATE_ISSUERS", raising=False)
    monkeypatch.delenv(CLIENT_SECRET, raising=False)
    monkeypatch.setattr("sys.argv", ["issuer", "--home", str(tmp_path), "--tenants", str(tmp_path), "--port", "1"])
    with pytest.raises(SystemExit, match=CLIENT_SECRET):
        main()
