"""Who is shown customers, and who is shown pseudonyms; and that nothing is left to do for a customer who was erased."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from contracts.canonical import canonical
from contracts.events import Draft
from contracts.facts import Fact, PersonSaid, RunCancelled, RunErased, RunTakenOver
from contracts.history import History
from contracts.identity import ROLES
from contracts.memory import MemoryLog
from contracts.parts import Customer, Person
from contracts.personal import ERASED, SEALED
from gateway.redaction import Redaction
from gateway.shown import LONGEST, Sight, shown

from .conftest import World, connect
from .facts import ALEX, SAM, TOM, decided, refund, replied, started, story_from_the_hold, story_to_the_hold
from .test_api import problem
from .test_authority import as_role
from .test_console import browser
from .test_domain import asker
from .told import KEY, Told

pytestmark = pytest.mark.timeout(90)
PERSONAL = ("Tom", "Whitfield", "mail.example", "07700 900123")
NOTE = "Tom Whitfield rang from 07700 900123"
ARI = Person(subject="ari", issuer=ALEX.issuer, role="auditor")
ADA = Person(subject="ada", issuer=ALEX.issuer, role="admin")
API = (
    "/v1/tickets",
    "/v1/tickets/TCK-2004",
    "/v1/runs",
    "/v1/runs/TCK-2004-1",
    "/v1/runs/TCK-2004-1/events",
    "/v1/approvals",
)
PAGES = (
    "/tickets?state=all",
    "/tickets/TCK-2004",
    "/tickets/TCK-2004?run=TCK-2004-1",
    "/tickets/TCK-2005",
    "/approvals",
)
STREAMS = (
    "/v1/runs/TCK-2004-1/events",
    "/v1/runs/TCK-2005-1/events",
    "/v1/events",
    "/console/stream/runs/TCK-2004-1?after=1",
    "/console/stream/runs/TCK-2005-1?after=1",
    "/console/stream/inbox?after=1",
)


async def cases(world: World) -> None:
    """Tom's run that has ended, and another of his that waits for a decision."""
    said = [decided(2, refund("c-2"), SAM, note=NOTE), *story_from_the_hold()[1:3], replied(f"Dear Tom, {NOTE}.")]
    await world.ticket(body=NOTE)
    await world.others.say("TCK-2004-1", *story_to_the_hold(), *said, story_from_the_hold()[-1])
    await world.ticket("TCK-2005", body=NOTE)
    await world.others.say("TCK-2005-1", started("TCK-2005", body=NOTE), *story_to_the_hold()[1:])
    await world.seen("TCK-2005-1")


async def told(client: httpx.AsyncClient, path: str) -> str:
    """What a stream says until it ends or falls silent."""
    heard = ""
    async with client.stream("GET", path, headers={"Accept": "text/event-stream"}) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for piece in answer.aiter_text():
            heard += piece
            if "still here" in heard or "event: hb" in heard:
                break
    return heard


@pytest.mark.parametrize("person", ["ari", "ada"])
async def test_who_works_no_tickets_meets_no_customer_anywhere(world: World, person: str) -> None:
    await cases(world)
    toms = Redaction(await world.desk.pseudonym_key("acme"), "GBP").pseudonym(TOM)
    said: dict[str, str] = {}
    async with world.client(person) as client, browser(world, person) as console:
        for path in API:
            said[path] = (await client.get(path)).text
        for path in PAGES:
            said[path] = (await console.get(path)).text
        for path in STREAMS:
            said[f"stream {path}"] = await told(client if path.startswith("/v1") else console, path)
    for path, text in said.items():
        assert [word for word in PERSONAL if word in text] == [], path
        assert "TCK-200" in text, path
        assert toms in text or "/events" in path, path
    assert "[phone]" in said["/v1/tickets/TCK-2004"]
    assert "£180.00" in said["/approvals"]


@pytest.mark.parametrize("person", ["alex", "sam", "lee"])
async def test_who_works_tickets_sees_their_customers(world: World, person: str) -> None:
    await cases(world)
    async with world.client(person) as client, browser(world, person) as console:
        for path in API:
            assert TOM.email in (await client.get(path)).text, path
        for path in PAGES:
            assert str(TOM.name) in (await console.get(path)).text, path
        for path in STREAMS:
            heard = await told(client if path.startswith("/v1") else console, path)
            assert str(TOM.name) in heard or NOTE in heard, path


async def test_a_token_without_the_scope_is_shown_no_customer(world: World, tmp_path: Path) -> None:
    await cases(world)
    scope = " ".join(ROLES["approver"] - {"personal"})
    async with as_role(world, tmp_path, "approver", "acme", scope=scope) as client:
        for path in API:
            text = (await client.get(path)).text
            assert [word for word in PERSONAL if word in text] == [], path


def test_an_auditor_is_given_a_sealed_fact_as_the_log_has_it_and_can_check_its_chain() -> None:
    log = MemoryLog(sealed=True)
    first = log.say(History(KEY, ()), Draft(started(), None, "start"))
    document = shown(first, asker(ARI))
    assert canonical(document) == first.payload
    assert document["data"]["ticket"]["customer"]["email"] == SEALED
    assert first.follows("")
    assert TOM.email in json.dumps(shown(first, asker(SAM)))


def test_a_fact_that_was_never_sealed_has_placeholders_for_an_auditor() -> None:
    [first] = Told(started()).events
    assert first.personal == "clear"
    assert shown(first, asker(ARI))["data"]["ticket"]["body"] == SEALED
    assert shown(first, asker(ADA))["data"]["ticket"]["customer"] == {"email": SEALED, "name": SEALED, "id": "C-1004"}
    assert shown(first, asker(ALEX)) == first.document()


async def test_a_text_of_any_length_is_shown_and_cut() -> None:
    view = await Sight(Redaction(b"a key", "GBP")).run(Told(started(body="Tom 1 " * 10_000)).view)
    assert "Tom" not in view.body
    assert len(view.body) < 10 * LONGEST
    assert view.body.endswith(" …")


async def test_what_the_model_writes_is_shown_as_it_comes_to_who_sees_customers_only(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    runner = await connect(world.nats, "agent-runner")
    heard = {"sam": "", "ari": ""}

    async def until(person: str, pieces: AsyncIterator[str], word: str) -> None:
        async with asyncio.timeout(20):
            while word not in heard[person]:
                heard[person] += await anext(pieces)

    path = "/console/stream/runs/TCK-2004-1?after=1"
    async with (
        browser(world, "sam") as sam,
        browser(world, "ari") as ari,
        sam.stream("GET", path) as sams,
        ari.stream("GET", path) as aris,
    ):
        his, theirs = sams.aiter_text(), aris.aiter_text()
        await until("sam", his, "event: hb")
        await until("ari", theirs, "event: hb")
        await runner.live(world.key("TCK-2004-1"), {"step": 1, "text": "Dear Mr Whit"})
        await until("sam", his, "Dear Mr Whit")
        await world.others.say("TCK-2004-1", replied("Dear Mr Whitfield, it is done."))
        await until("ari", theirs, "Reply sent")
    await runner.close()
    assert "Whit" not in heard["ari"]


# Erased customers

NOBODY: dict[str, Any] = {"customer": Customer(email=ERASED, id="C-1004"), "subject": ERASED, "body": ERASED}


async def erased(world: World, ticket: str, *facts: Fact, channel: str = "ticket") -> None:
    """A ticket whose customer was erased, and its run that moved £180.00."""
    await world.ticket(ticket, channel=channel, **NOBODY)
    whole = [started(ticket, channel=channel), *story_to_the_hold()[1:], *story_from_the_hold()[:3]]
    await world.others.say(f"{ticket}-1", *whole, *facts, RunErased(by=ADA))
    await world.seen(f"{ticket}-1")


async def test_customers_who_were_erased_do_not_become_one(world: World) -> None:
    for ticket in ("TCK-1", "TCK-2"):
        await erased(world, ticket, RunCancelled(by=ADA, reason="The customer was erased."))
    async with world.desk.of("acme") as connection:
        await connection.execute("update desk.runs set customer_email = %s", [ERASED])
    async with browser(world, "alex") as alex:
        page = (await alex.get("/tickets/TCK-2")).text
    assert "<dt>Other runs</dt><dd>none</dd>" in page
    assert "Moved in them" not in page


async def test_nothing_is_started_for_a_customer_who_was_erased(world: World) -> None:
    await world.ticket("TCK-1", **NOBODY)
    await erased(world, "TCK-2", RunCancelled(by=ADA, reason="The customer was erased."))
    async with world.client("alex") as alex, browser(world, "alex") as console:
        for ticket in ("TCK-1", "TCK-2"):
            problem(await alex.post(f"/v1/tickets/{ticket}/runs"), 409)
            assert (await console.post(f"/tickets/{ticket}/runs")).status_code == 409
        pages = [(await console.get(path)).text for path in ("/tickets?state=all", "/tickets/TCK-1", "/tickets/TCK-2")]
        assert len((await alex.get("/v1/runs")).json()["runs"]) == 1
    for page in pages:
        assert "/runs?for=" not in page
        assert '/runs"' not in page
    assert "The customer was erased" in pages[1]


async def test_nobody_writes_to_a_customer_who_was_erased(world: World) -> None:
    await erased(world, "TCK-1", RunTakenOver(by=ALEX, reason=""), channel="chat")
    async with world.client("alex") as alex, browser(world, "alex") as console:
        problem(await alex.post("/v1/runs/TCK-1-1/messages", json={"text": "Hello?"}), 409)
        page = (await console.get("/tickets/TCK-1")).text
    assert "/messages" not in page
    assert not any(isinstance(event.fact, PersonSaid) for event in (await world.runs.history("acme", "TCK-1-1")).events)
