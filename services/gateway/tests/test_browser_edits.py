"""Approving with changes, and what has changed by itself, in a real browser."""

import asyncio
from typing import Any

import jwt
import pytest
from contracts.entitlement import Held, Word, above_own_limit, bar
from contracts.facts import HoldEscalated, ReminderSent, TurnRefused
from contracts.parts import Json, Needs, Person
from gateway.folding import fold
from playwright.async_api import Browser, Locator, Page, expect
from turngate.issuer import Issuer

from .browsing import (
    IN_A_BROWSER,
    RUN,
    accessible,
    browser,
    chromium,
    nothing_left,
    opened,
    picture,
    sign_in,
    signed_in,
    world,
)
from .conftest import World
from .facts import (
    ISSUER,
    PACK,
    SAM,
    decided,
    ended,
    executed,
    forwarded,
    held,
    quoted,
    refund,
    replied,
    story_to_the_hold,
)

__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(120)]
HELD = refund("c-2")


def quoting(slow: dict[int, asyncio.Event] | None = None) -> Any:
    """Quotes as the tools service would; the amounts of `slow` only once they may."""

    async def quote(body: Json) -> Json:
        amount = body["edited"]["amount_pence"]
        if slow and amount in slow:
            await slow[amount].wait()
        now = refund("c-2", amount).model_copy(update={"edited": HELD.digest, "arguments": body["edited"]})
        return {"status": 200, "was": HELD.model_dump(mode="json"), "quote": now.model_dump(mode="json")}

    return quote


def deciding(world: World) -> Any:
    async def decide(body: Json) -> Json:
        fact = decided(body["turn"], HELD, SAM, body["decision"], body["note"], edited=body["edited"])
        [event] = await world.others.say(body["run"], fact)
        return {"status": 200, "event": event.document()}

    return decide


async def waiting(world: World, browser: Browser, path: str = "/approvals", **options: Any) -> tuple[Page, Locator]:
    await world.ticket(subject="Returning an unworn jacket")
    await world.others.say(RUN, *story_to_the_hold())
    await world.seen(RUN)
    live = options.get("java_script_enabled", True)
    page = await opened(await sign_in(browser, world, "sam", **options), world, path, live=live)
    return page, page.locator(f"#card-{RUN}")


async def test_an_amount_is_lowered_and_approved_without_a_mouse(world: World, browser: Browser) -> None:
    asked = await world.approvals(deciding(world))
    await world.answering("tools-shop", "ask.tools.quote", quoting())
    page, card = await waiting(world, browser)

    await card.focus()
    await page.keyboard.press("e")
    await expect(card.get_by_label("Amount")).to_be_focused()
    await page.keyboard.type("120")
    await expect(card.locator(".outcome")).to_contain_text("Refund £120.00 to Mastercard ending 0937")
    button = card.get_by_role("button", name="Approve £120.00 instead of £180.00")
    await expect(button).to_have_attribute("aria-disabled", "false")
    await page.keyboard.press("Enter")
    await expect(button).to_be_focused()
    assert asked == []
    await expect(button).to_have_attribute("aria-disabled", "false")  # it was off for the moment of a double press
    await page.keyboard.press("Enter")

    await expect(card).to_contain_text("Approved by sam")
    await expect(card).to_contain_text("amount £120.00 instead of £180.00")
    assert asked[0]["edited"] == HELD.arguments | {"amount_pence": 12000}
    await world.others.say(RUN, quoted(2, refund("c-2", 12000), attempt=2))


def deciding_by_the_rule(world: World, asked: list[Json]) -> Any:
    """Decides as approvals does: by the one rule, and by what a change comes to."""

    async def decide(body: Json) -> Json:
        asked.append(body)
        claims = jwt.decode(body["token"], options={"verify_signature": False})
        by = Person(subject=claims["sub"], issuer=ISSUER, role=claims["role"], limit_minor=claims.get("limit_minor"))
        view = fold((await world.runs.history("acme", body["run"])).events)
        assert view is not None
        [call] = view.holds
        word: Word = "change" if body["edited"] else body["decision"]
        barred = bar(Held(view.requested_by, view.customer, call.hold, call.quote), by, word)
        if body["edited"]:
            barred = barred or above_own_limit(body["edited"]["amount_pence"], call.quote, by)
        if barred is not None:
            return {"status": 403, "title": barred.title, "detail": barred.detail}
        fact = decided(body["turn"], HELD, by, body["decision"], body["note"], edited=body["edited"])
        [event] = await world.others.say(body["run"], fact)
        return {"status": 200, "event": event.document()}

    return decide


async def test_who_may_release_a_hundred_pounds_approves_eighty_of_a_held_hundred_and_eighty(
    world: World, browser: Browser
) -> None:
    asked: list[Json] = []
    await world.approvals(deciding_by_the_rule(world, asked))
    await world.answering("tools-shop", "ask.tools.quote", quoting())
    *before, _ = story_to_the_hold()
    await world.others.say(RUN, *before, held(2, HELD, needs=Needs(amount_minor=18_000)))
    await world.seen(RUN)
    issuer = Issuer(world.settings.tenants_dir.parent / "issuer")
    nia = await signed_in(browser, world, issuer.issue("nia", "acme", "approver", limit_minor=10_000))
    page = await opened(nia, world, "/approvals")
    await expect(page).to_have_title("(1) Approvals · Turngate")
    card = page.locator(f"#card-{RUN}")

    await expect(card.locator(".blocked")).to_contain_text("your own limit is £100.00")
    await expect(card.locator("[data-do=approve]")).to_have_count(0)
    await expect(card.get_by_text("Decline", exact=False).first).to_be_visible()
    await card.focus()
    await page.keyboard.press("a")
    await expect(page.locator(".armed")).to_have_count(0)
    await card.locator("summary", has_text="Approve less").click()
    await card.get_by_label("Amount").fill("120")
    await expect(card.locator(".outcome")).to_contain_text("your own limit is £100.00")
    await expect(card.locator("[data-do=send-edited]")).to_have_attribute("aria-disabled", "true")
    await picture(page, "own-limit")
    await card.get_by_label("Amount").fill("80")
    await card.get_by_role("button", name="Approve £80.00 instead of £180.00").click()

    await expect(card).to_contain_text("Approved by nia")
    assert [one["edited"]["amount_pence"] for one in asked] == [8000]
    now = refund("c-2", 8000).model_copy(update={"edited": HELD.digest})
    await world.others.say(RUN, quoted(2, now, attempt=2), forwarded(2, now), executed(2, ("c-2", "Refunded £80.00.")))
    await world.others.say(RUN, replied(), ended())
    await expect(card).to_contain_text("Run ended: resolved")
    await page.reload()
    await expect(card).to_contain_text("£80.00 of £180.00 asked")
    await expect(page.get_by_label("Your decisions")).to_contain_text("£80.00 of £180.00 asked")
    await picture(page, "came-to")


async def test_what_is_refused_after_its_approval_is_shown_as_that_wherever_it_is_shown(
    world: World, browser: Browser
) -> None:
    await world.approvals(deciding(world))
    page, card = await waiting(world, browser)
    sams = page.context
    await card.focus()
    await page.keyboard.press("a")
    await page.keyboard.press("Enter")
    await expect(card).to_contain_text("Approved by sam")
    results = executed(2, ("c-2", "Refunds are stopped."), is_error=True).results
    await world.others.say(
        RUN,
        quoted(2, HELD, attempt=2),
        TurnRefused(turn=2, attempt=2, pack=PACK, rule="stopped", results=results),
        replied("A colleague will answer you."),
        ended(),
    )
    await expect(card).to_contain_text("Run ended: resolved")
    await expect(card.locator("header")).to_contain_text("it was refused: stopped: no money moved")
    await expect(card.locator("header .pill")).to_have_text("Refused")
    await picture(page, "refused-live")
    await page.reload()
    await expect(card).to_contain_text("You approved it; it was refused: stopped: no money moved")
    await expect(card).to_contain_text("nothing of £180.00 asked")
    await picture(page, "refused")
    run = await opened(sams, world, "/tickets/TCK-2004")
    await expect(run.locator(f"#rows-{RUN}")).to_contain_text("stopped: no money moved, in spite of the approval")
    await picture(run, "refused")
    tickets = await opened(sams, world, "/tickets?state=all")
    await expect(tickets.locator("#ticket-TCK-2004")).to_contain_text("Approved, then refused: stopped")


async def test_the_last_answer_wins_and_only_what_is_shown_is_sent(world: World, browser: Browser) -> None:
    asked = await world.approvals(deciding(world))
    slow = {15000: asyncio.Event()}
    quotes = await world.answering("tools-shop", "ask.tools.quote", quoting(slow))
    page, card = await waiting(world, browser)
    await card.get_by_text("Approve with changes").click()
    amount, button = card.get_by_label("Amount"), card.locator("[data-do=send-edited]")

    await amount.fill("150")
    await expect(button).to_have_attribute("aria-disabled", "true")
    async with asyncio.timeout(10):
        while not quotes:
            await asyncio.sleep(0.01)
    await button.click(force=True)
    await amount.fill("90")
    await expect(button).to_have_text("Approve £90.00 instead of £180.00Ctrl Enter")
    slow[15000].set()
    await amount.fill("1,5")
    await expect(card.locator(".quoted")).to_contain_text("has to be an amount")
    await expect(button).to_have_attribute("aria-disabled", "true")
    await page.keyboard.press("Control+Enter")
    await amount.fill("200")
    await expect(card.locator(".outcome")).to_contain_text("that was asked for")
    await page.keyboard.press("Control+Enter")
    assert asked == []

    await amount.fill("90")
    await expect(button).to_have_attribute("aria-disabled", "false")
    await page.keyboard.press("Control+Enter")
    await expect(card).to_contain_text("Approved by sam")
    assert [one["edited"]["amount_pence"] for one in asked] == [9000]


async def test_what_is_typed_outlives_a_change_of_the_card(world: World, browser: Browser) -> None:
    await world.answering("tools-shop", "ask.tools.quote", quoting())
    page, card = await waiting(world, browser)
    await card.focus()
    await page.keyboard.press("e")
    await page.keyboard.type("120")
    await expect(card.locator(".outcome")).to_contain_text("£120.00")

    await world.others.say(RUN, decided(2, refund("c-9"), SAM))

    await expect(card.get_by_label("Amount")).to_have_value("120")
    await expect(card.get_by_role("button", name="Approve £120.00 instead of £180.00")).to_be_visible()


async def test_changes_can_be_approved_with_scripts_off(world: World, browser: Browser) -> None:
    asked = await world.approvals(deciding(world))
    page, card = await waiting(world, browser, java_script_enabled=False)
    await card.get_by_text("Approve with changes").click()
    await card.get_by_label("Amount").fill("£120.00")
    await card.get_by_role("button", name="Approve with these changes").click()
    await page.wait_for_url("**/tickets/TCK-2004?run=TCK-2004-1")
    assert asked[0]["edited"]["amount_pence"] == 12000


async def test_before_and_after_stand_side_by_side_and_say_which_approval_counts(
    world: World, browser: Browser
) -> None:
    await world.answering("tools-shop", "ask.tools.quote", quoting())
    page, card = await waiting(world, browser)
    needs = Needs(people=2, one_of_role="lead")
    now = refund("c-2", 15000, before=3000)
    await world.others.say(
        RUN,
        decided(2, HELD),
        forwarded(2, HELD),
        quoted(2, now, attempt=2),
        held(2, now, attempt=2, needs=needs),
        ReminderSent(turn=2, call_ids=["c-2"], role="approver"),
        HoldEscalated(turn=2, call_ids=["c-2"], role="lead"),
    )
    await expect(card.locator(".moved")).to_contain_text("This has changed since it was shown before")
    row = card.locator(".compare tr", has_text="Refundable before it")
    await expect(row.locator(".was")).to_have_text("£180.00")
    await expect(row.locator(".now")).to_have_text("£150.00")
    await expect(card.locator(".moved")).to_contain_text("sam approved what it was before. That does not count")
    await expect(card).to_contain_text("Needs 2 people, one of them a lead")
    await expect(card).to_contain_text("Passed on to leads; reminded")
    await card.get_by_text("Approve with changes").click()
    await card.get_by_label("Amount").fill("120")
    await expect(card.locator(".outcome")).to_be_visible()
    await accessible(page, 390, 1440)
