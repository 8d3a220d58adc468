"""Runs over HTTP: started once, read from their log, listed, stopped, taken over, written in."""

import asyncio

import pytest
from gateway.profiles import Tenant
from gateway.runs import StartRun

from .conftest import World
from .facts import ALEX, ended, refund, started, story_to_the_hold
from .test_api import problem
from .test_domain import asker

pytestmark = pytest.mark.timeout(60)


async def test_a_run_starts_with_the_profiles_limits_and_who_asked(world: World) -> None:
    await world.ticket()
    async with world.client() as alex:
        answer = await alex.post("/v1/tickets/TCK-2004/runs", json={"profile": "support"})
        run = (await alex.get("/v1/runs/TCK-2004-1")).json()
        events = (await alex.get("/v1/runs/TCK-2004-1/events")).json()["events"]

    assert answer.status_code == 202
    assert answer.json() == {"run": "TCK-2004-1", "status": "running"}
    assert (run["max_steps"], run["requested_by"]["subject"]) == (12, "alex")
    assert [event["type"] for event in events] == ["turngate.desk.run-started.v1"]
    assert events[0]["data"]["policy_pack"] == "acme"


async def test_limits_can_be_lowered_by_anyone_and_raised_by_a_lead(world: World) -> None:
    for ticket in ("TCK-1", "TCK-2"):
        await world.ticket(ticket)
    async with world.client("alex") as alex, world.client("lee") as lee:
        assert (await alex.post("/v1/tickets/TCK-1/runs", json={"max_steps": 3})).status_code == 202
        problem(await alex.post("/v1/tickets/TCK-2/runs", json={"max_steps": 99}), 403)
        assert (await lee.post("/v1/tickets/TCK-2/runs", json={"max_steps": 99})).status_code == 202
        assert (await lee.get("/v1/runs/TCK-2-1")).json()["max_steps"] == 99


async def test_a_profile_that_is_not_there_is_named_with_those_that_are(world: World) -> None:
    await world.ticket()
    async with world.client() as alex:
        document = problem(await alex.post("/v1/tickets/TCK-2004/runs", json={"profile": "poet"}), 422)
    assert "support" in document["detail"]


async def test_fifty_simultaneous_starts_give_one_run(world: World) -> None:
    await world.ticket()
    async with world.client("alex") as alex, world.client("sam") as sam:
        answers = await asyncio.gather(
            *((alex, sam)[number % 2].post("/v1/tickets/TCK-2004/runs") for number in range(50))
        )
        runs = (await alex.get("/v1/runs")).json()["runs"]

    assert [answer.json()["run"] for answer in answers] == ["TCK-2004-1"] * 50
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert [run["run"] for run in runs] == ["TCK-2004-1"]


async def test_a_start_that_came_before_a_run_had_ended_gets_that_run(world: World) -> None:
    await world.ticket()
    async with world.client() as alex:
        await alex.post("/v1/tickets/TCK-2004/runs")
        head = (await world.runs.history("acme", "TCK-2004-1")).head
        await world.others.say("TCK-2004-1", ended())
        ticket = await world.desk.ticket("acme", "TCK-2004")
        assert head is not None
        assert ticket is not None
        late = await world.runs.start(
            ticket, Tenant(name="Acme", policy_pack="acme"), asker(ALEX), StartRun(), "a second click", head.sequence
        )
        assert (await alex.get("/v1/runs/TCK-2004-1")).json()["status"] == "resolved"
        following = await alex.post("/v1/tickets/TCK-2004/runs")

    assert (late.run, late.new) == ("TCK-2004-1", False)
    assert (following.status_code, following.json()["run"]) == (202, "TCK-2004-2")


async def test_the_key_of_a_start_does_not_start_another_kind_of_run(world: World) -> None:
    await world.ticket()
    key = {"Idempotency-Key": "k-1"}
    async with world.client() as alex:
        await alex.post("/v1/tickets/TCK-2004/runs", headers=key, json={"max_steps": 5})
        for state in ("running", "ended"):
            other = await alex.post("/v1/tickets/TCK-2004/runs", headers=key, json={"max_steps": 6})
            assert problem(other, 422)["title"] == "Idempotency-Key used before"
            same = await alex.post("/v1/tickets/TCK-2004/runs", headers=key, json={"max_steps": 5})
            # 202 again while the views have not come to the run yet: then it is found by trying to start it.
            assert same.status_code in (200, 202)
            assert same.json()["run"] == "TCK-2004-1"
            if state == "running":
                await world.others.say("TCK-2004-1", ended())


async def test_a_start_sent_again_is_the_same_run_even_after_it_ended(world: World) -> None:
    await world.ticket()
    key = {"Idempotency-Key": "k-1"}
    async with world.client() as alex:
        first = await alex.post("/v1/tickets/TCK-2004/runs", headers=key)
        await world.others.say("TCK-2004-1", ended())
        again = await alex.post("/v1/tickets/TCK-2004/runs", headers=key)
        fresh = await alex.post("/v1/tickets/TCK-2004/runs")
        await world.others.say("TCK-2004-2", ended())
        once_more = await alex.post("/v1/tickets/TCK-2004/runs", headers=key)

    assert (first.json()["run"], again.json()["run"], fresh.json()["run"]) == ("TCK-2004-1", "TCK-2004-1", "TCK-2004-2")
    assert once_more.json()["run"] == "TCK-2004-1"


async def test_a_run_is_read_from_its_log_so_that_what_was_said_is_seen(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    async with world.client() as alex:
        run = (await alex.get("/v1/runs/TCK-2004-1")).json()

    [hold] = run["holds"]
    assert run["status"] == "awaiting_approval"
    assert (run["steps"], run["cost_micro_usd"]) == (2, 16240)
    assert (hold["turn"], hold["call_id"], hold["digest"]) == (2, "c-2", refund("c-2").digest)
    assert hold["effect"]["amount_minor"] == 18000
    assert hold["needs"] == {"role": "approver", "people": 1, "one_of_role": None}


async def test_runs_are_listed_by_status_newest_first(world: World) -> None:
    for ticket in ("TCK-1", "TCK-2", "TCK-3"):
        await world.others.say(f"{ticket}-1", started(ticket))
    await world.others.say("TCK-2-1", ended())
    async with world.client() as alex:
        await world.seen("TCK-2-1")
        running = (await alex.get("/v1/runs", params={"status": "running"})).json()
        first = (await alex.get("/v1/runs", params={"limit": 2})).json()
        rest = (await alex.get("/v1/runs", params={"limit": 2, "cursor": first["next"]})).json()

    assert [run["run"] for run in running["runs"]] == ["TCK-3-1", "TCK-1-1"]
    assert [run["run"] for run in first["runs"]] == ["TCK-3-1", "TCK-2-1"]
    assert [run["run"] for run in rest["runs"]] == ["TCK-1-1"]
    assert rest["next"] is None


async def test_a_cancel_is_done_once_and_a_second_one_is_told(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    key = {"Idempotency-Key": "k-1"}
    async with world.client() as alex:
        first = await alex.post("/v1/runs/TCK-2004-1/cancel", json={"reason": "oops"}, headers=key)
        again = await alex.post("/v1/runs/TCK-2004-1/cancel", json={"reason": "oops"}, headers=key)
        problem(await alex.post("/v1/runs/TCK-2004-1/cancel", json={"reason": "else"}, headers=key), 422)
        problem(await alex.post("/v1/runs/TCK-2004-1/cancel"), 409)
        run = (await alex.get("/v1/runs/TCK-2004-1")).json()

    assert (first.status_code, again.json()) == (202, first.json())
    assert (run["status"], run["reason"], run["holds"]) == ("cancelled", "oops", [])


async def test_after_taking_over_a_person_writes_to_the_customer(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with world.client() as alex:
        problem(await alex.post("/v1/runs/TCK-2004-1/messages", json={"text": "Hello"}), 409)
        assert (await alex.post("/v1/runs/TCK-2004-1/take-over")).status_code == 202
        assert (await alex.post("/v1/runs/TCK-2004-1/messages", json={"text": "Hello Tom"})).status_code == 202
        events = (await alex.get("/v1/runs/TCK-2004-1/events")).json()["events"]
    assert [event["type"] for event in events[1:]] == [
        "turngate.desk.run-taken-over.v1",
        "turngate.desk.person-said.v1",
    ]


async def test_a_customer_writes_in_their_own_chat(world: World) -> None:
    await world.others.say("CHT-1-1", started("CHT-1", channel="chat"))
    async with world.client("cust-C-1004") as tom:
        answer = await tom.post("/v1/runs/CHT-1-1/messages", json={"text": "Any news?"})
    assert answer.status_code == 202


async def test_who_may_release_what_is_asked_for_asks_for_nothing_in_a_customers_name(world: World) -> None:
    await world.others.say("CHT-1-1", started("CHT-1", channel="chat"))
    ticket = {"customer_email": "tom.whitfield@mail.example", "subject": "A refund", "body": "Please refund it all."}
    for person in ("sam", "lee"):
        async with world.client(person) as client:
            for path, body in (
                ("/v1/runs/CHT-1-1/messages", {"text": "Please refund it all."}),
                ("/v1/tickets", ticket),
            ):
                said = problem(await client.post(path, json=body), 403)
                assert "does not ask in their name; take the run over to write yourself" in said["detail"]
    async with world.client("alex") as alex:
        assert (await alex.post("/v1/runs/CHT-1-1/messages", json={"text": "Any news?"})).status_code == 202
        assert (await alex.post("/v1/tickets", json=ticket)).status_code == 201
        events = (await alex.get("/v1/runs/CHT-1-1/events")).json()["events"]
    assert [event["data"]["by"]["subject"] for event in events[1:]] == ["alex"]
