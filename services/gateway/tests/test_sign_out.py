"""Out of the console: by its person, with the token, in every process, and what was open closes with it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from gateway.access import Streams
from gateway.database import open_pool
from gateway.sessions import Sessions, SignedInStream
from gateway.signed_out import SignedOut
from starlette.types import Message
from turngate.issuer import Issuer

from .conftest import World, free_port, gateway
from .facts import SAM, started, story_to_the_hold
from .test_domain import asker
from .test_sign_in import STREAM, browser

pytestmark = pytest.mark.timeout(60)


async def ends(stream: httpx.Response) -> None:
    async for _ in stream.aiter_bytes():
        pass


async def test_signing_out_ends_every_stream_of_that_sign_in_at_once(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    settings = world.settings.model_copy(update={"http_port": free_port(), "heartbeat_seconds": 60})
    url = f"http://127.0.0.1:{settings.http_port}"
    paths = ("/v1/events", "/v1/runs/TCK-2004-1/events", "/console/stream/inbox", "/console/stream/runs/TCK-2004-1")
    async with (
        gateway(settings),
        browser(world, "sam", url=url) as sam,
        browser(world, "sam", url=url) as elsewhere,
    ):
        async with sam.stream("GET", "/v1/events", headers=STREAM) as first:
            others = [sam.build_request("GET", path, headers=STREAM) for path in paths[1:]]
            streams = [first, *[await sam.send(request, stream=True) for request in others]]
            async with elsewhere.stream("GET", "/v1/events", headers=STREAM) as kept:
                reading = [asyncio.create_task(ends(stream)) for stream in streams]
                still = asyncio.create_task(ends(kept))
                answer = await sam.post("/sign-out")
                await asyncio.wait_for(asyncio.gather(*reading), 20)  # no heartbeat comes before that
                assert not still.done()
                still.cancel()
                await asyncio.wait([still])
        assert (answer.status_code, answer.headers["location"]) == (303, "/signed-out")
        assert 'turngate_session="";' in answer.headers["set-cookie"]
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert (await elsewhere.get("/tickets")).status_code == 200


async def test_a_stream_that_misses_its_end_says_nothing_more(world: World) -> None:
    async with open_pool(world.settings.postgres_dsn.get_secret_value(), size=1) as pool:
        sessions, sam = Sessions(SignedOut(pool, "")), asker(SAM)
        begun = asyncio.Event()

        async def deaf() -> AsyncGenerator[bytes]:
            yield b"one"
            with suppress(asyncio.CancelledError):
                begun.set()
                await asyncio.Event().wait()
            yield b"two"

        said: list[bytes] = []

        async def send(message: Message) -> None:
            said.append(message.get("body", b""))

        stream = asyncio.create_task(SignedInStream(deaf(), sessions, Streams(1), sam, {}).stream_response(send))
        await begun.wait()
        await sessions.end(sam)
        await stream
    assert b"one" in said
    assert b"two" not in said


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
    token = Issuer(tmp_path / "issuer").issue("sam", "acme", "approver", lifetime=3 - 60)
    async with gateway(settings):
        cookie = {"Cookie": f"turngate_session={token}"}
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{settings.http_port}", headers=cookie) as sam:
            async with sam.stream("GET", "/v1/events", headers=STREAM, timeout=20) as stream:
                assert stream.status_code == 200
                await asyncio.wait_for(ends(stream), 5)
            assert (await sam.get("/v1/events")).status_code == 401


async def test_a_form_that_is_sent_too_late_says_that_nothing_was_done(world: World, tmp_path: Path) -> None:
    await world.ticket()
    expired = Issuer(tmp_path / "issuer").issue("alex", "acme", "operator", lifetime=-70)
    async with browser(world) as alex:
        cookie = {"Cookie": f"turngate_session={expired}"}
        answer = await alex.post("/tickets/TCK-2004/runs", headers=cookie)
    assert answer.status_code == 401
    assert "Nothing was done" in answer.text
    assert 'href="/sign-in?next=/tickets"' in answer.text


async def test_who_has_signed_in_anew_is_no_longer_who_was_there_before(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with browser(world, "sam") as person:
        first = person.cookies["turngate_session"]
        await world.sign_in(person, "gwen", "globex")
        assert person.cookies["turngate_session"] != first
        assert (await person.get("/v1/runs/TCK-2004-1")).status_code == 404
