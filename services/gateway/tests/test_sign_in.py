"""Into the console: by the issuer, for one browser."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import pytest
from contracts.identity import Issuer as Believed
from gateway.console.pages import inside
from gateway.settings import Settings
from pydantic import SecretStr, ValidationError

from .conftest import World, free_port, gateway

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
        assert "Alex" not in (await nobody.get(issuer)).text
        await nobody.get(world.sign_in_link)
        assert "Alex" in (await nobody.get(issuer)).text
        back = await world.sign_in(nobody, "sam", go_on="/approvals?x=1")
        assert (back.status_code, back.headers["location"]) == (303, "/approvals?x=1")
        assert (await nobody.get("/approvals?x=1")).status_code == 200


async def test_a_plain_client_that_follows_the_console_reaches_the_sign_in(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.url, follow_redirects=True, trust_env=False) as client:
        await client.get(world.sign_in_link, follow_redirects=False)
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


@pytest.mark.parametrize(
    "lie",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8100"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "127.0.0.1@evil.example"},
        {"Host": "[::1"},
        {"Host": ""},
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"},
        {"Host": "evil.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"},
    ],
    ids=str,
)
async def test_whatever_host_a_request_names_people_are_led_back_to_the_configured_address(
    world: World, lie: dict[str, str]
) -> None:
    async with browser(world) as client:
        led = await client.get("/sign-in", headers=lie)
        slashed = await client.get("/tickets/", headers=lie)
    assert httpx.URL(led.headers["location"]).params["redirect_uri"] == f"{world.url}/sign-in/done"
    assert led.headers["set-cookie"].startswith("turngate_sign_in_")
    assert "evil" not in f"{led.headers} {slashed.headers}"
    assert slashed.headers["location"].startswith((f"{world.url}/", "/"))


async def test_another_name_of_this_machine_leads_to_the_configured_one_before_a_sign_in_begins(world: World) -> None:
    here = httpx.URL(world.url)
    other = str(here.copy_with(host="localhost"))
    async with browser(world, url=other) as client:
        led = await client.get("/sign-in", params={"next": "/approvals?x=1"})
        assert led.status_code == 303
        assert "set-cookie" not in led.headers
        there = httpx.URL(led.headers["location"])
        assert (there.host, there.port, there.path) == (here.host, here.port, "/sign-in")
        assert there.params["next"] == "/approvals?x=1"
        # A proxy that names us otherwise each time is led there once, not for ever.
        again = await client.get("/sign-in", params=there.params)
        assert httpx.URL(again.headers["location"]).params["redirect_uri"] == f"{world.url}/sign-in/done"


async def test_a_form_from_the_page_of_another_host_is_no_page_of_ours(world: World) -> None:
    await world.ticket()
    async with browser(world) as client:
        del client.headers["Sec-Fetch-Site"]
        headers = {"Cookie": f"turngate_session={world.token('alex')}", "Host": "evil.example"}
        answer = await client.post("/tickets/TCK-2004/runs", headers=headers | {"Origin": "http://evil.example"})
    assert answer.status_code == 403


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


def test_the_consoles_own_address_is_what_is_set_or_where_it_listens() -> None:
    assert settings().public_url == "http://127.0.0.1:8100"
    assert settings(http_host="::1", http_port=8200).public_url == "http://[::1]:8200"
    assert settings(http_host="0.0.0.0", console_url="https://c.example/").public_url == "https://c.example"
    assert settings(http_host="0.0.0.0", sign_in_client_id=None).public_url == "http://127.0.0.1:8100"
    with wrong("TURNGATE_CONSOLE_URL is missing"):
        settings(http_host="0.0.0.0")
    for more in ("https://c.example/turngate", "https://c.example?x=1", "https://c.example/#x"):
        with wrong("more than scheme, host and port"):
            settings(console_url=more)


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
