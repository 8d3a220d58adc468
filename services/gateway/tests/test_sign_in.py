"""In and out of the console: by the issuer, for one browser, until somebody signs out or the token ends."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from contracts.identity import Issuer as Believed
from gateway.console.pages import inside
from gateway.database import open_pool
from gateway.settings import Settings
from gateway.signed_out import SignedOut
from pydantic import SecretStr, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from turngate.issuer import CLIENT, ISSUER, Issuer

from .conftest import PEOPLE, SECRET, World, free_port, gateway, serving
from .facts import started, story_to_the_hold

pytestmark = pytest.mark.timeout(60)
BROWSER = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
STREAM = {"Accept": "text/event-stream"}


@asynccontextmanager
async def browser(world: World, person: str | None = None, url: str = "") -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url or world.url, headers=BROWSER, timeout=20) as client:
        if person:
            assert (await world.sign_in(client, person)).status_code == 303
        yield client


# In


async def test_who_is_not_signed_in_is_led_there_and_back(world: World) -> None:
    async with browser(world) as nobody:
        led = await nobody.get("/approvals?x=1")
        assert (led.status_code, led.headers["location"]) == (303, "/sign-in?next=/approvals%3Fx%3D1")
        issuer = (await nobody.get(led.headers["location"])).headers["location"]
        assert issuer.startswith(f"{world.sign_in_url}/authorize?")
        assert "Alex" in (await nobody.get(issuer)).text
        back = await world.sign_in(nobody, "sam", go_on="/approvals?x=1")
        assert (back.status_code, back.headers["location"]) == (303, "/approvals?x=1")
        assert (await nobody.get("/approvals?x=1")).status_code == 200


async def test_a_plain_client_that_follows_the_console_reaches_the_sign_in(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.url, follow_redirects=True, trust_env=False) as client:
        answer = await client.get("/")
        assert (answer.status_code, answer.url.path) == (200, "/authorize")
        # a page's own fetch is told, not led away
        fetched = await client.get("/tickets", headers={"Sec-Fetch-Mode": "cors"}, follow_redirects=False)
        assert fetched.status_code == 401


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(world: World) -> None:
    async with browser(world) as client:
        answer = await world.sign_in(client, "sam")
    for cookie in answer.headers.get_list("set-cookie"):
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie


async def test_over_https_the_cookies_are_for_https_and_this_host_alone(world: World) -> None:
    settings = world.settings.model_copy(
        update={"http_port": free_port(), "health_port": None, "console_url": "https://console.example"}
    )
    token = world.token("sam")
    async with gateway(settings), browser(world, url=f"http://127.0.0.1:{settings.http_port}") as client:
        led = await client.get("/sign-in")
        callback = httpx.URL(led.headers["location"]).params["redirect_uri"]
        assert callback == "https://console.example/sign-in/done"
        cookie = led.headers["set-cookie"]
        assert cookie.startswith("__Host-turngate_sign_in_")
        assert "Secure" in cookie

        for name, status in (("turngate_session", 303), ("__Host-turngate_session", 200)):
            headers = {"Cookie": f"{name}={token}"}
            assert (await client.get("/tickets", headers=headers)).status_code == status

        headers |= {"Origin": "http://console.example", "Sec-Fetch-Site": ""}
        del client.headers["Sec-Fetch-Site"]
        form = {"Cookie": headers["Cookie"]}
        await world.ticket()
        for origin, status in (("http://console.example", 403), ("https://console.example", 303)):
            answer = await client.post("/tickets/TCK-2004/runs", headers=form | {"Origin": origin})
            assert answer.status_code == status


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb"])
def test_the_way_back_leads_nowhere_else(path: str) -> None:
    assert inside(path) == "/tickets"


async def test_nobody_signs_in_as_someone_unknown(world: World) -> None:
    async with browser(world) as client:
        unknown = await world.choose(client, "mallory")
    assert unknown.status_code == 404
    assert "location" not in unknown.headers


async def test_there_is_no_other_way_in(world: World) -> None:
    async with browser(world) as client:
        answer = await client.post("/sign-in", data={"as": "sam", "tenant": "acme"})
    assert answer.status_code == 405
    assert "set-cookie" not in answer.headers


async def refused(answer: httpx.Response, status: int = 403) -> str:
    assert answer.status_code == status, answer.text
    assert not [cookie for cookie in answer.headers.get_list("set-cookie") if "turngate_session" in cookie]
    return answer.text


async def test_a_link_that_someone_else_began_signs_nobody_in(world: World) -> None:
    async with browser(world) as attacker, browser(world) as victim:
        link = (await world.choose(attacker, "sam")).headers["location"]
        await refused(await victim.get(link))

        own = httpx.URL((await victim.get("/sign-in")).headers["location"]).params["state"]
        await refused(await victim.get(link))
        code = httpx.URL(link).params["code"]
        page = await refused(await victim.get("/sign-in/done", params={"code": code, "state": own[:-1] + "!"}))
        assert "was not begun here" in page
        await refused(await victim.get("/sign-in/done", params={"code": code, "state": own}))


async def test_a_stolen_code_is_worth_nothing_in_another_browser(world: World) -> None:
    async with browser(world) as victim, browser(world) as thief:
        stolen = httpx.URL((await world.choose(victim, "lee")).headers["location"]).params["code"]
        own = httpx.URL((await world.choose(thief, "alex")).headers["location"])
        assert "Not signed in" in await refused(await thief.get(str(own.copy_set_param("code", stolen))))
        # a code is good once, and the thief has used it up
        assert (await victim.get("/tickets")).status_code == 303


async def test_an_answer_is_taken_once(world: World) -> None:
    async with browser(world) as client:
        link = (await world.choose(client, "sam")).headers["location"]
        assert (await client.get(link)).status_code == 303
        await refused(await client.get(link))


async def test_several_tabs_sign_in_side_by_side_and_each_gets_to_its_own_page(world: World) -> None:
    async with browser(world) as client:
        links = [(await world.choose(client, "sam", go_on=f"/tickets?x={n}")).headers["location"] for n in range(5)]
        for number, link in reversed(list(enumerate(links))):
            assert (await client.get(link)).headers["location"] == f"/tickets?x={number}"


async def test_sign_ins_that_are_never_ended_do_not_pile_up(world: World) -> None:
    async with browser(world) as client:
        for _ in range(30):
            assert (await client.get("/sign-in")).status_code == 303
        assert len(client.cookies) == 5


async def test_what_the_issuer_refuses_is_said(world: World) -> None:
    async with browser(world) as client:
        state = httpx.URL((await client.get("/sign-in")).headers["location"]).params["state"]
        answer = await client.get("/sign-in/done", params={"state": state, "error": "<b>access_denied</b>"})
    assert "&lt;b&gt;access_denied" in await refused(answer)


# What an issuer may get wrong


class Pretender:
    """Answers in the issuer's place with whatever a test says."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.answer: dict[str, Any] | Response = {}
        self.name = ISSUER
        self.asked: list[dict[str, Any]] = []

    def app(self) -> Starlette:
        async def discovery(request: Request) -> Response:
            here = f"http://{request.headers['host']}"
            return JSONResponse(
                {"issuer": self.name, "jwks_uri": f"{here}/keys"}
                | {f"{what}_endpoint": f"{here}/{what}" for what in ("authorization", "token")}
            )

        async def token(request: Request) -> Response:
            self.asked.append({**(await request.form()), "authorization": request.headers["authorization"]})
            return self.answer if isinstance(self.answer, Response) else JSONResponse(self.answer)

        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", discovery),
                Route("/token", token, methods=["POST"]),
            ]
        )


@asynccontextmanager
async def pretending(world: World, tmp_path: Path) -> AsyncIterator[tuple[Pretender, httpx.AsyncClient]]:
    pretender = Pretender(Issuer(tmp_path / "issuer"))
    async with serving(pretender.app()) as url:
        settings = world.settings.model_copy(update={"http_port": free_port(), "sign_in_url": url})
        async with gateway(settings), browser(world, url=f"http://127.0.0.1:{settings.http_port}") as client:
            yield pretender, client


async def begun(client: httpx.AsyncClient) -> httpx.QueryParams:
    return httpx.URL((await client.get("/sign-in")).headers["location"]).params


async def come_back(client: httpx.AsyncClient, asked: httpx.QueryParams, **more: str) -> httpx.Response:
    return await client.get("/sign-in/done", params={"state": asked["state"], "code": "c-1", **more})


async def test_whom_the_issuers_tokens_do_not_agree_upon_is_not_signed_in(world: World, tmp_path: Path) -> None:
    async with pretending(world, tmp_path) as (pretender, client):
        issuer, sam, lee = pretender.issuer, PEOPLE["sam"], PEOPLE["lee"]

        def tokens(nonce: str, **other: Any) -> dict[str, Any]:
            right = {"access_token": issuer.issue_to(sam), "id_token": issuer.identify(sam, CLIENT, nonce)}
            return {name: value for name, value in (right | other).items() if value is not None}

        wrong: dict[str, tuple[Callable[[str], Any], int]] = {
            "of another sign-in": (lambda n: tokens(n, id_token=issuer.identify(sam, CLIENT, "another")), 403),
            "of no sign-in": (lambda n: tokens(n, id_token=issuer.identify(sam, CLIENT, None)), 403),
            "for another client": (lambda n: tokens(n, id_token=issuer.identify(sam, "another", n)), 403),
            "an access token as ID token": (lambda n: tokens(n, id_token=issuer.issue_to(sam)), 403),
            "an ID token as access token": (lambda n: tokens(n, access_token=issuer.identify(sam, CLIENT, n)), 403),
            "of two people": (lambda n: tokens(n, access_token=issuer.issue_to(lee)), 403),
            "expired": (lambda n: tokens(n, access_token=issuer.issue("sam", "acme", "lead", lifetime=-9)), 403),
            "of another's tenant": (lambda n: tokens(n, access_token=issuer.issue("sam", "initech", "lead")), 403),
            "no ID token": (lambda n: tokens(n, id_token=None), 502),
            "no access token": (lambda n: tokens(n, access_token=None), 502),
            "no words": (lambda n: tokens(n, access_token=7), 502),
            "too long": (lambda n: tokens(n, access_token=issuer.issue("sam", "acme", "lead", x="x" * 4000)), 502),
            "no object": (lambda _: JSONResponse([]), 502),
            "a page": (lambda _: PlainTextResponse("hello"), 502),
            "a failure": (lambda _: PlainTextResponse("sorry", 500), 502),
            "a refusal": (lambda _: JSONResponse({"error": "invalid_client"}, 401), 502),
            "a refused code": (lambda _: JSONResponse({"error": "invalid_grant"}, 400), 403),
            "elsewhere": (lambda _: Response(status_code=302, headers={"location": world.sign_in_url}), 502),
        }
        for what, (answer, status) in wrong.items():
            asked = await begun(client)
            pretender.answer = answer(asked["nonce"])
            assert "signed in" in await refused(await come_back(client, asked), status), what

        for said, status in (("https://evil.example", 403), (ISSUER, 303)):
            asked = await begun(client)
            pretender.answer = tokens(asked["nonce"])
            assert (await come_back(client, asked, iss=said)).status_code == status


async def test_the_console_proves_that_it_is_the_one_that_asked(world: World, tmp_path: Path) -> None:
    async with pretending(world, tmp_path) as (pretender, client):
        asked = await begun(client)
        await come_back(client, asked)
        [sent] = pretender.asked
        assert sent["grant_type"] == "authorization_code"
        assert sent["redirect_uri"] == asked["redirect_uri"]
        assert sent["authorization"] == httpx.BasicAuth(CLIENT, SECRET.replace(" ", "%20"))._auth_header
        assert asked["code_challenge_method"] == "S256"
        assert len(sent["code_verifier"]) >= 43
        assert sent["code_verifier"] not in str(asked)


async def test_an_issuer_that_is_away_or_another_is_said_to_be_away(world: World, tmp_path: Path) -> None:
    async with pretending(world, tmp_path) as (pretender, client):
        pretender.name = "https://another.example"
        page = await client.get("/sign-in")
    assert "Sign-in is away" in await refused(page, 503)


# Out


async def ends(stream: httpx.Response) -> None:
    async for _ in stream.aiter_bytes():
        pass


async def test_signing_out_ends_every_stream_of_that_sign_in_at_once(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    paths = ("/v1/events", "/v1/runs/TCK-2004-1/events", "/console/stream/inbox", "/console/stream/runs/TCK-2004-1")
    async with browser(world, "sam") as sam, browser(world, "sam") as elsewhere:
        async with sam.stream("GET", "/v1/events", headers=STREAM) as first:
            others = [sam.build_request("GET", path, headers=STREAM) for path in paths[1:]]
            streams = [first, *[await sam.send(request, stream=True) for request in others]]
            async with elsewhere.stream("GET", "/v1/events", headers=STREAM) as kept:
                reading = [asyncio.create_task(ends(stream)) for stream in streams]
                still = asyncio.create_task(ends(kept))
                begun_at = time.monotonic()
                answer = await sam.post("/sign-out")
                await asyncio.wait_for(asyncio.gather(*reading), 0.9)  # sooner than a heartbeat
                assert time.monotonic() - begun_at < 0.9
                assert not still.done()
                still.cancel()
                await asyncio.wait([still])
        assert (answer.status_code, answer.headers["location"]) == (303, "/signed-out")
        assert 'turngate_session="";' in answer.headers["set-cookie"]
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert (await elsewhere.get("/tickets")).status_code == 200


async def test_a_cookie_that_was_signed_out_opens_nothing_any_more(world: World) -> None:
    async with browser(world, "sam") as sam:
        kept = {"Cookie": f"turngate_session={sam.cookies['turngate_session']}"}
        bearer = {"Authorization": f"Bearer {sam.cookies['turngate_session']}"}
        assert (await sam.get("/console/session")).status_code == 204
        await sam.post("/sign-out")
        assert (await sam.get("/console/session")).status_code == 401
        assert "signed out" in (await sam.get("/signed-out")).text
    async with httpx.AsyncClient(base_url=world.url) as thief:
        for path in ("/console/session", "/v1/tickets", "/v1/events"):
            assert (await thief.get(path, headers=kept)).status_code == 401
            assert (await thief.get(path, headers=bearer)).status_code == 401


async def test_a_gateway_that_is_started_later_knows_who_has_signed_out(world: World) -> None:
    async with browser(world, "sam") as sam:
        bearer = {"Authorization": f"Bearer {sam.cookies['turngate_session']}"}
        await sam.post("/sign-out")
    await world.stop_gateway()
    async with gateway(world.settings), httpx.AsyncClient(base_url=world.url) as thief, world.client("sam") as anew:
        assert (await thief.get("/v1/tickets", headers=bearer)).status_code == 401
        assert (await anew.get("/v1/tickets")).status_code == 200


async def test_who_signs_out_of_one_gateway_is_signed_out_of_all_and_their_streams_end(world: World) -> None:
    settings = world.settings.model_copy(update={"http_port": free_port(), "heartbeat_seconds": 60})
    async with gateway(settings), browser(world, "sam") as sam:
        bearer = {"Authorization": f"Bearer {sam.cookies['turngate_session']}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{settings.http_port}", headers=bearer) as other:
            async with other.stream("GET", "/v1/events", headers=STREAM, timeout=20) as stream:
                assert stream.status_code == 200
                await sam.post("/sign-out")
                await asyncio.wait_for(ends(stream), 5)
            assert (await other.get("/v1/tickets")).status_code == 401


async def test_a_sign_out_is_forgotten_once_its_token_has_expired(world: World) -> None:
    async with open_pool(world.settings.postgres_dsn.get_secret_value(), size=1) as pool:
        kept = SignedOut(pool, "")
        now = datetime.now(UTC)
        await kept.add("old", now - timedelta(seconds=1))
        await kept.add("new", now + timedelta(hours=1))
        assert await kept.all() == {"new": now + timedelta(hours=1)}
        async with pool.connection() as connection:
            rows = await (await connection.execute("select sign_in from desk.signed_out")).fetchall()
    assert rows == [{"sign_in": "new"}]


async def test_nobody_is_signed_out_by_another_site(world: World) -> None:
    async with browser(world, "sam") as sam:
        for site in ("cross-site", "same-site", "none"):
            assert (await sam.post("/sign-out", headers={"Sec-Fetch-Site": site})).status_code == 403
        assert (await sam.get("/console/session")).status_code == 204


async def test_a_stream_ends_with_its_token_and_not_at_the_next_heartbeat(world: World, tmp_path: Path) -> None:
    settings = world.settings.model_copy(update={"http_port": free_port(), "heartbeat_seconds": 60})
    token = Issuer(tmp_path / "issuer").issue("sam", "acme", "approver", lifetime=3)
    async with gateway(settings):
        cookie = {"Cookie": f"turngate_session={token}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{settings.http_port}", headers=cookie) as sam:
            async with sam.stream("GET", "/v1/events", headers=STREAM, timeout=20) as stream:
                assert stream.status_code == 200
                await asyncio.wait_for(ends(stream), 5)
            assert (await sam.get("/v1/events")).status_code == 401


async def test_a_form_that_is_sent_too_late_says_that_nothing_was_done(world: World, tmp_path: Path) -> None:
    await world.ticket()
    expired = Issuer(tmp_path / "issuer").issue("alex", "acme", "operator", lifetime=-9)
    async with browser(world) as alex:
        cookie = {"Cookie": f"turngate_session={expired}"}
        answer = await alex.post("/tickets/TCK-2004/runs", headers=cookie)
    assert answer.status_code == 401
    assert "Nothing was sent" in answer.text
    assert 'href="/sign-in?next=/tickets"' in answer.text


async def test_who_has_signed_in_anew_is_no_longer_who_was_there_before(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with browser(world, "sam") as person:
        first = person.cookies["turngate_session"]
        await world.sign_in(person, "gwen", "globex")
        assert person.cookies["turngate_session"] != first
        assert (await person.get("/v1/runs/TCK-2004-1")).status_code == 404


# Set-up


@contextmanager
def wrong(match: str) -> Iterator[None]:
    with pytest.raises(ValidationError, match=match):
        yield


def settings(**changes: Any) -> Settings:
    issuers = [
        Believed(issuer=name, jwks=None, tenants=["acme"]) for name in ("https://a.example", "https://b.example")
    ]
    told: dict[str, Any] = {
        "postgres_dsn": SecretStr("postgres://x"),
        "issuers": issuers[:1],
        "sign_in_client_id": "console",
        "sign_in_client_secret": SecretStr("s"),
    }
    return Settings(**(told | changes))


def test_the_consoles_issuer_is_one_that_is_believed() -> None:
    two = [Believed(issuer=name, tenants=["acme"]) for name in ("https://a.example", "https://b.example")]
    assert settings().sign_in_issuer == "https://a.example"
    assert settings(issuers=two, sign_in_issuer="https://b.example").sign_in_issuer == "https://b.example"
    with wrong("TURNGATE_SIGN_IN_ISSUER"):
        settings(issuers=two)
    with wrong("TURNGATE_SIGN_IN_ISSUER"):
        settings(sign_in_issuer="https://c.example")
    with wrong("CLIENT_SECRET"):
        settings(sign_in_client_secret=None)
    with wrong("neither https"):
        settings(sign_in_url="http://login.example")
    with wrong("TURNGATE_SIGN_IN_URL is missing"):
        settings(issuers=[Believed(issuer="urn:x", jwks="/keys.json", tenants=["acme"])])


def test_what_is_set_to_nothing_is_not_set() -> None:
    unset = settings(sign_in_client_id="", sign_in_client_secret="", sign_in_issuer="", sign_in_url="", console_url="")
    assert (unset.sign_in_client_id, unset.sign_in_client_secret, unset.console_url) == (None, None, None)


async def test_without_a_client_nobody_signs_in_and_the_page_says_so(world: World) -> None:
    changes = {"http_port": free_port(), "sign_in_client_id": None}
    alone = world.settings.model_copy(update=changes)
    async with gateway(alone), browser(world, url=f"http://127.0.0.1:{alone.http_port}") as client:
        page = await client.get("/sign-in")
    assert page.status_code == 200
    assert "signs nobody in" in page.text
