"""The console in a real browser: what a person sees, does and reads while runs go on."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import jwt
import pytest
from axe_playwright_python.async_playwright import Axe
from contracts.facts import HoldExpired
from contracts.parts import Json, Person
from gateway import app
from playwright.async_api import Browser, Locator, Page, expect
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .browsing import (
    IN_A_BROWSER,
    RUN,
    browser,
    chromium,
    nothing_left,
    opened,
    picture,
    sideways,
    sign_in,
    world,
)
from .conftest import World, connect, gateway
from .facts import (
    ISSUER,
    decided,
    held,
    proposed,
    quoted,
    refund,
    replied,
    started,
    story_from_the_hold,
    story_to_the_hold,
)

pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]
__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
MONEY = refund("c-2")


def rows(page: Page, run: str = RUN) -> Locator:
    return page.locator(f"#rows-{run} > li")


async def ids(page: Page) -> list[str | None]:
    return [await row.get_attribute("id") for row in await rows(page).all()]


def deciding(world: World) -> Any:
    """Decides as approvals would: the first decision is recorded, whoever comes second is told."""
    first: list[str] = []

    async def decide(body: Json) -> Json:
        subject = _subject(body["token"])
        if first:
            return {
                "status": 409,
                "title": "Decided already",
                "detail": f"{first[0]} decided before you. Your click changed nothing.",
            }
        first.append(subject)
        by = Person(subject=subject, issuer=ISSUER, role="approver")
        fact = decided(body["turn"], MONEY, by, body["decision"], body["note"])
        [event] = await world.others.say(body["run"], fact)
        return {"status": 200, "event": event.document()}

    return decide


def _subject(token: str) -> str:
    return str(jwt.decode(token, options={"verify_signature": False})["sub"])


async def held_run(world: World) -> None:
    await world.ticket(subject="Returning an unworn jacket")
    await world.others.say(RUN, *story_to_the_hold())
    await world.seen(RUN)


async def test_a_ticket_is_started_held_approved_by_another_and_paid_before_their_eyes(
    world: World, browser: Browser
) -> None:
    await world.ticket(subject="Returning an unworn jacket")
    await world.approvals(deciding(world))
    alex, sam = [await sign_in(browser, world, person) for person in ("alex", "sam")]
    queue = await opened(sam, world, "/approvals")
    await expect(queue.get_by_text("Nothing needs you")).to_be_visible()

    tickets = await opened(alex, world, "/tickets")
    await tickets.get_by_role("button", name="Start TCK-2004").click()
    await tickets.wait_for_url("**/tickets/TCK-2004?run=TCK-2004-1")
    await world.others.say(RUN, *story_to_the_hold()[1:])

    await expect(tickets.locator(".verdict.hold")).to_be_visible()
    await expect(tickets.locator(f"#decide-{RUN}")).to_contain_text("decides nothing")
    card = queue.locator(f"#card-{RUN}")
    await expect(card.locator("p.say")).to_have_text("Refund £180.00 to Mastercard ending 0937")
    await expect(queue).to_have_title("(1) Approvals · Turngate")

    await card.focus()
    await queue.keyboard.press("a")
    await expect(card.get_by_role("button", name="Approve £180.00")).to_be_focused()
    await queue.keyboard.press("Enter")
    await expect(card).to_contain_text("Approved by sam")
    await world.others.say(RUN, *story_from_the_hold()[1:3])
    await expect(card).to_contain_text("Refund made")
    assert await queue.evaluate("document.activeElement.id") == f"card-{RUN}"
    await world.others.say(RUN, *story_from_the_hold()[3:])
    await expect(card).to_contain_text("Run ended: resolved")
    await expect(queue).to_have_title("Approvals · Turngate")
    await expect(tickets.locator(f"#head-{RUN}")).to_contain_text("Resolved")
    await expect(tickets.locator(f"#side-{RUN}")).to_contain_text("−£180.00")


async def test_a_decline_carries_its_reason_to_the_agent(world: World, browser: Browser) -> None:
    await held_run(world)
    asked = await world.approvals(deciding(world))
    queue = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    card = queue.locator(f"#card-{RUN}")

    await card.focus()
    await queue.keyboard.press("d")
    await queue.keyboard.type("It was worn, see the photo")
    await queue.keyboard.press("Control+Enter")

    await expect(card).to_contain_text("Declined by sam")
    await expect(card).to_contain_text("It was worn, see the photo")
    assert (asked[0]["decision"], asked[0]["note"]) == ("decline", "It was worn, see the photo")


async def test_who_comes_second_reads_who_was_first(world: World, browser: Browser) -> None:
    await held_run(world)

    async def too_late(body: Json) -> Json:
        return {"status": 409, "title": "Decided already", "detail": "Sue approved this 3 s before you."}

    await world.approvals(too_late)
    queue = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    card = queue.locator(f"#card-{RUN}")
    await card.get_by_role("button", name="Approve £180.00").click()
    await card.get_by_role("button", name="Approve £180.00").click()

    await expect(card.get_by_text("Sue approved this 3 s before you.")).to_be_visible()
    await world.others.say(RUN, decided(2, MONEY, Person(subject="sue", issuer=ISSUER, role="approver")))
    await expect(card).to_contain_text("Approved by sue")
    assert await rows(queue).count() == 1


async def test_a_page_loaded_in_the_middle_is_the_page_that_was_there(world: World, browser: Browser) -> None:
    await held_run(world)
    page = await opened(await sign_in(browser, world, "lee"), world, "/tickets/TCK-2004")
    await world.others.say(RUN, *story_from_the_hold()[:3])
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Refund made")
    before = await page.locator(f"#rows-{RUN}").inner_text()

    await page.reload()

    assert await page.locator(f"#rows-{RUN}").inner_text() == before
    await world.others.say(RUN, *story_from_the_hold()[3:])
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Run ended: resolved")
    assert len(set(await ids(page))) == await rows(page).count() == 8


async def test_a_lost_connection_is_caught_up_without_a_lost_or_doubled_line(world: World, browser: Browser) -> None:
    await held_run(world)
    await world.approvals(deciding(world))
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets/TCK-2004")
    card = page.locator(f"#decide-{RUN}")
    async with AsyncExitStack() as again:
        await world.stop_gateway()
        await expect(page.locator("#lost")).to_contain_text("Deciding is off")
        await card.get_by_role("button", name="Approve £180.00").click(force=True)
        await expect(page.locator(".armed")).to_have_count(0)
        asked = asyncio.Event()

        async def away(_: object) -> Response:
            asked.set()
            return PlainTextResponse("away", 503)

        # One that answers 503 while it is put in place: EventSource would give up for good here.
        port = world.settings.http_port
        async with app.listening(Starlette(routes=[Route("/{path:path}", away)]), "127.0.0.1", port):
            await asyncio.wait_for(asked.wait(), 30)
        await world.others.say(RUN, *story_from_the_hold()[:3])
        await again.enter_async_context(gateway(world.settings))
        await expect(page.locator("#live")).to_have_text("Live", timeout=30_000)
        await expect(page.locator("#lost")).to_be_hidden()
        await world.others.say(RUN, *story_from_the_hold()[3:])
        await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Run ended: resolved")

        seen = await ids(page)
        await page.reload()
        assert await ids(page) == seen
        assert len(set(seen)) == len(seen) == 8


async def test_the_models_words_appear_as_they_come_and_give_way_to_the_fact(world: World, browser: Browser) -> None:
    await world.ticket()
    await world.others.say(RUN, started())
    page = await opened(await sign_in(browser, world, "alex"), world, "/tickets/TCK-2004?run=TCK-2004-1")
    runner = await connect(world.nats, "agent-runner")
    for words in ("I am sorry ", "about the jacket. ", "<b>Bold</b> \u202etxt"):
        await runner.live(world.key(RUN), {"step": 1, "text": words})

    await expect(page.locator(f"#live-text-{RUN}")).to_have_text("I am sorry about the jacket. <b>Bold</b> ⟨U+202E⟩txt")
    await world.others.say(RUN, replied("I am sorry about the jacket."))

    await expect(page.locator(f"#live-{RUN}")).to_have_count(0)
    await expect(rows(page).last).to_contain_text("Reply sent")
    await runner.close()


async def test_many_tabs_share_one_connection_and_all_still_work(world: World, browser: Browser) -> None:
    await held_run(world)
    context = await sign_in(browser, world, "sam")
    pages = [await opened(context, world, "/approvals") for _ in range(8)]

    async with world.client("sam") as sam:
        metrics = (await sam.get("/metrics")).text
    await world.others.say(RUN, HoldExpired(turn=2, call_ids=["c-2"]))

    assert "turngate_http_streams 1.0" in metrics
    for page in pages:
        await expect(page.locator(f"#card-{RUN}")).to_contain_text("obody decided in time")


async def test_who_signs_in_after_somebody_else_sees_their_own_streams(world: World, browser: Browser) -> None:
    await held_run(world)
    context = await sign_in(browser, world, "alex")
    page = await opened(context, world, "/approvals")
    other = await opened(context, world, "/tickets")
    await page.get_by_role("button", name="Sign out").click()
    await expect(other.locator("#lost")).to_contain_text("igned out")
    await page.get_by_role("link", name="Sign in").click()
    await page.locator("form", has=page.locator("input[value=sam]")).get_by_role("button").click()
    await page.goto(f"{world.url}/approvals")
    await expect(page.locator("#live")).to_have_text("Live")

    await world.others.say("TCK-2-1", started("TCK-2"), *story_to_the_hold()[1:])

    await expect(page.locator("#card-TCK-2-1").get_by_role("button", name="Approve £180.00")).to_be_visible()
    await expect(page).to_have_title("(2) Approvals · Turngate")


async def test_signing_out_in_one_tab_takes_everything_off_the_others(world: World, browser: Browser) -> None:
    await held_run(world)
    await world.ticket("TCK-3", subject="Tom's other jacket")
    context = await sign_in(browser, world, "sam")
    run, fresh, here = [
        await opened(context, world, path) for path in ("/tickets/TCK-2004", "/tickets/TCK-3", "/tickets")
    ]
    await run.locator(f"#decide-{RUN}").get_by_text("Decline", exact=False).first.click()
    await run.locator(".declining textarea").fill("It was worn")

    await here.get_by_role("button", name="Sign out").click()

    for page in (run, fresh):
        await expect(page.locator("#lost")).to_contain_text("Signed out")
        await expect(page).to_have_title("Signed out · Turngate")
        await expect(page.locator("body")).not_to_contain_text("Tom")
        await expect(page.locator("body")).not_to_contain_text("jacket")
        await expect(page.locator("main").get_by_role("button")).to_have_count(0)
    await expect(run.get_by_label("What you had typed, not sent")).to_have_value("It was worn")
    found = await Axe().run(run)
    assert found.violations_count == 0, found.generate_report()
    await picture(run, "signed-out")
    await run.get_by_role("link", name="Sign in").click()
    await run.locator("form", has=run.locator("input[value=sam]")).get_by_role("button").click()
    await run.wait_for_url("**/tickets/TCK-2004")


async def test_a_hold_that_expires_while_someone_is_about_to_approve_is_disarmed(
    world: World, browser: Browser
) -> None:
    await held_run(world)
    queue = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    await queue.locator(f"#card-{RUN}").focus()
    await queue.keyboard.press("a")
    await expect(queue.locator(".armed")).to_have_count(1)

    await world.others.say(RUN, HoldExpired(turn=2, call_ids=["c-2"]))

    await expect(queue.locator(".armed")).to_have_count(0)
    await expect(queue.locator("[data-do=approve]")).to_have_count(0)


async def test_a_bare_key_never_decides(world: World, browser: Browser) -> None:
    await held_run(world)
    asked = await world.approvals(deciding(world))
    queue = await opened(await sign_in(browser, world, "sam"), world, "/approvals")
    card = queue.locator(f"#card-{RUN}")
    await card.focus()

    await queue.keyboard.press("Enter")
    await queue.keyboard.press("Control+a")
    await queue.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'a', repeat: true, bubbles: true}))"
    )
    await expect(queue.locator(".armed")).to_have_count(0)
    await queue.keyboard.press("d")
    await queue.keyboard.type("a jacket")
    await expect(queue.locator(".armed")).to_have_count(0)
    await queue.keyboard.press("Escape")
    await queue.keyboard.press("a")
    await queue.keyboard.press("Escape")
    await expect(queue.locator(".armed")).to_have_count(0)
    assert await queue.evaluate("document.activeElement.id") == f"card-{RUN}"
    assert asked == []


async def test_no_key_is_taken_twice_and_the_sheet_names_them(world: World, browser: Browser) -> None:
    page = await opened(await sign_in(browser, world, "sam"), world, "/tickets")
    await page.keyboard.press("?")
    keys = await page.locator("#sheet-keys dd").all_inner_texts()
    assert len(keys) == len(set(keys)) >= 10
    await page.keyboard.press("Escape")
    # the focus may still be in the sheet that has just closed: that is no typing
    await page.locator("#keys-off").evaluate(
        "(box) => box.dispatchEvent(new KeyboardEvent('keydown', {key: '?', bubbles: true}))"
    )
    await expect(page.locator("#sheet")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.locator("#sheet")).to_be_hidden()
    await page.keyboard.press("g")
    await page.keyboard.press("a")
    await page.wait_for_url("**/approvals")


async def test_the_console_works_with_scripts_off(world: World, browser: Browser) -> None:
    await held_run(world)
    asked = await world.approvals(deciding(world))
    context = await sign_in(browser, world, "sam", java_script_enabled=False)
    page = await opened(context, world, "/approvals", live=False)

    await page.get_by_role("button", name="Approve £180.00").click()

    await page.wait_for_url("**/tickets/TCK-2004?run=TCK-2004-1")
    await expect(page.locator(f"#rows-{RUN}")).to_contain_text("Approved by sam")
    assert [one["decision"] for one in asked] == ["approve"]


async def test_text_from_outside_is_inert(world: World, browser: Browser) -> None:
    nasty = (
        "<img src=x onerror=document.title='taken'><script>document.title='taken'</script> \u202eev il "
        + "long " * 4000
    )
    await world.ticket(subject=nasty[:400], body=nasty)
    context = await sign_in(browser, world, "lee")
    page = await opened(context, world, "/tickets")
    await world.others.say(
        RUN,
        started(subject=nasty[:400], body=nasty),
        proposed(1, ("c-2", "issue_refund", {"reason": nasty}), words=nasty),
        quoted(
            1,
            MONEY.model_copy(
                update={"effect": MONEY.effect and MONEY.effect.model_copy(update={"summary": nasty[:200]})}
            ),
        ),
        held(1, MONEY),
    )
    await world.seen(RUN)
    for path in ("/tickets", "/tickets/TCK-2004", "/approvals"):
        await page.goto(world.url + path)
        await expect(page.locator("#live")).to_have_text("Live")
        assert await page.locator("img, main script").count() == 0
        assert await page.title() != "taken"
        assert "\u202e" not in await page.content()
        assert await sideways(page) <= 0
