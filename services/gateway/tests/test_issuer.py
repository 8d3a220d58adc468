"""What the issuer of the console may get wrong: nobody is signed in by it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from turngate.issuer import CLIENT, ISSUER, Issuer

from .conftest import PEOPLE, SECRET, World, free_port, gateway, serving
from .test_sign_in import browser, refused

pytestmark = pytest.mark.timeout(60)


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
            "expired": (lambda n: tokens(n, access_token=issuer.issue("sam", "acme", "lead", lifetime=-70)), 403),
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
