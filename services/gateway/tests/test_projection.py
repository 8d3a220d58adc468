"""The views: in step with the log, written by one process, made anew on demand."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime

import psycopg
import pytest
from contracts.facts import CustomerSaid, Fact
from gateway import projection
from gateway.database import open_pool
from gateway.desk import Desk
from gateway.overviews import Overviews
from gateway.rebuild import rebuild
from gateway.seeds import seed, tickets
from gateway.ticket_changes import TicketChanges
from gateway.tickets import NewTicket, TicketView, next_reference

from .conftest import World, free_port, gateway
from .facts import TOM, ended, replied, started, story_from_the_hold, story_to_the_hold

pytestmark = pytest.mark.timeout(60)


async def views(world: World) -> dict[str, tuple[str, int]]:
    return {view.run: (view.status, view.sequence) for view in await world.desk.runs("acme")}


async def test_two_gateways_keep_one_set_of_views(world: World) -> None:
    settings = world.settings.model_copy(update={"http_port": free_port()})
    async with gateway(settings):
        said = []
        for number in range(20):
            said += await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"), ended())
        await world.seen("TCK-19-1")
    assert len(await views(world)) == 20
    assert set(await views(world)) == {f"TCK-{number}-1" for number in range(20)}


async def test_another_gateway_goes_on_when_the_one_that_kept_the_views_is_gone(world: World) -> None:
    first = world.settings.model_copy(update={"http_port": free_port()})
    async with gateway(first):
        await world.others.say("TCK-1-1", started("TCK-1"))
    [event] = await world.others.say("TCK-1-1", ended())
    await world.seen("TCK-1-1")
    assert (await views(world))["TCK-1-1"] == ("resolved", event.sequence)


async def test_a_run_that_no_row_can_hold_stops_no_other_runs_views(world: World) -> None:
    await world.others.say("TCK-1-99999999999", started("TCK-1"))
    await world.others.say("TCK-2-1", started("TCK-2", subject="A zero byte: \0"))
    await world.others.say("TCK-3-1", started("TCK-3"))
    await world.others.say("TCK-3-1", started("TCK-3"), tenant="globex")
    await world.seen("TCK-3-1", "globex")

    assert set(await views(world)) == {"TCK-3-1"}
    assert [view.run for view in await world.desk.runs("globex")] == ["TCK-3-1"]


async def test_a_run_in_which_somebody_says_a_zero_byte_is_shown_as_it_stands(world: World) -> None:
    text = "\0 one, \0\0 two, \\\0 behind a backslash, and spelled \\u0000"
    await world.others.say("TCK-1-1", started("TCK-1"), replied(text), ended(reason="So: \0"))
    await world.seen("TCK-1-1")
    [view] = await world.desk.runs("acme")
    assert (view.status, view.reason, view.reply) == ("resolved", "So: \ufffd", text.replace("\0", "\ufffd"))


async def test_who_asks_for_a_list_does_not_wait_for_facts_to_gather(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection, "_GATHERS", 3600)
    async with world.client() as alex:
        for fact, status in ((started(), "running"), (ended(), "resolved")):
            await world.others.say("TCK-2004-1", fact)
            [run] = (await alex.get("/v1/runs")).json()["runs"]
            assert run["status"] == status


async def test_a_fact_that_leaves_a_tickets_status_as_it_was_writes_no_ticket(world: World) -> None:
    async def version(said: Fact) -> int:
        await world.others.say("TCK-2004-1", said)
        await world.seen("TCK-2004-1")
        with psycopg.connect(world.superuser, autocommit=True) as connection:
            row = connection.execute("select xmin::text from desk.tickets where reference = 'TCK-2004'").fetchone()
            assert row is not None
            return int(row[0])

    versions = [await version(said) for said in (started(), CustomerSaid(text="Hello", message_id="1"), ended())]
    assert versions[0] == versions[1] < versions[2]


async def test_the_views_are_made_anew_under_a_running_gateway(world: World) -> None:
    await world.ticket()
    said = await world.others.say("TCK-2004-1", *story_to_the_hold(), *story_from_the_hold())
    await world.seen("TCK-2004-1")
    before = await world.desk.runs("acme")

    last = await rebuild(world.settings)

    assert last == said[-1].sequence
    assert await world.desk.runs("acme") == before


async def test_the_views_are_made_anew_with_no_gateway_running(world: World) -> None:
    said = await world.others.say("TCK-2004-1", *story_to_the_hold())
    await world.seen("TCK-2004-1")
    await world.stop_gateway()

    done = await asyncio.to_thread(run_command, world, "rebuild-views")

    assert done.returncode == 0, done.stderr
    assert str(said[-1].sequence) in done.stdout
    assert (await views(world))["TCK-2004-1"] == ("awaiting_approval", said[-1].sequence)


async def test_seeding_twice_changes_nothing(world: World) -> None:
    here = world.settings.tenants_dir / "acme"
    here.mkdir(parents=True)
    (here / "demo.yaml").write_text(
        "tenant: acme\ntickets:\n"
        "  - {reference: TCK-2001, customer_email: a@mail.example, subject: Where is it, body: Hello}\n"
        "  - {reference: TCK-2002, customer_email: b@mail.example, subject: It broke, body: Hello, channel: chat}\n"
    )
    assert await seed(world.desk, tickets(world.settings.tenants_dir)) == 2
    first = await world.desk.tickets("acme")
    assert await seed(world.desk, tickets(world.settings.tenants_dir)) == 2
    assert await world.desk.tickets("acme") == first


async def test_the_next_ticket_is_one_behind_the_highest_and_found_without_looking_at_all(world: World) -> None:
    async def opened() -> str:
        new = NewTicket(customer=TOM, subject="A lamp", body="It broke.", opened_at=datetime.now(UTC))
        ticket = await world.desk.open_ticket("acme", new)
        assert isinstance(ticket, TicketView)
        return ticket.ticket

    await world.ticket("CHT-7000")
    assert await opened() == "TCK-1001"
    await world.ticket("TCK-2004")
    await world.ticket("TCK-9000", tenant="globex")
    assert [await opened(), await opened()] == ["TCK-2005", "TCK-2006"]

    async with world.counting() as (desk, asked):
        await desk.counts("acme")
        async with desk.of("acme") as connection:
            await next_reference(connection)
            await connection.execute("set local enable_seqscan = off")
            plans = [await (await connection.execute(f"explain {query}")).fetchall() for query in list(asked)]
    used = [str(plan) for plan in plans]
    assert "tickets_by_status" in used[0]
    assert "tickets_by_number" in used[1]
    assert "Sort" not in used[1]


async def test_who_watches_one_tenant_is_served_by_one_reading_of_it(world: World) -> None:
    await world.ticket("TCK-1")
    [event] = await world.others.say("TCK-2-1", started("TCK-2"))
    await world.seen("TCK-2-1")
    async with world.counting() as (desk, asked):
        overviews = Overviews(desk, TicketChanges(world.settings.postgres_dsn.get_secret_value()))
        seen = await asyncio.gather(*(overviews.behind("acme", event.sequence) for _ in range(10)))
        assert {id(one) for one in seen} == {id(seen[0])}
        assert seen[0].overview.counts == {"open": 1, "in_progress": 1}
        assert len([query for query in asked if "desk.tickets" in query]) == 1

        await world.ticket("TCK-3")
        assert (await overviews.fresh("acme")).overview.counts["open"] == 2
        [event] = await world.others.say("TCK-3-1", started("TCK-3"))
        await world.seen("TCK-3-1")
        assert (await overviews.behind("acme", event.sequence)).overview.counts == {"open": 1, "in_progress": 2}


async def test_no_tenant_sees_anothers_rows_whatever_the_query_says(world: World) -> None:
    await world.ticket()
    await world.ticket(tenant="globex")
    dsn = world.settings.postgres_dsn.get_secret_value()
    with psycopg.connect(dsn) as connection:
        assert connection.execute("select * from desk.tickets").fetchall() == []
        connection.execute("select set_config('turngate.tenant', 'globex', true)")
        rows = connection.execute("select tenant from desk.tickets").fetchall()
        assert rows == [("globex",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "insert into desk.tickets (tenant, reference, channel, customer_email, subject, body, opened_at)"
                " values ('acme', 'x', 'ticket', 'e', 's', 'b', now())"
            )
    with psycopg.connect(dsn) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("delete from desk.tickets")


async def test_a_lost_database_connection_is_made_again(world: World) -> None:
    await world.others.say("TCK-1-1", started("TCK-1"))
    with psycopg.connect(world.superuser, autocommit=True) as connection:
        connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'turngate_gateway'")
    [event] = await world.others.say("TCK-1-1", ended())
    async with open_pool(world.settings.postgres_dsn.get_secret_value(), size=1) as pool:
        desk = Desk(pool)
        async with asyncio.timeout(20), world.client() as alex:
            while await desk.position() < event.sequence:
                await alex.get("/v1/runs")
        assert [view.status for view in await desk.runs("acme")] == ["resolved"]


def run_command(world: World, command: str) -> subprocess.CompletedProcess[str]:
    settings = world.settings
    environment = os.environ | {
        "TURNGATE_NATS_URL": settings.nats_url,
        "TURNGATE_NATS_USER": str(settings.nats_user),
        "TURNGATE_NATS_PASSWORD": settings.nats_password.get_secret_value() if settings.nats_password else "",
        "TURNGATE_POSTGRES_DSN": settings.postgres_dsn.get_secret_value(),
        "TURNGATE_ISSUERS": "[]",
    }
    return subprocess.run(
        [sys.executable, "-m", "gateway", command], env=environment, capture_output=True, text=True, timeout=40
    )
