"""Whichever way a page came to what it shows, in a real browser: what the model writes, and cards that come late."""

from datetime import UTC, datetime, timedelta

import pytest
from contracts.facts import CustomerSaid, RunCancelled, RunStarted
from playwright.async_api import Browser, Page, expect

from .browsing import IN_A_BROWSER, RUN, accessible, browser, chromium, nothing_left, opened, sign_in, world
from .conftest import World, connect
from .facts import (
    ALEX,
    decided,
    executed,
    forwarded,
    proposed,
    refund,
    replied,
    started,
    story_from_the_hold,
    story_to_the_hold,
)

pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]
__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures


async def running(world: World, browser: Browser, *, shared: bool = True) -> Page:
    """A page of a run; `shared`: its streams are those of all tabs."""
    await world.ticket()
    await world.others.say(RUN, started())
    context = await sign_in(browser, world, "alex")
    if not shared:
        await context.add_init_script("window.SharedWorker = undefined")
    return await opened(context, world, f"/tickets/TCK-2004?run={RUN}")


async def test_words_that_come_behind_their_fact_are_not_shown(world: World, browser: Browser) -> None:
    page = await running(world, browser)
    runner = await connect(world.nats, "agent-runner")
    await runner.live(world.key(RUN), {"step": 1, "text": "I look the or"})
    await expect(page.locator(f"#live-text-{RUN}")).to_have_text("I look the or")
    await world.others.say(RUN, proposed(1, ("c-1", "get_order", {"order_reference": "ORD-1"})))
    await expect(page.locator(f"#live-{RUN}")).to_have_count(0)
    # when the rest of that answer comes late, and then the next answer begins
    await runner.live(world.key(RUN), {"step": 1, "text": "der up."})
    await runner.live(world.key(RUN), {"step": 2, "text": "Next"})
    # then the next answer is all that is shown
    await expect(page.locator(f"#live-text-{RUN}")).to_have_text("Next")
    await runner.close()


async def test_nothing_is_being_written_any_more_once_the_run_was_stopped(world: World, browser: Browser) -> None:
    page = await running(world, browser)
    runner = await connect(world.nats, "agent-runner")
    await runner.live(world.key(RUN), {"step": 1, "text": "I look the or"})
    await expect(page.locator(f"#live-{RUN}")).to_be_visible()
    await world.others.say(RUN, RunCancelled(by=ALEX))
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Stopped by alex")
    await expect(page.locator(f"#live-{RUN}")).to_have_count(0)
    await runner.close()


async def test_words_that_another_connection_showed_go_with_their_fact(world: World, browser: Browser) -> None:
    page = await running(world, browser, shared=False)
    runner = await connect(world.nats, "agent-runner")
    await runner.live(world.key(RUN), {"step": 1, "text": "I am sorry"})
    await expect(page.locator(f"#live-{RUN}")).to_be_visible()
    # when the page's streams begin anew, as they do behind a proxy, and the answer comes over the new ones
    async with page.expect_response(lambda answer: f"/stream/runs/{RUN}" in answer.url):
        await page.evaluate("import('/static/stream.js').then((streams) => streams.retry())")
    await world.others.say(RUN, replied("I am sorry."))
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Reply sent")
    await expect(page.locator(f"#live-{RUN}")).to_have_count(0)
    await runner.close()


async def test_what_a_page_says_does_not_depend_on_where_it_is_scrolled_to(world: World, browser: Browser) -> None:
    """A row that the browser leaves undrawn until it is near has no text: one of the two rows was missing in turn."""
    await world.ticket()
    more = [CustomerSaid(text=f"Message {n}", message_id=f"m-{n}") for n in range(200)]
    await world.others.say(RUN, started(), *more[:100])
    await world.seen(RUN)
    context = await sign_in(browser, world, "lee", viewport={"width": 1280, "height": 300})
    page = await opened(context, world, "/tickets/TCK-2004")
    rows = page.locator(f"#rows-{RUN}")
    for where in ("0", "document.documentElement.scrollHeight"):
        await page.evaluate(f"window.scrollTo(0, {where})")
        said = (await rows.inner_text()).split("\n")
        assert [line for line in said if line.startswith("Message")] == [f"Message {n}" for n in range(100)]
    await world.others.say(RUN, *more[100:])
    await expect(rows).to_contain_text("Message 199")
    streamed = await rows.inner_text()
    await page.reload()
    assert await rows.inner_text() == streamed
    assert streamed.count("Message ") == 200


async def test_a_page_of_two_days_and_of_a_decline_is_accessible_and_fits(world: World, browser: Browser) -> None:
    await world.ticket()
    first, *rest = story_to_the_hold()
    assert isinstance(first, RunStarted)
    written = datetime.now(UTC) - timedelta(days=1)
    begun = first.model_copy(update={"ticket": first.ticket.model_copy(update={"opened_at": written})})
    money = refund("c-2")
    await world.others.say(RUN, begun, *rest, decided(2, money, decision="decline", note="It was worn."))
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets/TCK-2004")
    await world.others.say(RUN, forwarded(2, money, declined=("c-2",)))
    await world.others.say(RUN, executed(2, ("c-2", "A person declined this, so it was not done."), is_error=True))
    rows = page.locator(f"#rows-{RUN}")
    await expect(rows.locator("summary", has_text="Declined")).to_be_visible()
    await expect(rows.locator(".day")).to_have_count(1)
    await expect(rows).not_to_contain_text("Error")
    await accessible(page, 390, 768, 1440)


async def test_rows_that_are_put_back_to_an_older_state_catch_up(world: World, browser: Browser) -> None:
    """As a card is that the inbox tells of later than the run's own stream."""
    await world.ticket()
    await world.others.say(RUN, *story_to_the_hold())
    await world.seen(RUN)
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets/TCK-2004")
    rows = page.locator(f"#rows-{RUN}")
    older = await rows.evaluate("(list) => list.outerHTML")
    await world.others.say(RUN, *story_from_the_hold()[:3])
    await expect(rows).to_contain_text("Refund made")
    now = await rows.evaluate("(list) => list.innerHTML.trim()")
    await rows.evaluate(
        "(list, older) => { list.outerHTML = older; return import('/static/stream.js').then((s) => s.followAll()); }",
        older,
    )
    await expect(rows).to_contain_text("Refund made")
    assert await rows.evaluate("(list) => list.innerHTML.trim()") == now
