"""The stop switch and the audit in a real browser: what is set is on every page at once, and every page can be read."""

from pathlib import Path

import pytest
from contracts.facts import RunTakenOver
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
from .facts import SAM, started, story_from_the_hold, story_to_the_hold
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


PAGES = {
    "sam": (
        "/tickets",
        "/tickets?state=all",
        "/tickets/TCK-2004",
        "/tickets/TCK-2",
        "/tickets/TCK-3",
        "/tickets/TCK-4",
        "/tickets/TCK-5",
        "/approvals",
    ),
    "ari": ("/audit",),
    "ada": ("/stops", "/approvals"),
}
OUTSIDE = ("/signed-out", "/no-such-page", "/sign-in")


async def states(world: World) -> None:
    """Something of everything: held, ended, not started, in a chat, with a person, and a stop."""
    world.pays_in_pounds()
    await approvals(world)
    for ticket in ("TCK-2004", "TCK-2", "TCK-3", "TCK-5"):
        await world.ticket(ticket, subject="Returning an unworn jacket, refund please")
    await world.ticket("TCK-4", channel="chat", subject="Where is my order?")
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.others.say("TCK-2-1", started("TCK-2"), *story_to_the_hold()[1:], *story_from_the_hold())
    await world.others.say("TCK-4-1", started("TCK-4", channel="chat"))
    await world.others.say("TCK-5-1", started("TCK-5"), RunTakenOver(by=SAM, reason="I know him"))
    async with world.client("ada") as ada:
        await ada.post("/v1/stops", json={"tool": "issue_refund", "above_minor": 10000, "reason": "a strange pattern"})
    for ticket in ("TCK-2004", "TCK-2", "TCK-4", "TCK-5"):
        await world.seen(f"{ticket}-1")


@pytest.mark.timeout(400)
async def test_every_page_is_accessible_and_fits_in_every_theme_and_width(world: World, browser: Browser) -> None:
    await states(world)
    for person, paths in PAGES.items():
        context = await sign_in(browser, world, person)
        for path in paths:
            page = await opened(context, world, path)
            await expect(page.locator("#stops")).to_contain_text("is stopped")
            await expect(page.locator("#unreal")).to_be_visible()
            await accessible(page)
            await page.close()
        await context.close()
    context = await browser.new_context()
    for path in OUTSIDE:
        page = await opened(context, world, path, live=False)
        await accessible(page)
        await page.close()


async def test_a_phone_shows_who_one_is_where_whether_it_is_live_the_way_out_and_the_times(
    world: World, browser: Browser
) -> None:
    await states(world)
    context = await sign_in(browser, world, "sam", viewport={"width": 390, "height": 844}, has_touch=True)
    for path in ("/tickets", "/approvals", "/tickets/TCK-2004", "/tickets/TCK-3"):
        page = await opened(context, world, path)
        head = page.locator("header.rail")
        for words in ("Sam", "Approver", "Acme", "Live"):
            await expect(head.get_by_text(words, exact=True)).to_be_visible()
        times = page.locator("main time:visible")
        assert await times.count() >= await page.locator(".ev, .q .row, [data-held]").count() > 0, path
        way_out = page.get_by_role("button", name="Sign out")
        await expect(way_out).to_be_visible()
        box = await way_out.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
        await page.close()
    page = await opened(context, world, "/tickets")
    await page.get_by_role("button", name="Sign out").tap()
    await expect(page.get_by_text("You are signed out")).to_be_visible()


@pytest.mark.parametrize("width", [721, 768, 900, 1001, 1024])
async def test_a_ticket_can_be_told_from_the_others_by_subject_and_name_on_a_tablet(
    world: World, browser: Browser, width: int
) -> None:
    await states(world)
    context = await sign_in(browser, world, "sam", viewport={"width": width, "height": 844})
    for path, where in (("/tickets?state=all", ".q .row"), ("/approvals", "[data-card]")):
        page = await opened(context, world, path)
        rows = page.locator(where)
        assert await rows.count() > 0
        for row in await rows.all():
            subject, name = row.locator("a").first, row.get_by_text("TCK-", exact=False).first
            for element in (subject, name):
                cut = await element.evaluate("one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0")
                box = await element.bounding_box()
                assert box is not None
                assert not cut, f"{await element.inner_text()!r} is cut at {width} on {path}"
        await page.close()
