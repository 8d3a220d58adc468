"""The HTTP interface, on a real broker and a real database."""

import re
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from contracts.parts import Customer

from .conftest import World
from .facts import SAM, decided, refund, started, story_from_the_hold, story_to_the_hold

STREAM = {"Accept": "text/event-stream"}
pytestmark = pytest.mark.timeout(60)


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    return document


# Who may


async def test_without_a_token_nothing_is_shown(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.url) as nobody:
        for path in ("/v1/tickets", "/v1/runs", "/v1/runs/TCK-2004-1", "/v1/approvals", "/v1/events"):
            problem(await nobody.get(path), 401)
        problem(await nobody.get("/v1/tickets", headers={"Authorization": "Bearer made.up.token"}), 401)


async def test_no_answer_is_kept_by_a_browser_or_a_proxy(world: World) -> None:
    await world.ticket()
    async with world.client() as alex, httpx.AsyncClient(base_url=world.url) as nobody:
        for answer in (
            await alex.get("/v1/tickets/TCK-2004"),
            await alex.get("/v1/tickets/TCK-1"),
            await alex.get("/v1/tickets", params={"limit": 0}),
            await alex.get("/v1/audit"),
            await alex.post("/v1/tickets/TCK-2004/runs"),
            await alex.post("/v1/tickets", content=b"x" * 200_000),
            await nobody.get("/v1/tickets"),
            await nobody.get("/openapi.json"),
            await nobody.get("/tickets"),
        ):
            assert answer.headers["cache-control"] == "no-store", answer.url
        assert "cache-control" not in (await nobody.get("/static/console.css")).headers


async def test_a_customer_sees_no_tickets(world: World) -> None:
    async with world.client("cust-C-1004") as tom:
        problem(await tom.get("/v1/tickets"), 403)
        problem(await tom.get("/v1/events"), 403)


async def test_an_auditor_starts_nothing(world: World) -> None:
    await world.ticket()
    async with world.client("ari") as ari:
        problem(await ari.post("/v1/tickets/TCK-2004/runs"), 403)


async def test_an_unknown_run_and_another_tenants_are_the_same_404(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client("gwen") as gwen:
        answers = [
            await gwen.get(path)
            for run in ("TCK-2004-1", "TCK-9999-1", "not a run", "..")
            for path in (f"/v1/runs/{run}", f"/v1/runs/{run}/events")
            if run != ".."
        ]
        foreign = [
            await gwen.post(f"/v1/runs/TCK-2004-1/{what}", json=body)
            for what, body in (("cancel", {}), ("take-over", {}), ("messages", {"text": "hello"}))
        ]
    assert len({str(problem(answer, 404)) for answer in (*answers, *foreign)}) == 1


async def test_a_cookie_changes_things_only_from_the_consoles_own_pages(world: World) -> None:
    await world.ticket()
    cookies = {"turngate_session": world.token("alex")}
    async with httpx.AsyncClient(base_url=world.url, cookies=cookies) as browser:
        assert (await browser.get("/v1/tickets")).status_code == 200
        for headers in (
            {},
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            problem(await browser.post("/v1/tickets/TCK-2004/runs", headers=headers), 403)
        own = await browser.post("/v1/tickets/TCK-2004/runs", headers={"Origin": world.url})
        assert own.status_code == 202


async def test_a_page_does_nothing_in_the_name_of_who_signed_in_after_it_was_opened(world: World) -> None:
    await world.ticket()
    cookies = {"turngate_session": world.token("alex")}
    own = {"Origin": world.url}
    async with httpx.AsyncClient(base_url=world.url, cookies=cookies, headers=own) as browser:
        page = (await browser.get("/tickets/TCK-2004")).text
        (action,) = set(re.findall(r'action="(/tickets/TCK-2004/runs\?for=\w+)"', page))
        browser.cookies.set("turngate_session", world.token("lee"))

        answer = await browser.post(action)
        assert (answer.status_code, "Somebody else is signed in" in answer.text) == (409, True)
        assert not re.findall(r"<form method=.post. action=.[^?]*.>", page), "a form does not say whose page it is on"

        browser.cookies.set("turngate_session", world.token("alex"))
        page = (await browser.get("/tickets/TCK-2004")).text
        (action,) = set(re.findall(r'action="(/tickets/TCK-2004/runs\?for=\w+)"', page))
        assert (await browser.post(action)).status_code in (200, 202, 303)


# Decisions and approvals


async def test_a_decision_goes_to_approvals_with_the_persons_token(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    again = {"repeated": True, "detail": "It still waits for £180.00."}
    asked = await world.approvals({"status": 200, "event": {"id": "e-1"}, **again})
    body = {"turn": 2, "call_id": "c-2", "digest": refund("c-2").digest, "decision": "approve", "note": "ok"}
    async with world.client("sam") as sam:
        answer = await sam.post("/v1/runs/TCK-2004-1/decisions", json=body)

    assert (answer.status_code, answer.json()) == (200, {"id": "e-1"})
    assert answer.headers["Turngate-Repeated"] == "true"
    assert unquote(answer.headers["Turngate-Detail"]) == "It still waits for £180.00."
    [request] = asked
    assert request["run"] == "TCK-2004-1"
    assert request["token"].count(".") == 2
    assert {name: request[name] for name in body} == body


@pytest.mark.parametrize("status", [403, 404, 409, 410, 422])
async def test_what_approvals_refuses_is_told_as_it_said_it(world: World, status: int) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.approvals({"status": status, "title": "Not so", "detail": "Because of this."})
    body = {"turn": 2, "call_id": "c-2", "digest": "0" * 64, "decision": "approve"}
    async with world.client("sam") as sam:
        document = problem(await sam.post("/v1/runs/TCK-2004-1/decisions", json=body), status)
    assert (document["title"], document["detail"]) == ("Not so", "Because of this.")


async def test_while_approvals_is_away_a_decision_is_not_lost_in_silence(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    body = {"turn": 2, "call_id": "c-2", "digest": "0" * 64, "decision": "approve"}
    async with world.client("sam") as sam:
        problem(await sam.post("/v1/runs/TCK-2004-1/decisions", json=body), 503)


async def test_what_waits_is_listed_oldest_first_with_the_effect_and_who_may_decide(world: World) -> None:
    await world.others.say("TCK-1-1", *story_to_the_hold(), *story_from_the_hold())
    await world.others.say("TCK-2-1", started("TCK-2", by=SAM), *story_to_the_hold()[1:])
    await world.others.say("TCK-3-1", started("TCK-3"), *story_to_the_hold()[1:])
    async with world.client("sam") as sam:
        await world.seen("TCK-3-1")
        approvals = (await sam.get("/v1/approvals")).json()["approvals"]

    assert [one["run"] for one in approvals] == ["TCK-2-1", "TCK-3-1"]
    own, other = (one["holds"][0] for one in approvals)
    assert own["you"]["may"] is False
    assert "You started this run" in own["you"]["why"]
    assert other["you"] == {"may": True, "why": None}
    assert other["effect"]["summary"].startswith("Refund £180.00")
    assert approvals[1]["history"]["moved"] == [{"currency": "GBP", "amount_minor": 18000}]


async def test_a_decided_hold_leaves_the_list(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client("sue") as sue:
        await world.seen("TCK-2004-1")
        assert len((await sue.get("/v1/approvals")).json()["approvals"]) == 1
        await world.others.say("TCK-2004-1", decided(2, refund("c-2")))
        await world.seen("TCK-2004-1")
        assert (await sue.get("/v1/approvals")).json()["approvals"] == []


# Limits and refusals


async def test_a_body_that_is_too_large_is_not_read(world: World) -> None:
    async with world.client() as alex:
        for path, size in (("/v1/runs/TCK-2004-1/messages", 200_000), ("/v1/tickets", 1_100_000)):

            async def pieces(size: int = size) -> Any:
                for _ in range(20):
                    yield b"x" * (size // 20)

            problem(await alex.post(path, content=b"x" * size), 413)
            problem(await alex.post(path, content=pieces()), 413)


async def test_what_is_wrong_with_a_request_is_named_without_repeating_it(world: World) -> None:
    async with world.client() as alex:
        document = problem(await alex.post("/v1/tickets", json={"subject": "s", "body": "a secret of mine"}), 422)
    assert "customer_email" in document["detail"]
    assert "secret" not in document["detail"]


async def test_a_text_that_no_table_can_hold_is_refused_with_what_to_do(world: World) -> None:
    ticket = {"customer_email": "tom@mail.example", "subject": "a\0b", "body": "Help"}
    async with world.client() as alex:
        assert "NUL" in problem(await alex.post("/v1/tickets", json=ticket), 422)["detail"]


async def test_an_address_that_is_not_there_is_a_problem_too(world: World) -> None:
    async with world.client() as alex:
        problem(await alex.get("/v1/nothing"), 404)
        problem(await alex.delete("/v1/tickets"), 405)


async def test_the_documents_say_what_there_is(world: World) -> None:
    async with httpx.AsyncClient(base_url=world.url) as nobody:
        openapi = (await nobody.get("/openapi.json")).json()
        asyncapi = (await nobody.get("/asyncapi.json")).json()
        assert (await nobody.get("/healthz")).status_code == 200
        assert (await nobody.get("/readyz")).status_code == 200
        assert "turngate_http_requests_total" in (await nobody.get("/metrics")).text
    assert "/v1/runs/{run}/decisions" in openapi["paths"]
    assert not any(path.startswith("/console") for path in openapi["paths"])
    assert asyncapi["asyncapi"].startswith("3.")


async def test_a_run_that_its_runner_gave_up_on_is_given_its_end(world: World) -> None:
    [event] = await world.others.say("TCK-2004-1", started())
    letter = {
        "service": "agent-runner",
        "subject": world.key("TCK-2004-1").subject(event.kind),
        "sequence": event.sequence,
        "error": "KeyError: a secret",
        "event": event.payload.decode(),
    }
    async with world.client() as alex, alex.stream("GET", "/v1/runs/TCK-2004-1/events", headers=STREAM) as stream:
        for _ in range(2):
            await world.dead("agent-runner", letter)
        told = [line async for line in stream.aiter_lines()]
        assert sum("run-failed" in line for line in told) == 1
        assert not any("a secret" in line for line in told)
        run = (await alex.get("/v1/runs/TCK-2004-1")).json()
    assert run["status"] == "failed"
    assert "a person has to take the ticket" in run["reason"]


async def test_the_histories_of_all_who_wait_are_one_query(world: World) -> None:
    others = {f"TCK-{number}": Customer(email=f"c{number}@mail.example") for number in range(3)}
    for ticket, customer in others.items():
        for run in (f"{ticket}-1", f"{ticket}-2"):
            start = started(ticket)
            await world.others.say(
                run, start.model_copy(update={"ticket": start.ticket.model_copy(update={"customer": customer})})
            )
    await world.seen("TCK-2-2")
    async with world.counting() as (desk, asked):
        views = [view for view in await desk.runs("acme") if view.run.endswith("-2")]
        asked.clear()
        known = await desk.histories("acme", views)

    assert {run: history.runs for run, history in known.items()} == {f"{ticket}-2": 1 for ticket in others}
    assert len(asked) == 1
