"""A model that is away, on the pages as a person has them open."""

import asyncio
from datetime import UTC, datetime

from contracts.bus import Bus
from contracts.model_wait import SENT_EVERY, ModelWait
from contracts.subjects import RunKey
from playwright.async_api import Browser, expect

from . import browsing
from .browsing import IN_A_BROWSER, accessible, opened, sign_in
from .conftest import World, connect
from .facts import replied, started

pytestmark = IN_A_BROWSER
browser, chromium, nothing_left, world = browsing.browser, browsing.chromium, browsing.nothing_left, browsing.world
SINCE = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC)
AWAY = ModelWait(state="away", since=SINCE, attempt=3, status="529")
KEY = RunKey("acme", "TCK-2004-1")


async def goes_on_saying(runner: Bus, wait: ModelWait) -> None:
    while True:
        await runner.send_model_wait(KEY, wait)
        await asyncio.sleep(SENT_EVERY / 3)


async def test_a_model_that_is_away_is_on_the_runs_page_and_in_the_queue_until_it_answers(
    world: World, browser: Browser
) -> None:
    await world.ticket()
    await world.others.say(KEY.run, started())
    await world.seen(KEY.run)
    runner = await connect(world.nats, "agent-runner")
    context = await sign_in(browser, world, "alex")
    page = await opened(context, world, "/tickets/TCK-2004")
    queue = await opened(context, world, "/tickets")
    wait, line = page.locator(f"#wait-{KEY.run}"), queue.locator("#ticket-TCK-2004")
    await expect(wait).to_be_hidden()

    saying = asyncio.create_task(goes_on_saying(runner, AWAY))
    await expect(wait).to_contain_text("The model is away (529) since 09:00:00, attempt 3", timeout=15_000)
    await expect(line).to_contain_text("The model is away (529) since 09:00:00, attempt 3", timeout=15_000)
    await accessible(page, 390, 768, 1440)
    await accessible(queue, 390, 768, 1440)
    await queue.set_viewport_size({"width": 390, "height": 844})
    await expect(line.get_by_text("The model is away (529)")).to_be_visible()

    saying.cancel()
    await runner.send_model_wait(KEY, None)
    await world.others.say(KEY.run, replied("It is on its way."))
    await expect(wait).to_be_hidden(timeout=15_000)
    await expect(line).not_to_contain_text("away", timeout=15_000)
    await runner.close()
