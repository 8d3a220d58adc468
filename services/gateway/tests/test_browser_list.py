"""The list of tickets in a real browser: complete, in order and counted, without being loaded again by hand."""

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from .browsing import IN_A_BROWSER, browser, chromium, nothing_left, opened, picture, sign_in, world
from .conftest import World
from .facts import ended, replied, started, story_from_the_hold, story_to_the_hold

pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]
__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
NEW = {"customer_email": "tom.whitfield@mail.example", "subject": "A new one", "body": "Where is it?"}


def lines(page: Page, group: str) -> Locator:
    return page.locator(f'tbody[data-group="{group}"] tr.row')


async def counts(page: Page) -> dict[str, str]:
    return {
        name: await page.locator(f".tabs [data-count={name}]").inner_text() for name in ("open", "held", "done", "all")
    }


@pytest.mark.parametrize("before", [0, 1])
async def test_a_ticket_that_somebody_opens_by_the_api_appears_by_itself(
    world: World, browser: Browser, before: int
) -> None:
    # given a list that somebody looks at, empty or not
    for n in range(before):
        await world.ticket(f"TCK-{n + 1}")
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets")
    await expect(page.locator("tr.row")).to_have_count(before)
    # when another opens a ticket by the API
    async with world.client("alex") as alex:
        reference = (await alex.post("/v1/tickets", json=NEW)).json()["ticket"]
    # then it stands in the list, and every tab that lists it counts it
    await expect(lines(page, "new").last.locator(".line2").first).to_contain_text(reference)
    await expect(page.locator("tr.row")).to_have_count(before + 1)
    await expect(page.locator(".nav [data-count=open]")).to_have_text(str(before + 1))
    assert await counts(page) == {"open": str(before + 1), "held": "", "done": "", "all": str(before + 1)}


async def test_a_ticket_that_another_process_opens_appears_too(world: World, browser: Browser) -> None:
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets")
    await world.ticket("TCK-7")  # by a desk of its own
    await expect(page.locator("#ticket-TCK-7")).to_be_visible()


async def test_what_a_tab_that_joins_late_has_missed_it_is_told(world: World, browser: Browser) -> None:
    context = await sign_in(browser, world, "sam")
    first = await opened(context, world, "/tickets")
    page = await context.new_page()
    # Its list is made before the ticket is there, and its script runs after that was told to those who listen.
    html = await (await context.request.get(world.url + "/tickets")).text()
    await world.ticket("TCK-7")
    await expect(first.locator("#ticket-TCK-7")).to_be_visible()

    first_time = True

    async def old(route: object) -> None:
        nonlocal first_time
        if first_time:
            first_time = False
            await route.fulfill(body=html, content_type="text/html")  # type: ignore[attr-defined]
        else:
            await route.continue_()  # type: ignore[attr-defined]

    await page.route("**/tickets", old)
    await page.goto(world.url + "/tickets")
    await expect(page.locator("#ticket-TCK-7")).to_be_visible()


async def test_every_tabs_count_follows_what_happens(world: World, browser: Browser) -> None:
    await world.ticket("TCK-2004")
    await world.ticket("TCK-3")
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets")
    assert await counts(page) == {"open": "2", "held": "", "done": "", "all": "2"}
    badge = page.locator(".nav [data-count=waiting]")
    await expect(badge).to_have_text("")

    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await expect(page.locator(".tabs [data-count=held]")).to_have_text("1")
    await expect(badge).to_have_text("1")

    await world.others.say("TCK-2004-1", *story_from_the_hold())
    await expect(page.locator(".tabs [data-count=done]")).to_have_text("1")
    await expect(badge).to_have_text("")
    assert await counts(page) == {"open": "1", "held": "", "done": "1", "all": "2"}


async def test_a_ticket_moves_into_the_group_that_it_belongs_to(world: World, browser: Browser) -> None:
    await world.ticket("TCK-2004")
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets?state=all")
    await expect(lines(page, "new")).to_have_count(1)
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await expect(lines(page, "decision")).to_have_count(1)
    await expect(page.locator('tbody[data-group="decision"] .grp')).to_contain_text("£180.00")
    await expect(lines(page, "new")).to_have_count(0)
    await world.others.say("TCK-2004-1", *story_from_the_hold())
    await expect(lines(page, "done")).to_have_count(1)


async def test_the_list_does_not_move_while_a_line_has_the_focus(world: World, browser: Browser) -> None:
    await world.ticket("TCK-1")
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets")
    await page.locator("#ticket-TCK-1 a").focus()
    await world.ticket("TCK-2")
    await expect(page.locator("#fresh")).to_have_text("List has changed")
    await expect(page.locator("tr.row")).to_have_count(1)
    await picture(page, "changed")
    await page.evaluate("document.activeElement.blur()")
    await expect(page.locator("tr.row")).to_have_count(2)
    await expect(page.locator("#fresh")).to_be_hidden()


async def test_a_filter_is_not_loaded_for_what_it_does_not_list(world: World, browser: Browser) -> None:
    await world.ticket("TCK-2004")
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets?state=done")
    loads: list[str] = []
    page.on("request", lambda request: loads.append(request.url))
    await world.others.say("TCK-2004-1", started())
    await world.others.say("TCK-2004-1", replied(), ended())
    await expect(lines(page, "done")).to_have_count(1)
    assert len([url for url in loads if "/tickets" in url]) == 1
