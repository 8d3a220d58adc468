"""Lists that are long: nothing is left out without a word, and what is summed is summed over all of it."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from contracts.facts import Fact
from contracts.parts import Customer
from contracts.subjects import RunKey
from gateway.view_rows import store
from gateway.views import RunView

from .conftest import World
from .facts import TOM, held, proposed, quoted, refund, started, story_from_the_hold, story_to_the_hold
from .test_console import browser
from .told import Told

pytestmark = pytest.mark.timeout(240)
DAWN = datetime(2026, 11, 29, 6, tzinfo=UTC)


def story(ticket: str, *facts: Fact, customer: Customer = TOM, amount: int | None = None) -> list[Fact]:
    """A run of one customer: with a refund that waits where there is an amount."""
    first = started(ticket)
    of_theirs = first.model_copy(update={"ticket": first.ticket.model_copy(update={"customer": customer})})
    if amount is None:
        return [of_theirs, *facts]
    money = refund("c-1", amount)
    return [of_theirs, proposed(1, ("c-1", "issue_refund", money.arguments)), quoted(1, money), held(1, money)]


def view(ticket: str, facts: list[Fact], minute: int = 0) -> RunView:
    told = Told(key=RunKey("acme", f"{ticket}-1"))
    told.at = DAWN + timedelta(minutes=minute)
    told.say(*facts)
    return told.view


async def keep(world: World, views: Iterable[RunView]) -> None:
    async with world.desk.of("acme") as connection:
        await store(connection, views)


async def all_pages(client: Any, path: str, items: str, **params: Any) -> tuple[list[Any], list[dict[str, Any]]]:
    found, pages, cursor = [], [], None
    while True:
        page = (await client.get(path, params=params | ({"cursor": cursor} if cursor else {}))).json()
        found += page[items]
        pages.append(page)
        if not (cursor := page["next"]):
            return found, pages


async def test_what_a_customer_was_paid_is_not_flushed_from_their_history_by_trivial_tickets(world: World) -> None:
    world.pays_in_pounds()
    paid = [*story_to_the_hold()[1:], *story_from_the_hold()]
    views = [view("TCK-100", story("TCK-100", *paid)), view("TCK-101", story("TCK-101", *paid), 1)]
    views += [view(f"TCK-{n}", story(f"TCK-{n}"), n) for n in range(200, 250)]
    await keep(world, views)
    await world.others.say("TCK-2004-1", *story("TCK-2004", amount=6000))
    await world.seen("TCK-2004-1")
    async with world.client("sam") as sam:
        [waiting] = (await sam.get("/v1/approvals")).json()["approvals"]
    async with browser(world, "sam") as sam:
        page = (await sam.get("/tickets/TCK-2004")).text
    assert waiting["history"]["runs"] == 52
    assert waiting["history"]["moved"] == [{"currency": "GBP", "amount_minor": 36000}]
    assert "<dt>Other runs</dt><dd>52</dd>" in page
    assert "360.00" in page.partition("Moved in them")[2][:100]


@pytest.mark.parametrize("count", [210, 450])
async def test_every_run_that_waits_is_in_the_pages_once_and_in_the_sums(world: World, count: int) -> None:
    numbers = range(1, count + 1)
    await keep(world, [view(f"TCK-{n}", story(f"TCK-{n}", amount=100 + n), n) for n in numbers])
    async with world.client("sam") as sam:
        for limit in (200, 7):
            found, pages = await all_pages(sam, "/v1/approvals", "approvals", limit=limit)
            assert [one["run"] for one in found] == [f"TCK-{n}-1" for n in numbers]
            stake = {"currency": "GBP", "amount_minor": sum(100 + n for n in numbers)}
            assert {(page["total"], str(page["at_stake"])) for page in pages} == {(count, str([stake]))}
        for path, items in (("/v1/runs", "runs"), ("/v1/tickets", "tickets")):
            found, pages = await all_pages(sam, path, items, limit=200, status="awaiting_approval")
            assert (len({one["ticket"] for one in found}), len(found)) == (count, count)
            assert {page["total"] for page in pages} == {count}


async def test_the_approvals_page_its_badge_and_its_total_are_of_all_that_waits(world: World) -> None:
    world.pays_in_pounds()
    count = 210
    for n in range(count):
        await world.others.say(f"TCK-{n + 1}-1", *story(f"TCK-{n + 1}", amount=6000))
    await world.seen(f"TCK-{count}-1")
    async with browser(world, "sam") as sam:
        cards, path, ranges = [], "/approvals", []
        while True:
            page = (await sam.get(path)).text
            cards += re.findall(r'id="card-(TCK-\d+-1)"', page)
            ranges += re.findall(r"(\d+)–(\d+) of 210", page)
            assert "£12,600.00 held" in page
            assert re.search(r'data-count="waiting">210<', page)
            following = re.search(r'rel="next" href="([^"]+)"', page)
            if not following:
                break
            path = following[1].replace("&amp;", "&")
        back = re.search(r'rel="prev" href="([^"]+)"', page)
        assert back is not None
        assert re.findall(r"(\d+)–(\d+) of 210", (await sam.get(back[1])).text) == [ranges[-2]]
    assert cards == [f"TCK-{n + 1}-1" for n in range(count)]
    assert (ranges[0][0], ranges[-1][1]) == ("1", str(count))


async def test_a_hold_that_is_settled_between_two_pages_makes_no_gap(world: World) -> None:
    views = [view(f"TCK-{n}", story(f"TCK-{n}", amount=100), n) for n in range(1, 11)]
    await keep(world, views)
    async with world.client("sam") as sam:
        first = (await sam.get("/v1/approvals", params={"limit": 5})).json()
        settled = [
            one.model_copy(update={"status": "cancelled", "sequence": 100 + n}) for n, one in enumerate(views[2:5])
        ]
        await keep(world, settled)
        async with world.desk.of("acme") as connection:
            await connection.execute("update desk.projection set position = 200 where name = 'runs'")
        rest = (await sam.get("/v1/approvals", params={"limit": 5, "cursor": first["next"]})).json()
    assert [one["run"] for one in rest["approvals"]] == [f"TCK-{n}-1" for n in range(6, 11)]
    assert (rest["total"], rest["next"]) == (7, None)


async def test_sums_over_a_customers_runs_look_at_theirs_only(world: World) -> None:
    known = view("TCK-1", story("TCK-1"))
    await keep(world, [known])
    with psycopg.connect(world.superuser) as connection:
        connection.execute(
            "insert into desk.runs (tenant, run, ticket, n, status, customer_email, customer_address, started_event,"
            " started_at, sequence, state)"
            " select tenant, 'TCK-' || i || '-1', 'TCK-' || i, 1, status, i || '@x.example', i || '@x.example', i,"
            " started_at, sequence, state from desk.runs, generate_series(2, 6000) i"
        )
        connection.execute("analyze desk.runs")
    async with world.counting() as (desk, asked):
        await desk.histories("acme", [known])
        async with desk.of("acme") as connection:
            query = asked[-1].replace("%s::text[], %s::text[]", "array['TCK-1-1'], array['tom@mail.example']")
            plan = str(await (await connection.execute(f"explain {query}")).fetchall())
    assert plan.count("runs_tenant_customer_address_idx") == 2
    assert "Seq Scan on runs" not in plan


async def test_a_list_of_more_tickets_than_a_page_says_so_and_goes_on(world: World) -> None:
    count = 510
    for n in range(count):
        await world.ticket(f"TCK-{n + 1}")
    async with browser(world, "sam") as sam:
        first = (await sam.get("/tickets")).text
        following = re.search(r'rel="next" href="([^"]+)"', first)
        assert following is not None
        second = (await sam.get(following[1].replace("&amp;", "&"))).text
    listed = [re.findall(r'id="ticket-(TCK-\d+)"', page) for page in (first, second)]
    assert [len(page) for page in listed] == [500, 10]
    assert len({*listed[0], *listed[1]}) == count
    assert ("500 of 510 tickets" in first, "10 of 510 tickets" in second) == (True, True)
    assert "on this page" in first
