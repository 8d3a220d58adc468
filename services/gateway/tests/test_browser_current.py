"""What a page says of itself is so: it is stale when nothing is heard, its bar names no dead key, Escape closes all."""

import asyncio
import time

import pytest
from contracts.facts import RunEnded
from playwright.async_api import Browser, Page, expect

from .browsing import IN_A_BROWSER, RUN, browser, chromium, nothing_left, opened, sign_in, world
from .conftest import World
from .facts import decided, executed, forwarded, refund, replied, started, story_from_the_hold, story_to_the_hold
from .relay import relayed
from .test_browser import deciding, held_run

__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(180)]
STALE_WITHIN_S = 15
MONEY = refund("c-2")


async def decides_nothing(page: Page) -> None:
    """By no button and by no key."""
    buttons = page.locator("form[data-decides] button:not([type=button])")
    assert await buttons.count() > 0
    for button in await buttons.all():
        await expect(button).to_have_attribute("aria-disabled", "true")
    await page.locator(f"#card-{RUN}").focus()
    await page.keyboard.press("a")
    await expect(page.locator(".armed")).to_have_count(0)
    await expect(page.locator("#keys")).not_to_contain_text("approve", use_inner_text=True)


async def test_a_gateway_that_hangs_is_known_to_be_stale_within_15_s_and_nothing_is_decided_until_all_is_caught_up(
    world: World, browser: Browser
) -> None:
    await held_run(world)
    await world.approvals(deciding(world))
    async with relayed(world.settings.http_port) as relay:
        context = await sign_in(browser, world, "sam")
        page = await context.new_page()
        await page.goto(f"http://127.0.0.1:{relay.port}/approvals")
        await expect(page.locator("#live")).to_have_text("Live")
        await expect(page.locator(f"#card-{RUN} [data-do=approve]")).to_have_attribute("aria-disabled", "false")

        relay.hang()
        since = time.monotonic()
        await expect(page.locator("#live")).to_have_text("Reconnecting", timeout=20_000)
        await expect(page.locator("#lost")).to_contain_text("Deciding is off", timeout=5_000)
        assert time.monotonic() - since <= STALE_WITHIN_S
        await decides_nothing(page)
        await world.others.say(RUN, decided(2, MONEY))

        relay.go_on()
        await expect(page.locator("#live")).to_have_text("Live", timeout=30_000)
        await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")
        await expect(page.locator("#lost")).to_be_hidden()
        await page.close()


async def test_deciding_is_off_at_once_when_the_stream_is_lost(world: World, browser: Browser) -> None:
    await held_run(world)
    page = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    await page.locator(f"#card-{RUN}").focus()
    await page.keyboard.press("a")
    await expect(page.locator(".armed")).to_have_count(1)
    await world.stop_gateway()
    await expect(page.locator("#live")).to_have_text("Reconnecting")
    await expect(page.locator(".armed")).to_have_count(0)
    await decides_nothing(page)


async def test_no_stop_is_lifted_from_a_page_that_is_not_current(world: World, browser: Browser) -> None:
    from .test_stops import approvals

    world.pays_in_pounds()
    await approvals(world)
    async with world.client("ada") as ada:
        await ada.post("/v1/stops", json={"reason": "a strange pattern"})
    page = await opened(await sign_in(browser, world, "ada"), world, "/stops")
    lift = page.get_by_role("button", name="Lift this stop")
    await expect(lift).to_have_attribute("aria-disabled", "false")
    await world.stop_gateway()
    await expect(lift).to_have_attribute("aria-disabled", "true")
    await expect(page.get_by_role("button", name="Stop it now")).not_to_have_attribute("aria-disabled", "true")


async def test_the_stop_pop_over_says_nothing_that_is_not_so_yet(world: World, browser: Browser) -> None:
    await held_run(world)
    page = await opened(await sign_in(browser, world, "alex"), world, "/tickets/TCK-2004")
    await page.keyboard.press("s")
    pop = page.locator(".stop .pop p")
    await expect(pop).to_contain_text("No money has moved in this run so far")
    await expect(pop).to_contain_text("will be open again")
    await expect(pop).not_to_contain_text("is open again")
    await world.others.say(RUN, decided(2, MONEY), forwarded(2, MONEY), executed(2, ("c-2", "Refunded £180.00.")))
    await expect(pop).to_contain_text("£180.00 has been paid, and will stay paid")
    await expect(pop).to_be_visible()


async def test_escape_closes_what_is_open_and_the_focus_goes_back(world: World, browser: Browser) -> None:
    await held_run(world)
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets/TCK-2004")
    fold = page.locator(f"#rows-{RUN} .fold > summary").first
    stop, decline, edit = (page.locator(f"{where} summary") for where in (".stop", ".declining", ".editing"))
    for summary in (fold, stop, decline, edit):
        details = summary.locator("xpath=..")
        await summary.click()
        await expect(details).to_have_attribute("open", "")
        await page.keyboard.press("Escape")
        await expect(details).not_to_have_attribute("open", "")
        await expect(summary).to_be_focused()
    for letter, where in (("d", ".declining"), ("e", ".editing"), ("s", ".stop")):
        await fold.focus()
        await page.keyboard.press(letter)
        await expect(page.locator(where)).to_have_attribute("open", "")
        await page.keyboard.press("Escape")
        await expect(page.locator(where)).not_to_have_attribute("open", "")
        await expect(fold).to_be_focused()
    await fold.focus()
    await page.keyboard.press("?")
    await expect(page.locator("#sheet")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#sheet")).to_be_hidden()
    await expect(fold).to_be_focused()


async def test_a_run_that_ends_takes_its_composer_with_it(world: World, browser: Browser) -> None:
    await world.ticket(channel="chat")
    await world.others.say(RUN, started(channel="chat"))
    page = await opened(await sign_in(browser, world, "alex"), world, f"/tickets/TCK-2004?run={RUN}")
    box = page.get_by_label("Message as the customer")
    await box.fill("Is it on")
    await box.press("ArrowLeft")
    await world.others.say(RUN, replied("A moment."))
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("A moment.")
    await expect(box).to_have_value("Is it on")
    assert await box.evaluate("field => [field.selectionStart, document.activeElement === field]") == [7, True]

    end = RunEnded(status="resolved", reason="The customer has an answer.", steps=1, cost_micro_usd=0)
    await world.others.say(RUN, end)
    await expect(page.locator(f"#head-{RUN}")).to_contain_text("Resolved")
    await expect(page.locator("textarea")).to_have_count(0)
    await page.reload()
    await expect(page.locator("textarea")).to_have_count(0)


async def test_the_bar_names_the_keys_that_do_something_here_and_now(world: World, browser: Browser) -> None:
    await held_run(world)
    sam, ari = [await sign_in(browser, world, person) for person in ("sam", "ari")]
    run = await opened(sam, world, "/tickets/TCK-2004")
    for words in ("approve", "decline", "take over", "stop the run", "follow live"):
        await expect(run.locator("#keys")).to_contain_text(words, use_inner_text=True)
    for words in ("next", "previous", "audit", "close"):
        await expect(run.locator("#keys")).not_to_contain_text(words, use_inner_text=True)
    await run.keyboard.press("s")
    await expect(run.locator("#keys")).to_contain_text("close", use_inner_text=True)
    await run.keyboard.press("Escape")
    reading = await opened(ari, world, "/tickets/TCK-2004")
    for words in ("approve", "decline", "take over", "stop the run"):
        await expect(reading.locator("#keys")).not_to_contain_text(words, use_inner_text=True)
    await expect(reading.locator("#keys")).to_contain_text("audit", use_inner_text=True)

    await world.others.say(RUN, *story_from_the_hold())
    await expect(run.locator(f"#head-{RUN}")).to_contain_text("Resolved")
    await expect(run.locator("#keys")).not_to_contain_text("take over", use_inner_text=True)
    for words in ("approve", "decline", "stop the run", "follow live"):
        await expect(run.locator("#keys")).not_to_contain_text(words, use_inner_text=True)

    await run.get_by_role("button", name="All keys").click()
    await run.get_by_label("Single-key shortcuts off").check()
    await run.keyboard.press("Escape")
    await expect(run.locator("#keys")).to_have_text("", use_inner_text=True)
    await run.get_by_role("button", name="All keys").click()  # the way back needs no key
    await run.get_by_label("Single-key shortcuts off").uncheck()
    await run.keyboard.press("Escape")
    await expect(run.locator("#keys")).to_contain_text("tickets", use_inner_text=True)


@pytest.mark.parametrize("path", ["/tickets?state=all", "/approvals"])
async def test_arrows_move_as_the_letters_do(world: World, browser: Browser, path: str) -> None:
    for number in (1, 2, 3):
        await world.ticket(f"TCK-{number}")
        await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"), *story_to_the_hold()[1:])
        await world.seen(f"TCK-{number}-1")
    page = await opened(await sign_in(browser, world, "sam"), world, path)
    here = "document.activeElement.id || document.activeElement.getAttribute('href')"
    ways = []
    for down, up in (("j", "k"), ("ArrowDown", "ArrowUp")):
        await page.evaluate("document.activeElement.blur()")
        way = []
        for key in (down, down, down, up):
            await page.keyboard.press(key)
            way.append(await page.evaluate(here))
        ways.append(way)
    assert ways[0] == ways[1]
    assert len(set(ways[0])) == 3
    assert ways[0][3] == ways[0][1]


async def test_a_gateway_that_has_lost_the_broker_does_not_pretend_to_be_current(
    world: World, browser: Browser
) -> None:
    from .conftest import free_port, gateway

    await held_run(world)
    nats = int(world.settings.nats_url.rpartition(":")[2])
    async with relayed(nats) as relay:
        settings = world.settings.model_copy(
            update={"nats_url": f"nats://127.0.0.1:{relay.port}", "http_port": free_port()}
        )
        async with gateway(settings):
            context = await sign_in(browser, world, "sam")
            page = await context.new_page()
            await page.goto(f"http://127.0.0.1:{settings.http_port}/approvals")
            await expect(page.locator("#live")).to_have_text("Live")
            await relay.cut()
            await expect(page.locator("#live")).to_have_text("Reconnecting", timeout=20_000)
            await decides_nothing(page)
            await asyncio.sleep(0)
            await page.close()
