"""Tickets over HTTP: opened once, listed in pages, each tenant's own."""

import json

import pytest
from gateway.routes.tickets import OpenTicket

from .conftest import World
from .facts import started, story_to_the_hold
from .test_api import problem

pytestmark = pytest.mark.timeout(60)


async def test_a_ticket_is_opened_once_however_often_it_is_sent(world: World) -> None:
    wanted = {"customer_email": "ada@mail.example", "subject": "A broken lamp", "body": "It does not light."}
    async with world.client() as alex:
        first, again = [
            await alex.post("/v1/tickets", json=wanted, headers={"Idempotency-Key": "k-1"}) for _ in range(2)
        ]
        other = await alex.post("/v1/tickets", json=wanted | {"body": "else"}, headers={"Idempotency-Key": "k-1"})
        second = await alex.post("/v1/tickets", json=wanted)
        listed = (await alex.get("/v1/tickets", params={"status": "open"})).json()["tickets"]

    assert first.status_code == 201
    assert again.json() == first.json()
    problem(other, 422)
    assert second.json()["ticket"] != first.json()["ticket"]
    assert {ticket["ticket"] for ticket in listed} == {first.json()["ticket"], second.json()["ticket"]}


async def test_tickets_come_in_pages(world: World) -> None:
    for number in range(5):
        await world.ticket(f"TCK-{number}")
    async with world.client() as alex:
        seen, cursor = [], None
        while True:
            page = (await alex.get("/v1/tickets", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
            seen += [ticket["ticket"] for ticket in page["tickets"]]
            if not (cursor := page["next"]):
                break
        problem(await alex.get("/v1/tickets", params={"cursor": "nonsense"}), 400)
        problem(await alex.get("/v1/tickets", params={"limit": 100_000}), 422)
    assert seen == ["TCK-4", "TCK-3", "TCK-2", "TCK-1", "TCK-0"]


async def test_each_tenant_has_its_own_tickets_of_one_name(world: World) -> None:
    await world.ticket(subject="Acme's")
    await world.ticket(tenant="globex", subject="Globex's")
    for person, subject in (("alex", "Acme's"), ("gwen", "Globex's")):
        async with world.client(person) as client:
            assert (await client.get("/v1/tickets/TCK-2004")).json()["subject"] == subject


async def test_a_tickets_status_follows_its_run(world: World) -> None:
    await world.ticket()
    async with world.client() as alex:

        async def status() -> str:
            return str((await alex.get("/v1/tickets/TCK-2004")).json()["status"])

        assert await status() == "open"
        await world.others.say("TCK-2004-1", started())
        await world.seen("TCK-2004-1")
        assert await status() == "in_progress"
        await world.others.say("TCK-2004-1", *story_to_the_hold()[1:])
        await world.seen("TCK-2004-1")
        assert await status() == "awaiting_approval"
        await alex.post("/v1/runs/TCK-2004-1/cancel")
        assert await status() == "open"


@pytest.mark.parametrize("letter", ["x", "é", "王", "😀", "\u0001", '"', "\u202e"])
async def test_a_text_as_long_as_the_api_says_is_taken_in_any_script_and_spelling(world: World, letter: str) -> None:
    schema = OpenTicket.model_json_schema()["properties"]
    longest = {name: schema[name]["maxLength"] for name in ("subject", "body")}
    wanted = {name: letter * length for name, length in longest.items()} | {"customer_email": "a@mail.example"}
    async with world.client() as alex:
        for escaped in (False, True):
            content = json.dumps(wanted, ensure_ascii=escaped).encode()
            opened = await alex.post("/v1/tickets", content=content, headers={"Content-Type": "application/json"})
            assert opened.status_code == 201, opened.text[:300]
            ticket = opened.json()["ticket"]
            run = (await alex.post(f"/v1/tickets/{ticket}/runs")).json()["run"]
            [fact] = (await alex.get(f"/v1/runs/{run}/events")).json()["events"]
            assert {name: fact["data"]["ticket"][name] for name in longest} == {name: wanted[name] for name in longest}
            await world.seen(run)
            for path in (
                f"/v1/tickets/{opened.json()['ticket']}",
                f"/tickets/{opened.json()['ticket']}",
                "/v1/tickets",
            ):
                assert (await alex.get(path)).status_code == 200
        problem(await alex.post("/v1/tickets", json=wanted | {"body": letter * (longest["body"] + 1)}), 422)


@pytest.mark.parametrize("letter", ["王", "😀"])
async def test_a_message_as_long_as_the_api_says_is_taken_in_any_script_and_spelling(world: World, letter: str) -> None:
    await world.others.say("CHT-1-1", started("CHT-1", channel="chat"))
    text = letter * 16_000
    async with world.client() as alex:
        for content in (json.dumps({"text": text}), json.dumps({"text": text}, ensure_ascii=False).encode()):
            said = await alex.post(
                "/v1/runs/CHT-1-1/messages", content=content, headers={"Content-Type": "application/json"}
            )
            assert said.status_code == 202, said.text
        too_long = await alex.post("/v1/runs/CHT-1-1/messages", json={"text": "x" * 200_000})
        assert too_long.status_code == 413
        typed = await alex.post("/runs/CHT-1-1/messages", data={"text": text})
        assert typed.status_code == 303
