"""The stop switch and the audit in a real browser: what is set is on every page at once, and every page can be read."""

from pathlib import Path

import pytest
from contracts.parts import Customer
from playwright.async_api import Browser, expect

from .browsing import (
    IN_A_BROWSER,
    accessible,
    browser,
    chromium,
    nothing_left,
    opened,
    picture,
    sideways,
    sign_in,
    world,
)
from .conftest import World
from .facts import started, story_to_the_hold
from .test_audit import story
from .test_stops import approvals

__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]


async def test_a_stop_is_on_every_open_page_as_soon_as_it_is_set_and_gone_when_it_is_lifted(
    world: World, browser: Browser
) -> None:
    world.pays_in_pounds()
    await approvals(world)
    sams = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    adas = await opened(await sign_in(browser, world, "ada"), world, "/stops")
    await adas.get_by_label("Tool").select_option("issue_refund")
    await adas.get_by_label("Only above").fill("100")
    await adas.get_by_label("Why?").fill("a strange pattern")
    await adas.keyboard.press("Enter")

    for page in (sams, adas):
        await expect(page.locator("#stops")).to_contain_text("is stopped", timeout=5000)
    await expect(sams.locator("#stops")).to_contain_text("a strange pattern")
    await expect(sams.locator("#stops").get_by_role("link")).to_have_count(0)
    await adas.get_by_role("button", name="Lift this stop").click()
    await expect(adas.get_by_text("Nothing is stopped")).to_be_visible()
    await expect(sams.locator("#stops")).to_have_text("", timeout=5000)


async def test_an_auditor_filters_and_exports_and_meets_no_customer(world: World, browser: Browser) -> None:
    await story(world, note="Tom called")
    page = await opened(await sign_in(browser, world, "ari"), world, "/tickets")
    await page.get_by_role("link", name="Audit").first.click()
    await expect(page.locator("table.audit")).to_contain_text("approved it")
    await expect(page.locator("main")).not_to_contain_text("Tom")
    await page.get_by_label("Person").fill("sam")
    await page.get_by_role("button", name="Show").click()
    await expect(page.locator("table.audit tbody tr").first).to_contain_text("sam")
    async with page.expect_download() as download:
        await page.get_by_role("link", name="CSV").click()
    path = await (await download.value).path()
    assert "approved it" in Path(path).read_text()


# Of each cell: the words of no more than 14 letters that are broken over more lines than one.
BROKEN = """() => [...document.querySelectorAll("table.audit td")].flatMap((cell) => {
  const found = [], walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), range = document.createRange();
  while (walker.nextNode())
    for (const word of walker.currentNode.data.matchAll(/[^\\s-]+/g)) {
      if (word[0].length > 14) continue;
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((line) => line.top)).size > 1) found.push(word[0]);
    }
  return found;
})"""


async def test_long_words_wrap_and_short_ones_stay_whole(world: World, browser: Browser) -> None:
    long = Customer(id="C-1", name=None, email=f"{'a' * 290}@mail.example")
    for ticket, started_too in (("TCK-1", False), ("TCK-2", True)):
        await world.ticket(ticket, subject="W" * 300, body="b" * 300, customer=long)
        first = started(ticket, subject="W" * 300, body="b" * 300)
        if started_too:
            ours = first.ticket.model_copy(update={"customer": long})
            await world.others.say(f"{ticket}-1", first.model_copy(update={"ticket": ours}), *story_to_the_hold()[1:])
            await world.seen(f"{ticket}-1")
    await story(world)
    ari, sam = [await sign_in(browser, world, person) for person in ("ari", "sam")]
    for context, path in (
        (ari, "/audit"),
        (sam, "/tickets/TCK-1"),
        (sam, "/tickets/TCK-2"),
        (sam, "/tickets"),
        (sam, "/approvals"),
    ):
        page = await opened(context, world, path)
        for width in (390, 1280, 1600):
            await page.set_viewport_size({"width": width, "height": 844})
            await picture(page, f"long-{width}")
            assert await sideways(page) <= 0, f"{path} scrolls sideways at {width}"
            if path == "/audit":
                assert await page.evaluate(BROKEN) == [], width
            elif "TCK" in path:
                title = await page.locator("h1").bounding_box()
                assert title is not None
                assert title["width"] >= 200, "a subject without a space is no column of letters"
        await page.close()


async def test_both_pages_are_accessible_and_fit(world: World, browser: Browser) -> None:
    await approvals(world)
    await story(world)
    folder = world.settings.tenants_dir / "acme"
    folder.mkdir(parents=True)
    (folder / "tenant.yaml").write_text("name: Acme Outdoor\npolicy_pack: acme\ncurrency: GBP\n")
    context = await sign_in(browser, world, "ada")
    async with world.client("ada") as ada:
        await ada.post("/v1/stops", json={"tool": "issue_refund", "above_minor": 10000, "reason": "a strange pattern"})
    for path in ("/audit", "/stops", "/approvals"):
        page = await opened(context, world, path)
        await expect(page.locator("#stops")).to_contain_text("is stopped")
        await accessible(page, 390, 1440)
        await page.close()
