"""Where not everything is real, every page says so, and the API too."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from gateway.settings import Settings
from pydantic import ValidationError

from .conftest import World, free_port, gateway
from .facts import story_to_the_hold
from .test_console import SAME_SITE

pytestmark = pytest.mark.timeout(60)
PAGES = {
    "sam": ("/tickets", "/tickets/TCK-2004", "/approvals", "/no-such-page", "/tickets/TCK-9"),
    "ada": ("/stops",),
    "ari": ("/audit", "/stops"),
    None: ("/signed-out", "/sign-in/done?state=x", "/no-such-page"),
}


@asynccontextmanager
async def told(world: World, **what: Any) -> AsyncIterator[str]:
    """The address of a gateway that was told this of the system around it."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    given = {"http_port": port, "console_url": None, **what}
    async with gateway(world.settings.model_copy(update=given)):
        yield url


async def pages(world: World, url: str) -> list[tuple[str, str]]:
    found = []
    for person, paths in PAGES.items():
        headers = SAME_SITE | ({"Authorization": f"Bearer {world.token(person)}"} if person else {})
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=20) as client:
            found += [(path, (await client.get(path)).text) for path in paths]
    return found


async def test_every_page_says_where_the_stand_in_answers_and_the_shop_is_the_demos(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with told(world, model_is="stand-in", shop_is="demo") as url:
        for path, page in await pages(world, url):
            assert "No real model, no real money." in page, path
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {world.token('ari')}"}) as ari:
            answer = (await ari.get("/v1/system")).json()
    assert (answer["model"], answer["shop"]) == ("stand-in", "demo")
    assert answer["notice"].startswith("No real model, no real money.")


async def test_what_is_not_said_is_not_shown_as_real(world: World) -> None:
    async with told(world, model_is=None, shop_is=None) as url:
        for path, page in await pages(world, url):
            assert "Not said whether the model and the money are real." in page, path
        async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {world.token('ari')}"}) as ari:
            answer = (await ari.get("/v1/system")).json()
    assert (answer["model"], answer["shop"]) == ("unknown", "unknown")


async def test_a_real_system_says_nothing_of_it(world: World) -> None:
    async with told(world, model_is="real", shop_is="real") as url:
        for path, page in await pages(world, url):
            assert 'id="unreal"' not in page, path


@pytest.mark.parametrize("name", ["model_is", "shop_is"])
def test_nothing_is_unknown_and_nonsense_is_refused(world_settings: dict[str, Any], name: str) -> None:
    assert getattr(Settings(**world_settings, **{name: ""}), name) is None
    with pytest.raises(ValidationError):
        Settings(**world_settings, **{name: "surely"})


@pytest.fixture
def world_settings() -> dict[str, Any]:
    return {
        "postgres_dsn": "postgresql://nobody@127.0.0.1/none",
        "issuers": [{"issuer": "http://127.0.0.1:1", "tenants": ["acme"]}],
    }
