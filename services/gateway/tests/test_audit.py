"""Who did what, on whose behalf and why; and what an auditor is not shown."""

import asyncio
import csv
import io
import json
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from contracts.facts import CustomerSaid
from contracts.parts import Customer, Person
from contracts.personal import ERASED
from contracts.tenant_facts import CustomerErased, StopSet
from gateway import audit, spreadsheet
from gateway.redaction import Redaction

from .conftest import World
from .facts import ALEX, SAM, TOM, decided, refund, started, story_from_the_hold, story_to_the_hold
from .test_api import problem
from .test_stops import ADA, tenant_line
from .told import Told

pytestmark = pytest.mark.timeout(60)
REDACTION = Redaction(b"a key", "GBP")
TOMS = REDACTION.pseudonym(TOM)


def test_a_run_is_told_by_who_did_what_for_whom_and_why() -> None:
    rows, customer = audit.of_run(Told(*story_to_the_hold(), *story_from_the_hold()).events)
    said = [(row.actor, row.who, row.did, row.amount_minor, row.on_behalf_of) for row in rows]
    assert customer == TOM
    assert said[0] == ("person", "alex", "started a run", None, None)
    assert said[1] == ("policy", "policy", "held it for a person", 18000, "alex")
    assert ("person", "sam", "approved it", 18000, None) in said
    assert ("shop", "shop", "carried it out", 18000, "alex") in said
    assert rows[-1].did == "ended the run as resolved"
    assert "above_automatic" in rows[1].why
    assert (rows[1].policy or "").startswith("acme v1 ")
    assert all(row.customer == "Tom Whitfield" for row in rows)


def test_what_somebody_typed_for_the_customer_is_theirs_in_the_audit() -> None:
    told = Told(started(channel="chat"), CustomerSaid(text="Any news?", message_id="m-1"))
    told.say(CustomerSaid(text="They ask again.", message_id="m-2", by=ALEX))
    rows, _ = audit.of_run(told.events)
    assert [(row.actor, row.who, row.role, row.did) for row in rows[1:]] == [
        ("customer", "Tom Whitfield", None, "wrote"),
        ("person", "alex", "operator", "wrote as the customer"),
    ]


def test_reads_are_not_audited_and_every_row_names_its_fact() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())
    rows, _ = audit.of_run(told.events)
    assert {row.sequence for row in rows} <= {event.sequence for event in told.events}
    assert all("get_order" not in row.what for row in rows)


def test_a_customer_is_the_same_pseudonym_wherever_they_are_named() -> None:
    note = "Tom Whitfield (tom.whitfield@mail.example, C-1004) rang; Tom is right"
    rows, customer = audit.of_run(Told(*story_to_the_hold(), decided(2, refund("c-2"), SAM, note=note)).events)
    row = audit.redacted(rows[-1], REDACTION, customer)
    assert row.why == f"{TOMS} ({TOMS}, {TOMS}) rang; {TOMS} is right"
    assert (row.customer, row.who) == (TOMS, "sam")
    by_tom = Person(subject="cust-C-1004", issuer=ALEX.issuer, role="customer")
    [row], customer = audit.of_run(Told(started(by=by_tom)).events)
    assert (row.actor, audit.redacted(row, REDACTION, customer).who) == ("customer", TOMS)


def test_a_pseudonym_is_the_tenants_own() -> None:
    upper = Customer(email="Tom.Whitfield@Mail.Example")
    assert REDACTION.pseudonym(upper) == TOMS
    assert Redaction(b"another", "GBP").pseudonym(TOM) != TOMS


def test_all_who_were_erased_are_nobody() -> None:
    assert REDACTION.pseudonym(Customer(email=ERASED, id="C-1004")) == ERASED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("write to jo.bloggs+x@mail.example today", "write to [e-mail] today"),
        ("card 4111 1111 1111 1111, please", "card [card], please"),
        ("ring 07700 900123 or +44 20 7946 0958", "ring [phone] or [phone]"),
        ("to 12 Acacia Avenue, Bristol BS1 4DJ", "to [address]"),
        ("IBAN GB33BUKB20201555555555 it is", "IBAN [account] it is"),
        ("ORD-10042 for £180.00, run TCK-2004-1", "ORD-10042 for £180.00, run TCK-2004-1"),
        ("Refund £1,249.00 to Mastercard ending 0937", "Refund £1,249.00 to Mastercard ending 0937"),
        ("the price is 1234567890123456", "the price is 1234567890123456"),
    ],
)
def test_what_patterns_find_is_taken_out_and_what_the_audit_needs_stays(text: str, shown: str) -> None:
    assert REDACTION.text(text) == shown


def test_a_customer_called_price_leaves_prices_alone() -> None:
    price = Customer(email="dylan@mail.example", name="Dylan Price")
    assert REDACTION.text("the price for Mr Price", price) == f"the price for Mr {REDACTION.pseudonym(price)}"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", " =1", "\r=1", "＝1", "|x", "%x"])
def test_no_cell_becomes_a_formula(text: str) -> None:
    assert spreadsheet.cell(text) == f"'{text}"


def test_numbers_stay_numbers_and_text_stays_text() -> None:
    assert [spreadsheet.cell(value) for value in (18000, None, "a=b", -5)] == ["18000", "", "a=b", "-5"]


# Over HTTP


async def story(world: World, run: str = "TCK-2004-1", note: str = "fine") -> None:
    ticket = run.rpartition("-")[0]
    await world.ticket(ticket)
    said = [fact for fact in story_from_the_hold()]
    await world.others.say(run, started(ticket), *story_to_the_hold()[1:])
    await world.others.say(run, decided(2, refund("c-2"), SAM, note=note), *said[1:])


async def rows(client: httpx.AsyncClient, **params: str | int) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    cursor = None
    while True:
        answer = await client.get("/v1/audit", params={**params, **({"cursor": cursor} if cursor else {})})
        assert answer.status_code == 200, answer.text
        found += answer.json()["rows"]
        if (cursor := answer.json()["next"]) is None:
            return found


async def test_an_auditor_reads_everything_once_in_order_and_no_customer(world: World) -> None:
    for run in ("TCK-1-1", "TCK-2-1"):
        await story(world, run, note="Tom called from 07700 900123")
    say = await tenant_line(world)
    await say(StopSet(stop_id="stop-1", reason="a strange pattern", by=ADA))
    await say(CustomerErased(customer="C-1009", by=ADA))
    async with world.client("ari") as ari, world.client("gwen") as gwen, world.client("sam") as sam:
        whole = await rows(ari)
        paged = await rows(ari, limit=3)
        problem(await sam.get("/v1/audit"), 403)
        problem(await gwen.get("/v1/audit"), 403)
        problem(await ari.get("/v1/audit", params={"cursor": "nonsense"}), 400)
        problem(await ari.get("/v1/audit", params={"run": "TCK-99-1"}), 404)
        problem(await ari.get("/v1/audit", params={"since": "yesterday"}), 422)
    aliases = {row["customer"] for row in whole if row["run"]}
    assert [row["event"] for row in paged] == [row["event"] for row in whole]
    assert [row["at"] for row in whole] == sorted(str(row["at"]) for row in whole)
    assert {row["run"] for row in whole} == {"TCK-1-1", "TCK-2-1", None}
    assert "Tom" not in json.dumps(whole)
    assert "mail.example" not in json.dumps(whole)
    assert [row["why"] for row in whole if row["who"] == "sam"] == [
        f"{alias} called from [phone]" for alias in aliases
    ] * 2
    assert len(aliases) == 1
    assert [row["did"] for row in whole if row["who"] == "ada"] == ["set a stop", "erased a customer"]


async def test_rows_are_filtered_by_run_person_and_time(world: World) -> None:
    await story(world, "TCK-1-1")
    between = datetime.now(UTC)
    await asyncio.sleep(0.01)
    await story(world, "TCK-2-1")
    async with world.client("ari") as ari:
        of_run = await rows(ari, run="TCK-1-1", limit=2)
        by_sam = await rows(ari, person="sam")
        later = await rows(ari, since=between.isoformat())
        earlier = await rows(ari, until=between.isoformat())
        none = await rows(ari, since=(between + timedelta(hours=1)).isoformat())
    assert {row["run"] for row in of_run} == {"TCK-1-1"}
    assert {row["who"] for row in by_sam} >= {"sam"}
    assert all(row["who"] == "sam" or "sam" in str(row["released_by"]) for row in by_sam)
    assert {row["run"] for row in later} == {"TCK-2-1"}
    assert {row["run"] for row in earlier} == {"TCK-1-1"}
    assert none == []


async def test_the_export_is_all_of_it_as_csv_or_json_lines(world: World) -> None:
    await story(world, note='=HYPERLINK("http://evil.example","x")')
    async with world.client("ari") as ari:
        whole = await rows(ari)
        as_csv = await ari.get("/v1/audit", headers={"Accept": "text/csv"})
        as_lines = await ari.get("/v1/audit", headers={"Accept": "application/x-ndjson"})
        problem(await ari.get("/v1/audit?run=TCK-99-1", headers={"Accept": "text/csv"}), 404)
    table = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [json.loads(line) for line in as_lines.text.splitlines()] == whole
    assert [row["event"] for row in table] == [row["event"] for row in whole]
    assert "attachment" in as_csv.headers["content-disposition"]
    assert next(row["why"] for row in table if row["who"] == "sam").startswith("'=HYPERLINK")
