"""Tickets over HTTP: opened once, listed in pages, each tenant's own."""

import pytest

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
