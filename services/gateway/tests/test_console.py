"""The console without a script: pages, sign-in, and forms that work by themselves."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from .conftest import World
from .facts import SAM, refund, started, story_from_the_hold, story_to_the_hold

pytestmark = pytest.mark.timeout(60)
SAME_SITE = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}


@asynccontextmanager
async def browser(world: World, person: str | None = "sam", tenant: str = "acme") -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=world.url, headers=SAME_SITE, timeout=20) as client:
        if person:
            answer = await world.sign_in(client, person, tenant)
            assert answer.status_code == 303, answer.text
        yield client


def shown_forms(page: str, action: str) -> list[dict[str, str]]:
    """The hidden fields of each form that goes to `action`."""
    forms = re.findall(rf'<form method="post" action="{re.escape(action)}\?for=\w+".*?</form>', page, re.S)
    return [dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)) for form in forms]


async def test_a_customer_has_no_console(world: World) -> None:
    async with browser(world, "cust-C-1004") as tom:
        assert (await tom.get("/tickets")).status_code == 403


async def test_pages_forbid_what_is_not_theirs(world: World) -> None:
    async with browser(world) as sam:
        page = await sam.get("/tickets")
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\ssrc=)", page.text)
    assert not re.search(r"\sstyle=|\son\w+=|<style", page.text)
    assert page.headers["cache-control"] == "no-store"


async def test_the_queue_groups_tickets_by_what_they_wait_for(world: World) -> None:
    await world.ticket("TCK-1", subject="Not started yet")
    await world.ticket("TCK-2")
    await world.others.say("TCK-2-1", started("TCK-2"), *story_to_the_hold()[1:])
    await world.seen("TCK-2-1")
    async with browser(world) as sam:
        page = (await sam.get("/tickets")).text
    assert page.index("Needs a decision") < page.index("Refund £180.00 to Mastercard") < page.index("Not started")
    assert 'action="/tickets/TCK-1/runs?for=' in page
    assert 'action="/tickets/TCK-2/runs' not in page


async def test_a_run_is_started_by_form_and_shown(world: World) -> None:
    await world.ticket()
    async with browser(world, "alex") as alex:
        started_run = await alex.post("/tickets/TCK-2004/runs")
        assert (started_run.status_code, started_run.headers["location"]) == (303, "/tickets/TCK-2004?run=TCK-2004-1")
        page = (await alex.get(started_run.headers["location"])).text
    assert "Run started" in page
    assert 'data-stream="/console/stream/runs/TCK-2004-1?for=' in page


async def test_a_hold_is_approved_by_form(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.seen("TCK-2004-1")
    asked = await world.approvals({"status": 200, "event": {}})
    async with browser(world, "sam") as sam:
        page = (await sam.get("/approvals")).text
        [form, *_] = shown_forms(page, "/runs/TCK-2004-1/decisions")
        answer = await sam.post(
            "/runs/TCK-2004-1/decisions", data=form | {"decision": "approve", "note": "Scanned in."}
        )
    assert answer.status_code == 303
    [request] = asked
    assert (request["turn"], request["call_id"], request["digest"]) == (2, "c-2", refund("c-2").digest)
    assert (request["decision"], request["note"]) == ("approve", "Scanned in.")


async def test_a_decline_needs_a_reason(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    asked = await world.approvals({"status": 200, "event": {}})
    async with browser(world, "sam") as sam:
        page = (await sam.get("/tickets/TCK-2004?run=TCK-2004-1")).text
        [*_, form] = shown_forms(page, "/runs/TCK-2004-1/decisions")
        refused = await sam.post("/runs/TCK-2004-1/decisions", data=form | {"note": "  "})
        done = await sam.post("/runs/TCK-2004-1/decisions", data=form | {"note": "It was worn."})
    assert (refused.status_code, done.status_code) == (422, 303)
    assert "Nothing was declined" in refused.text
    assert [request["note"] for request in asked] == ["It was worn."]


async def test_who_asked_sees_no_buttons_and_is_refused_if_they_send_the_form_anyway(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", started(by=SAM), *story_to_the_hold()[1:])
    await world.seen("TCK-2004-1")
    await world.approvals({"status": 403, "title": "Not yours to decide", "detail": "You started this run."})
    async with browser(world, "sam") as sam:
        page = (await sam.get("/approvals")).text
        form = {"turn": 2, "call_id": "c-2", "digest": refund("c-2").digest, "decision": "approve"}
        refused = await sam.post("/runs/TCK-2004-1/decisions", data=form)
    assert shown_forms(page, "/runs/TCK-2004-1/decisions") == []
    assert "You started this run, so another person has to decide" in page
    assert refused.status_code == 403
    assert "You started this run." in refused.text


async def test_a_script_that_sends_a_form_is_answered_for_a_script(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.approvals({"status": 409, "title": "Decided already", "detail": "Sue approved this 3 s before you."})
    form = {"turn": 2, "call_id": "c-2", "digest": refund("c-2").digest, "decision": "approve"}
    async with browser(world, "sam") as sam:
        answer = await sam.post("/runs/TCK-2004-1/decisions", data=form, headers={"Accept": "application/json"})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "Sue approved this 3 s before you."


async def test_an_auditor_is_shown_no_action_at_all(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.seen("TCK-2004-1")
    async with browser(world, "ari") as ari:
        pages = [(await ari.get(path)).text for path in ("/tickets", "/tickets/TCK-2004", "/approvals")]
    for page in pages:
        assert re.findall(r'<form[^>]*action="([^"?]*)', page) == ["/sign-out"]


async def test_what_a_person_is_refused_is_said_for_a_person(world: World) -> None:
    async with browser(world) as sam:
        missing = await sam.get("/chat")
        ticket = await sam.get("/tickets/TCK-9")
    async with browser(world, None) as nobody:
        sent = await nobody.post("/tickets/TCK-2004/runs")
        led = await nobody.get("/tickets")
    assert (missing.status_code, ticket.status_code, sent.status_code, led.status_code) == (404, 404, 401, 303)
    assert "nothing at this address" in missing.text
    assert "There is no ticket of that name" in ticket.text
    assert "Nothing was done. Sign in, and do it again." in sent.text
    for page in (missing, ticket, sent):
        assert not re.search("openapi|Bearer|Authorization", page.text)


async def test_a_ticket_without_a_subject_can_be_opened_from_the_list(world: World) -> None:
    await world.ticket(subject=" ")
    async with browser(world) as sam:
        pages = [(await sam.get(path)).text for path in ("/tickets", "/tickets/TCK-2004")]
    assert '<a href="/tickets/TCK-2004"><bdi>No subject</bdi></a>' in pages[0]
    assert "<h1><bdi>No subject</bdi></h1>" in pages[1]


async def test_another_tenants_ticket_is_not_there(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", started())
    async with browser(world, "gwen", "globex") as gwen:
        assert (await gwen.get("/tickets/TCK-2004")).status_code == 404
        assert (await gwen.get("/console/stream/runs/TCK-2004-1")).status_code == 404
        assert "TCK-2004" not in (await gwen.get("/tickets")).text


async def test_a_page_and_the_stream_behind_it_show_the_whole_run_between_them(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with browser(world) as sam:
        page = (await sam.get("/tickets/TCK-2004?run=TCK-2004-1")).text
        after = re.search(r'id="rows-TCK-2004-1"[^>]*data-after="(\d+)"', page)
        assert after is not None
        await world.others.say("TCK-2004-1", *story_from_the_hold())
        stream = (await sam.get("/console/stream/runs/TCK-2004-1", params={"after": after[1]})).text
    for title in ("Run started", "Turn 2", "Held"):
        assert title in page
    for title in ("Approved by sam", "Refund made", "Reply sent", "Run ended: resolved", "event: bye"):
        assert title in stream
    assert "Run started" not in stream


async def test_a_page_of_an_earlier_sign_in_is_told_so(world: World) -> None:
    async with browser(world, "alex") as client:
        inbox = re.search(r'data-inbox="([^"]+)"', (await client.get("/tickets")).text)
        assert inbox is not None
        await world.sign_in(client, "sam")
        assert (await client.get(inbox[1])).status_code == 401
        assert (await client.get(inbox[1].replace("stream/inbox", "session"))).status_code == 401
        assert (await client.get("/console/session")).status_code == 204
