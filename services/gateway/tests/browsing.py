"""A real browser before a gateway: one for all tests, each with a context and a world of its own."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from gateway.access import COOKIE
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect
from turngate.testing import Cluster, NatsAccess

from .conftest import World, build

RUN = "TCK-2004-1"
# Playwright's objects belong to the loop that they were made in: all that touches them is in the session's.
IN_A_BROWSER = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
NAMES = ("chromium", "google-chrome", "chrome", "msedge")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path. Without one the tests are skipped, or fail where TURNGATE_BROWSER=required."""
    path = os.environ.get("TURNGATE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        message = "no Chromium: put one on PATH, or its path into TURNGATE_CHROMIUM"
        if os.environ.get("TURNGATE_BROWSER") == "required":
            pytest.fail(message)
        pytest.skip(f"browser tests skipped: {message}")
    return path


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session")
async def world(fresh_nats: NatsAccess, cluster: Cluster, tmp_path: Path) -> AsyncIterator[World]:
    with cluster.database() as database:
        async with build(fresh_nats, database, tmp_path) as world:
            yield world


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_left(browser: Browser, world: World) -> AsyncIterator[None]:
    """No page of a test outlives it, and no gateway waits for the streams of one."""
    yield
    for context in list(browser.contexts):
        await context.close()


async def sign_in(browser: Browser, world: World, person: str, **options: Any) -> BrowserContext:
    """A context of somebody who has come in by the issuer, as a browser does it."""
    context = await browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
    context.set_default_timeout(15_000)
    async with httpx.AsyncClient(base_url=world.url, headers={"Sec-Fetch-Site": "same-origin"}, timeout=20) as client:
        assert (await world.sign_in(client, person)).status_code == 303
        # For whoever signs in here later: what the link of the embedded issuer leaves in a browser.
        await context.request.get(world.sign_in_link, max_redirects=0)
        await context.add_cookies(
            [{"name": cookie.name, "value": cookie.value or "", "url": world.url} for cookie in client.cookies.jar]
        )
    return context


async def signed_in(browser: Browser, world: World, token: str) -> BrowserContext:
    """A context of somebody whose issuer has given them this token."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    await context.add_cookies([{"name": COOKIE, "value": token, "url": world.url}])
    return context


async def opened(context: BrowserContext, world: World, path: str, *, live: bool = True) -> Page:
    page = await context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"the page's script failed: {error}"))
    await page.goto(world.url + path)
    if live:
        await expect(page.locator("#live")).to_have_text("Live", timeout=15_000)
    return page


WIDTHS = (390, 768, 1440)


async def accessible(page: Page, *widths: int) -> None:
    """In both colour schemes and at each width: no violation that axe finds, and nothing scrolls sideways."""
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for width in widths or WIDTHS:
            await page.set_viewport_size({"width": width, "height": 844})
            found = await Axe().run(page)
            where = f"{page.url}, {scheme}, {width}"
            assert found.violations_count == 0, f"{where}: {found.generate_report()}"
            assert await sideways(page) <= 0, f"{where} scrolls sideways"
            await picture(page, f"{scheme}-{width}")
    await page.set_viewport_size({"width": 320, "height": 844})
    assert await sideways(page) <= 0, f"{page.url} scrolls sideways at 320"


async def picture(page: Page, name: str) -> None:
    """One of the page as it is, where somebody wants to look at it: into the folder TURNGATE_PICTURES."""
    if folder := os.environ.get("TURNGATE_PICTURES"):
        path = httpx.URL(page.url).path.strip("/").replace("/", "-")
        await page.screenshot(path=Path(folder) / f"{path}-{name}.png", full_page=True)


async def sideways(page: Page) -> int:
    """How much is cut off: how much wider the page is than the window, or what a card holds than the card."""
    return int(
        await page.evaluate(
            "Math.max(document.documentElement.scrollWidth - innerWidth,"
            " ...[...document.querySelectorAll('.card')].map((card) => card.scrollWidth - card.clientWidth))"
        )
    )
