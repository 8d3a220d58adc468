"""Each button that a role sees works for that role: every page is walked, and every form on it is sent as it stands."""

import re
from typing import Any

import jwt
import pytest
from contracts.facts import TurnHeld
from contracts.identity import ROLES as SCOPES_OF
from contracts.parts import Json, Needs, Person
from contracts.people import may_release
from playwright.async_api import Browser, Page, expect

from .browsing import IN_A_BROWSER, browser, chromium, nothing_left, sign_in, world
from .conftest import World
from .facts import ALEX, ISSUER, SAM, held, refund, started, story_to_the_hold

pytestmark = [*IN_A_BROWSER, pytest.mark.timeout(280)]
__all__ = ["browser", "chromium", "nothing_left", "world"]  # fixtures
ROLES = {"ari": "auditor", "ada": "admin", "lee": "lead", "sam": "approver", "alex": "operator"}
SCOPES = {"stop-set": "stop", "stop-lifted": "stop", "budget-set": "stop", "policy-promoted": "policy"}
START = ("/tickets?state=all", "/tickets", "/approvals")
# As a person who presses each button of each form would send it, with something written where something is asked for.
SEND = """async () => {
  const sent = [];
  for (const form of document.querySelectorAll("form[method=post]")) {
    const action = new URL(form.action).pathname;
    if (action === "/sign-out") { sent.push([action, "", 0, ""]); continue; }
    const buttons = [...form.querySelectorAll("button")].filter((button) => button.type === "submit");
    for (const button of buttons.length ? buttons : [undefined]) {
      const body = new URLSearchParams(new FormData(form, button));
      for (const field of form.querySelectorAll("textarea, [required]"))
        if (field.name && !body.get(field.name)) body.set(field.name, "Because of the photo.");
      const headers = { Accept: "application/json", "Idempotency-Key": crypto.randomUUID() };
      const answer = await fetch(form.action, { method: "POST", body, headers, redirect: "manual" });
      sent.push([action, button?.textContent.trim() ?? "", answer.status, await answer.text()]);
    }
  }
  return sent;
}"""


async def states(world: World, number: int = 1) -> None:
    """A ticket in each state that has buttons of its own, and a hold for each kind of decider."""
    mine, theirs, running, taken, chat = (f"TCK-{number}{state}" for state in range(2, 7))
    await world.ticket(f"TCK-{number}1", subject="Not started")
    for ticket, by, needs in ((mine, ALEX, Needs()), (theirs, SAM, Needs(role="lead", amount_minor=18000))):
        await world.ticket(ticket, subject="Held")
        *before, _ = story_to_the_hold()[1:]
        await world.others.say(f"{ticket}-1", started(ticket, by=by), *before, held(2, refund("c-2"), needs=needs))
    for ticket, channel in ((running, "ticket"), (taken, "ticket"), (chat, "chat")):
        await world.ticket(ticket, channel=channel, subject="Running")
        await world.others.say(f"{ticket}-1", started(ticket, channel=channel))
    async with world.client("alex") as alex:
        assert (await alex.post(f"/v1/runs/{taken}-1/take-over")).status_code == 202
    for ticket in (mine, theirs, running, taken, chat):
        await world.seen(f"{ticket}-1")


def deciding(world: World) -> Any:
    """Decides by the rule that approvals has, so that a button for who may not is found out."""

    async def decide(body: Json) -> Json:
        claims = jwt.decode(body["token"], options={"verify_signature": False})
        person = Person(
            subject=claims["sub"], issuer=ISSUER, role=claims["role"], limit_minor=claims.get("limit_minor")
        )
        history = await world.runs.history("acme", body["run"])
        first = history.events[0].fact
        [hold] = [event.fact for event in history.events if isinstance(event.fact, TurnHeld)]
        needs = next(one.needs for one in hold.holds if one.call_id == body["call_id"])
        if may_release(person, needs, first):  # type: ignore[arg-type]
            return {"status": 200, "event": {}}
        return {"status": 403, "title": "Not yours to decide", "detail": f"{person.subject} may not."}

    return decide


async def for_the_tenant(body: Json) -> Json:
    """Answers by the scopes that approvals asks for; nothing comes of it here."""
    role = jwt.decode(body["token"], options={"verify_signature": False})["role"]
    if SCOPES[body["say"]] in SCOPES_OF[role]:
        return {"status": 422, "title": "Not taken", "detail": "Nothing was done."}
    return {"status": 403, "title": "Not for your role", "detail": "Nothing was done."}


async def walk(page: Page, world: World, number: int) -> dict[str, list[Any]]:
    """What each form on each page answered, from the tickets on along every link of the console; of tickets those that
    were made for this role, and those that the one before it has left behind."""
    found: dict[str, list[Any]] = {}
    ahead = list(START)
    while ahead:
        path = ahead.pop()
        if path in found or (path not in START and any(path.split("?")[0] == known.split("?")[0] for known in found)):
            continue  # one page of each kind of list is enough
        if (ticket := re.match(r"/tickets/TCK-(\d)", path)) and int(ticket[1]) not in (number, number - 1):
            continue
        found[path] = []
        if path.startswith("/audit/export"):
            kept = await page.request.get(world.url + path)
            assert kept.status == 200, f"a link leads to {path}: {kept.status}"
            continue  # something to keep, not a page
        answer = await page.goto(world.url + path, wait_until="domcontentloaded")
        assert answer is not None
        assert answer.status < 400, f"a link leads to {path}: {answer.status}"
        links: list[str] = await page.eval_on_selector_all(
            "a[href^='/']:not([href^='/sign-in'])", "links => links.map((link) => link.getAttribute('href'))"
        )
        ahead += links
        found[path] = await page.evaluate(SEND)
    return found


async def test_every_button_that_a_role_sees_works_for_it(world: World, browser: Browser) -> None:
    await world.approvals(deciding(world))
    await world.answering("approvals", "ask.approvals.tenant", for_the_tenant)
    seen: dict[str, set[str]] = {}
    for number, (person, role) in enumerate(ROLES.items(), 1):
        await states(world, number)
        context = await sign_in(browser, world, person)
        found = await walk(await context.new_page(), world, number)
        assert len(found) >= 9, found.keys()
        for path, forms in found.items():
            for action, button, status, text in forms:
                assert status not in (401, 403, 404, 405), (
                    f"{role} sees {button!r} on {path}, but {action} answers {status}: {text}"
                )
                assert status < 500, f"{action}: {text}"
        seen[role] = {action.rsplit("/", 1)[1] for forms in found.values() for action, *_ in forms}
        await context.close()

    works = {"runs", "take-over", "cancel", "messages"}
    assert seen["auditor"] == {"sign-out"}
    assert not seen["admin"] & (works | {"decisions"})
    assert seen["operator"] >= works
    assert "decisions" not in seen["operator"]
    assert seen["approver"] & seen["lead"] >= works | {"decisions"}


async def test_signing_out_is_on_every_page_and_works(world: World, browser: Browser) -> None:
    await states(world)
    context = await sign_in(browser, world, "ari")
    page = await context.new_page()
    for path in ("/tickets", "/tickets/TCK-12", "/approvals"):
        await page.goto(world.url + path)
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_text("You are signed out")).to_be_visible()
    assert await context.cookies(f"{world.url}/") == []
