"""A press that decides has to be meant, in a real browser: double clicks, held keys and second taps decide nothing."""

import asyncio

import pytest
from contracts.parts import Json
from playwright.async_api import Browser, Locator, Page, expect

from .browsing import IN_A_BROWSER, RUN, browser, chromium, nothing_left, opened, sign_in, world
from .conftest import World
from .test_browser import deciding, held_run
from .test_browser_edits import quoting
from .test_stops import approvals

__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]
APPROVE = "Approve £180.00"
# A little more than the moment in which a second press does not count.
MOMENT_MS = 700


async def the_card(world: World, browser: Browser, **options: object) -> tuple[list[Json], Page, Locator]:
    """sam before a held refund: what approvals is asked, the page, and the button that approves."""
    await held_run(world)
    asked = await world.approvals(deciding(world))
    page = await opened(await sign_in(browser, world, "sam", **options), world, "/approvals")
    return asked, page, page.locator(f"#card-{RUN} [data-do=approve]")


async def nothing_is_asked(page: Page, asked: list[Json]) -> None:
    """A request of the page's that came later has been answered: none that decides was sent before it."""
    await page.evaluate("fetch('/console/session').then(() => undefined)")
    assert asked == []


async def at(button: Locator) -> tuple[float, float]:
    box = await button.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 4, box["y"] + box["height"] / 2


async def test_a_double_click_on_approve_only_arms_and_a_later_click_decides(world: World, browser: Browser) -> None:
    asked, page, button = await the_card(world, browser)
    await button.dblclick()
    await expect(page.locator(".armed")).to_have_count(1)
    await nothing_is_asked(page, asked)

    await expect(button).to_have_attribute("aria-disabled", "false")
    await button.click()
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")
    assert len(asked) == 1


@pytest.mark.parametrize("pause_ms", [0, 60, 150, 300, 480])
async def test_two_presses_at_any_pace_of_a_double_click_decide_nothing(
    world: World, browser: Browser, pause_ms: int
) -> None:
    asked, page, button = await the_card(world, browser)
    await page.mouse.move(*await at(button))
    for count in (1, 2, 3):
        await page.mouse.down(click_count=count)
        await page.mouse.up(click_count=count)
        await asyncio.sleep(pause_ms / 1000 if count < 2 else 0)
    await nothing_is_asked(page, asked)


async def test_a_press_that_began_before_the_arming_confirms_nothing(world: World, browser: Browser) -> None:
    asked, page, button = await the_card(world, browser)
    await page.locator(f"#card-{RUN}").focus()
    await page.mouse.move(*await at(button))
    await page.mouse.down()
    await page.keyboard.press("a")
    await expect(page.locator(".armed")).to_have_count(1)
    await page.mouse.up()
    await nothing_is_asked(page, asked)


@pytest.mark.parametrize("key", ["Enter", "Space"])
async def test_a_key_that_is_held_down_or_pressed_twice_only_arms(world: World, browser: Browser, key: str) -> None:
    asked, page, button = await the_card(world, browser)
    await button.focus()
    for _ in range(12):  # the first goes down, the rest repeat
        await page.keyboard.down(key)
    await asyncio.sleep(MOMENT_MS / 1000)
    for _ in range(12):
        await page.keyboard.down(key)
    await page.keyboard.up(key)
    await expect(page.locator(".armed")).to_have_count(1)
    await page.keyboard.press(key)
    await nothing_is_asked(page, asked)

    await expect(button).to_have_attribute("aria-disabled", "false")
    await asyncio.sleep(MOMENT_MS / 1000)
    await page.keyboard.press(key)
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")
    assert len(asked) == 1


async def test_the_letter_and_then_enter_decides_at_once_but_not_an_enter_that_is_held(
    world: World, browser: Browser
) -> None:
    asked, page, button = await the_card(world, browser)
    await page.locator(f"#card-{RUN}").focus()
    await page.keyboard.down("Enter")
    await page.keyboard.press("a")
    await expect(button).to_be_focused()
    for _ in range(5):
        await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    await nothing_is_asked(page, asked)

    await page.keyboard.press("Escape")
    await expect(page.locator(".armed")).to_have_count(0)
    await page.keyboard.press("a")
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")
    assert len(asked) == 1


async def test_a_double_tap_only_arms(world: World, browser: Browser) -> None:
    asked, page, button = await the_card(world, browser, has_touch=True, viewport={"width": 390, "height": 844})
    await button.scroll_into_view_if_needed()
    where = await at(button)
    await page.touchscreen.tap(*where)
    await page.touchscreen.tap(*where)
    await expect(page.locator(".armed")).to_have_count(1)
    await nothing_is_asked(page, asked)
    await expect(button).to_have_attribute("aria-disabled", "false")
    await page.touchscreen.tap(*await at(button))
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")


async def test_enter_twice_in_a_changed_amount_and_enter_held_approve_nothing(world: World, browser: Browser) -> None:
    await world.answering("tools-shop", "ask.tools.quote", quoting())
    asked, page, _ = await the_card(world, browser)
    button = page.locator(f"#card-{RUN} [data-do=send-edited]")
    await page.locator(f"#card-{RUN}").focus()
    await page.keyboard.press("e")
    await page.keyboard.type("120")
    await expect(button).to_have_attribute("aria-disabled", "false")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Enter")
    await expect(button).to_be_focused()
    await nothing_is_asked(page, asked)

    await page.get_by_label("Amount").focus()
    for _ in range(12):
        await page.keyboard.down("Enter")
    await asyncio.sleep(MOMENT_MS / 1000)
    for _ in range(12):
        await page.keyboard.down("Enter")
    await page.keyboard.up("Enter")
    await nothing_is_asked(page, asked)

    await expect(button).to_have_attribute("aria-disabled", "false")
    await asyncio.sleep(MOMENT_MS / 1000)
    await page.keyboard.press("Enter")
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Approved by sam")


async def test_an_amount_that_has_just_changed_under_the_finger_is_not_approved(world: World, browser: Browser) -> None:
    waits = {12000: asyncio.Event()}
    await world.answering("tools-shop", "ask.tools.quote", quoting(waits))
    asked, page, _ = await the_card(world, browser)
    button = page.locator(f"#card-{RUN} [data-do=send-edited]")
    await page.locator(f"#card-{RUN} .editing summary").click()
    await page.get_by_label("Amount").fill("120")
    await page.mouse.move(*await at(button))
    await page.mouse.down()
    waits[12000].set()
    await expect(button).to_contain_text("Approve £120.00")
    await page.mouse.up()
    await page.mouse.click(*await at(button))
    await nothing_is_asked(page, asked)


async def test_a_double_click_on_decline_opens_the_form_and_sends_no_reason_of_before(
    world: World, browser: Browser
) -> None:
    asked, page, _ = await the_card(world, browser)
    summary = page.locator(f"#card-{RUN} .declining summary")
    await page.locator(f"#card-{RUN}").focus()
    await page.keyboard.press("d")
    await page.keyboard.type("It was worn")
    await page.keyboard.press("Escape")
    await summary.dblclick()
    decline = page.locator(f"#card-{RUN} .declining form button").first
    await page.mouse.click(*await at(decline))
    await nothing_is_asked(page, asked)
    await decline.click()
    await expect(page.locator(f"#card-{RUN}")).to_contain_text("Declined by sam")


async def test_a_double_click_starts_one_run_and_presses_nothing_on_the_page_that_it_leads_to(
    world: World, browser: Browser
) -> None:
    await world.ticket(subject="Returning an unworn jacket")
    page = await opened(await sign_in(browser, world, "alex"), world, "/tickets/TCK-2004")
    await page.get_by_role("button", name="Start run").dblclick()
    await page.wait_for_url("**/tickets/TCK-2004?run=TCK-2004-1")
    take_over = page.get_by_role("button", name="Take over")
    await expect(take_over).to_be_visible()
    assert len(await world.desk.runs_of("acme", "TCK-2004")) == 1

    # As if the page had come between the two presses: whatever lies under the finger rests for a moment.
    await page.evaluate("sessionStorage.setItem('pressed-at', String(Date.now() + 3000))")
    await page.reload()
    await page.mouse.dblclick(*await at(take_over))
    assert (await world.runs.read("acme", RUN)).status == "running"
    await take_over.click()
    await expect(page.get_by_label("Your reply to the customer")).to_be_visible()


async def test_a_double_click_stops_a_run_not_before_it_is_confirmed(world: World, browser: Browser) -> None:
    await held_run(world)
    page = await opened(await sign_in(browser, world, "alex"), world, "/tickets/TCK-2004")
    await page.locator(".stop summary").click()
    confirm = page.locator(".stop form button")
    await page.mouse.dblclick(*await at(confirm))
    assert (await world.runs.read("acme", RUN)).status == "awaiting_approval"
    await confirm.click()
    await expect(page.locator(f"#head-{RUN}")).to_contain_text("Stopped")


async def test_a_double_click_sets_one_stop_and_lifts_one(world: World, browser: Browser) -> None:
    world.pays_in_pounds()
    sent = await approvals(world)
    page = await opened(await sign_in(browser, world, "ada"), world, "/stops")
    for reason in ("a strange pattern", "another one"):
        await page.get_by_label("Why?").fill(reason)
        await page.get_by_role("button", name="Stop it now").dblclick()
        await expect(page.locator("article", has_text=reason)).to_have_count(1)
        await expect(page.locator("#live")).to_have_text("Live")
    assert [one["say"] for one in sent] == ["stop-set"] * 2

    await page.get_by_role("button", name="Lift this stop").first.dblclick()
    await expect(page.locator("article")).to_have_count(1)
    await expect(page.locator("#live")).to_have_text("Live")
    assert [one["say"] for one in sent] == ["stop-set", "stop-set", "stop-lifted"]


async def test_enter_held_in_a_field_sets_no_stop(world: World, browser: Browser) -> None:
    world.pays_in_pounds()
    sent = await approvals(world)
    page = await opened(await sign_in(browser, world, "ada"), world, "/stops")
    why = page.get_by_label("Why?")
    await page.get_by_label("Only above").focus()
    await page.keyboard.down("Shift")
    await page.keyboard.down("Enter")  # it says that a reason is missing
    await why.fill("a strange pattern")
    await why.focus()
    for _ in range(5):
        await page.keyboard.down("Enter")
    await nothing_is_asked(page, sent)
