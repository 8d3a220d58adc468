"""Who did what, on whose behalf and why; and what an auditor is not shown."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from contracts.events import Draft, Event
from contracts.facts import CallDecided, CustomerSaid, DecisionRefused
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.memory import MemoryLog
from contracts.parts import Customer, Person
from contracts.personal import ERASED
from contracts.subjects import TENANTS, RunKey
from contracts.tenant_facts import BudgetSet, CustomerErased, StopSet, SubscriberAdded, SubscriberRemoved
from gateway import audit, audit_log, spreadsheet
from gateway.audit import Row
from gateway.audit_log import AuditLog, Wanted
from gateway.audit_run import of_run
from gateway.feed import Feed
from gateway.profiles import Tenants
from gateway.redaction import Redaction
from gateway.runs import Runs
from gateway.tenant_facts import TenantFacts

from .conftest import World, connect
from .facts import (
    ALEX,
    SAM,
    TOM,
    decided,
    executed,
    forwarded,
    proposed,
    quoted,
    read,
    refund,
    refused,
    started,
    story_from_the_hold,
    story_to_the_hold,
)
from .test_api import problem
from .test_domain import asker
from .test_stops import ADA, tenant_line
from .told import KEY, Told

pytestmark = pytest.mark.timeout(60)
REDACTION = Redaction(b"a key", "GBP")
TOMS = REDACTION.pseudonym(TOM)
ARI = Person(subject="ari", issuer=ALEX.issuer, role="auditor")
ENDED = story_from_the_hold()[3:]


def test_a_run_is_told_by_who_did_what_for_whom_and_why() -> None:
    rows, customer = of_run(Told(*story_to_the_hold(), *story_from_the_hold()).events)
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
    rows, _ = of_run(told.events)
    assert [(row.actor, row.who, row.role, row.did) for row in rows[1:]] == [
        ("customer", "Tom Whitfield", None, "wrote"),
        ("person", "alex", "operator", "wrote as the customer"),
    ]


def test_reads_are_not_audited_and_every_row_names_its_fact() -> None:
    told = Told(*story_to_the_hold(), *story_from_the_hold())
    rows, _ = of_run(told.events)
    assert {row.sequence for row in rows} <= {event.sequence for event in told.events}
    assert all("get_order" not in row.what for row in rows)


def changed(to: int = 12000) -> tuple[CallDecided, list[Any]]:
    """Sam approves less than was asked for, and what then happens."""
    was, now = refund("c-2"), refund("c-2", to)
    now = now.model_copy(update={"edited": was.digest})
    rest = [quoted(2, now, attempt=2), forwarded(2, now), executed(2, ("c-2", f"Refunded {to}.")), *ENDED]
    return decided(2, was, SAM, edited=was.arguments | {"amount_pence": to}), rest


def test_an_approval_with_changes_is_about_what_it_came_to_and_says_what_was_asked_for() -> None:
    decision, rest = changed()
    rows, _ = of_run(Told(*story_to_the_hold(), decision, *rest).events)
    approved = next(row for row in rows if row.who == "sam")
    assert approved.did == "approved it with changes: amount £120.00 instead of £180.00"
    assert (approved.amount_minor, approved.asked_minor, approved.moved_minor) == (12000, 18000, None)
    assert [row.moved_minor for row in rows if row.moved_minor is not None] == [12000]
    not_yet, _ = of_run(Told(*story_to_the_hold(), decision).events)
    assert (not_yet[-1].amount_minor, not_yet[-1].asked_minor) == (None, 18000)


def test_of_an_erased_change_no_words_are_left_dangling() -> None:
    log = MemoryLog(sealed=True)
    for fact in (*story_to_the_hold(), changed()[0]):
        history = log.history(KEY)
        log.say(history, Draft(fact, history.head, key=str(len(history.events))))
    log.erase(KEY)
    rows, _ = of_run(log.history(KEY).events)
    assert (rows[-1].who, rows[-1].did) == ("sam", "approved it with changes")


def test_what_was_approved_and_then_refused_is_a_row_of_what_was_not_done() -> None:
    money = refund("c-2")
    rows, _ = of_run(Told(*story_to_the_hold(), decided(2, money), refused(2, "stopped", "c-2")).events)
    last = rows[-1]
    assert (last.actor, last.did, last.why) == ("policy", "refused it after it was approved", "stopped")
    assert (last.amount_minor, last.moved_minor, last.currency) == (18000, None, "GBP")
    assert "ORD-10042" in last.what
    at_once, _ = of_run(Told(*story_to_the_hold()[:-1], refused(2, "refund-window", "c-2")).events)
    assert (at_once[-1].did, at_once[-1].amount_minor) == ("refused it", 18000)
    unknown = [started(), proposed(1, ("c-1", "no_such_tool", {})), quoted(1, read("c-1")), refused(1, "tools", "c-1")]
    assert of_run(Told(*unknown).events)[0][-1].did == "refused turn 1"


def test_only_what_was_carried_out_has_moved_money() -> None:
    money = refund("c-2")
    for forward, execute in (
        (forwarded(2, money, declined=("c-2",)), executed(2, ("c-2", "A person declined it."))),
        (forwarded(2, money), executed(2, ("c-2", "It failed."), is_error=True)),
        (forwarded(2, money), executed(2, ("c-2", "Refunded."), duplicate=True)),
    ):
        rows, _ = of_run(Told(*story_to_the_hold(), forward, execute).events)
        assert rows[-1].actor == "shop"
        assert all(row.moved_minor is None for row in rows)


def test_what_a_pack_in_audit_mode_let_pass_says_so() -> None:
    text = "c-2 (issue_refund) would have been refused by refund-window: 40 days have gone by."
    passed = forwarded(2, refund("c-2")).model_copy(update={"would_have": [text]})
    held_all_the_same = story_to_the_hold()[-1].model_copy(update={"would_have": [text]})
    for facts in ([passed], [held_all_the_same]):
        rows, _ = of_run(Told(*story_to_the_hold()[:-1], *facts).events)
        assert rows[-1].why.endswith("; (issue_refund) would have been refused by refund-window: 40 days have gone by.")


def test_a_person_is_named_with_their_issuer() -> None:
    rows, _ = of_run(Told(*story_to_the_hold(), *story_from_the_hold()).events)
    assert {row.who_issuer for row in rows if row.actor == "person"} == {ALEX.issuer}
    assert {row.who_issuer for row in rows if row.actor != "person"} == {None}


def test_a_customer_is_the_same_pseudonym_wherever_they_are_named() -> None:
    note = "Tom Whitfield (tom.whitfield@mail.example, C-1004) rang; Tom is right"
    rows, customer = of_run(Told(*story_to_the_hold(), decided(2, refund("c-2"), SAM, note=note)).events)
    row = audit.redacted(rows[-1], REDACTION, customer)
    assert row.why == f"{TOMS} ({TOMS}, {TOMS}) rang; {TOMS} is right"
    assert (row.customer, row.who) == (TOMS, "sam")
    by_tom = Person(subject="cust-C-1004", issuer=ALEX.issuer, role="customer")
    [row], customer = of_run(Told(started(by=by_tom)).events)
    assert (row.actor, audit.redacted(row, REDACTION, customer).who) == ("customer", TOMS)


def test_who_did_it_is_named_in_the_words_of_it_too() -> None:
    rows, customer = of_run(Told(*story_to_the_hold(), *story_from_the_hold()[:2]).events)
    row = rows[-1].model_copy(update={"why": "Released by sam.", "released_by": ["sam"]})
    assert audit.redacted(row, REDACTION, customer).why == "Released by sam."


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


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", " =1", "＝1", "|x", "%x"])
def test_no_cell_becomes_a_formula(text: str) -> None:
    assert spreadsheet.cell(text) == f"'{text}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred", "a⟨U+001B⟩[31mred"),
        ("issue_refund\n", "issue_refund⟨U+000A⟩"),
        ("\t=1", "'⟨U+0009⟩=1"),
        ("\r=1", "'⟨U+000D⟩=1"),
        ("\x00x", "⟨U+0000⟩x"),
        ("\u202eevil", "⟨U+202E⟩evil"),
        ("👩\u200d💻 café", "👩\u200d💻 café"),
    ],
)
def test_no_cell_hides_something(text: str, shown: str) -> None:
    assert spreadsheet.cell(text) == shown


def test_numbers_stay_numbers_and_text_stays_text() -> None:
    assert [spreadsheet.cell(value) for value in (18000, None, "a=b", -5)] == ["18000", "", "a=b", "-5"]


@pytest.mark.parametrize(
    ("reason", "did"),
    [
        ("The run has ended: The run ended (desk.run-cancelled).", "tried to decline it after the run had ended"),
        ("Decided already: sue approved this 3 s before you.", "tried to decline it where a decision stood already"),
        ("Moved on: This turn no longer waits.", "tried to decline it when it was no longer held"),
        ("Expired: This could be decided until …", "tried to decline it after its time had run out"),
        ("Another effect: What this call would do …", "tried to decline it as something else than it had come to be"),
        ("No such held call: Turn 2 holds no call c-9.", "tried to decline it where no such call was held"),
        ("Above your role: This needs the role lead; yours is approver.", "tried to decline it and may not"),
        ("Not yours to decide: You started this run.", "tried to decline it and may not"),
        ("Something that a later version says: …", "tried to decline it and it did not count"),
        ("", "tried to decline it and it did not count"),
    ],
)
def test_a_decision_that_did_not_count_says_what_was_so(reason: str, did: str) -> None:
    refused_one = DecisionRefused(turn=2, call_id="c-2", by=SAM, decision="decline", reason=reason)
    rows, _ = of_run(Told(*story_to_the_hold(), refused_one).events)
    assert (rows[-1].who, rows[-1].did, rows[-1].why) == ("sam", did, reason)


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


async def test_an_auditor_reads_everything_once_the_newest_first_and_no_customer(world: World) -> None:
    for run in ("TCK-1-1", "TCK-2-1"):
        await story(world, run, note="Tom called from 07700 900123")
    say = await tenant_line(world)
    await say(StopSet(stop_id="stop-1", reason="a strange pattern", by=ADA))
    await say(CustomerErased(customer="C-1009", by=ADA))
    await say(BudgetSet(day_micro_usd=5_000_000, by=ADA))
    await say(SubscriberAdded(subscriber="warehouse", by=ADA))
    await say(SubscriberRemoved(subscriber="warehouse", by=ADA))
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
    assert [row["at"] for row in whole] == sorted((str(row["at"]) for row in whole), reverse=True)
    assert {row["run"] for row in whole} == {"TCK-1-1", "TCK-2-1", None}
    assert "Tom" not in json.dumps(whole)
    assert "mail.example" not in json.dumps(whole)
    assert [row["why"] for row in whole if row["who"] == "sam"] == [
        f"{alias} called from [phone]" for alias in aliases
    ] * 2
    assert len(aliases) == 1
    assert [(row["did"], row["what"]) for row in whole if row["who"] == "ada"] == [
        ("shut a subscriber out", "warehouse"),
        ("let a subscriber hear the facts", "warehouse"),
        ("set the budget of model calls", "5000000 micro-dollars a day"),
        ("erased a customer", "C-1009"),
        ("set a stop", "everything that changes something"),
    ]


async def test_a_page_is_before_the_one_that_one_has_seen_whatever_came_meanwhile(world: World) -> None:
    await story(world, "TCK-1-1")
    async with world.client("ari") as ari:
        before = await rows(ari)
        first = (await ari.get("/v1/audit", params={"limit": 3})).json()
        of_run = (await ari.get("/v1/audit", params={"limit": 3, "run": "TCK-1-1"})).json()
        await story(world, "TCK-2-1")
        await world.others.say("TCK-1-1", CustomerSaid(text="Thanks", message_id="m-1"))
        rest = await rows(ari, cursor=first["next"])
        rest_of_run = await rows(ari, cursor=of_run["next"], run="TCK-1-1")
        now = await rows(ari)
    assert first["rows"] + rest == before
    assert of_run["rows"] + rest_of_run == before
    assert now[-len(before) :] == before
    assert {row["run"] for row in now[:4]} >= {"TCK-1-1", "TCK-2-1"}


async def test_what_is_far_back_is_found_between_the_facts_of_other_tenants(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_log, "WINDOW", 2)
    monkeypatch.setattr(audit_log, "LARGEST_WINDOW", 8)
    await story(world, "TCK-1-1")
    between = datetime.now(UTC)
    for number in range(12):
        await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"), tenant="globex")
    await story(world, "TCK-2-1")
    async with world.client("ari") as ari:
        whole, paged = await rows(ari), await rows(ari, limit=2)
        early = await rows(ari, until=between.isoformat(), limit=2)
        lines = await ari.get("/v1/audit", headers={"Accept": "application/x-ndjson"})
    assert whole == paged == [json.loads(line) for line in lines.text.splitlines()][::-1]
    assert early == [row for row in whole if row["run"] == "TCK-1-1"]
    assert {row["run"] for row in whole} == {"TCK-1-1", "TCK-2-1"}


async def test_rows_are_filtered_by_run_person_and_time(world: World) -> None:
    await story(world, "TCK-1-1")
    head = (await world.runs.history("acme", "TCK-1-1")).head
    assert head is not None
    between = head.time + timedelta(microseconds=1)
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


async def test_the_export_is_all_of_it_as_csv_or_json_lines_the_oldest_first(world: World) -> None:
    await story(world, note='=HYPERLINK("http://evil.example","x")')
    async with world.client("ari") as ari:
        whole = await rows(ari)
        as_csv = await ari.get("/v1/audit", headers={"Accept": "text/csv"})
        as_lines = await ari.get("/v1/audit", headers={"Accept": "application/x-ndjson"})
        problem(await ari.get("/v1/audit?run=TCK-99-1", headers={"Accept": "text/csv"}), 404)
    table = list(csv.DictReader(io.StringIO(as_csv.text)))
    assert [json.loads(line) for line in as_lines.text.splitlines()] == whole[::-1]
    assert [row["event"] for row in table] == [row["event"] for row in whole[::-1]]
    assert "attachment" in as_csv.headers["content-disposition"]
    assert as_csv.headers["cache-control"] == as_lines.headers["cache-control"] == "no-store"
    assert next(row["why"] for row in table if row["who"] == "sam").startswith("'=HYPERLINK")
    assert sum(int(row["moved_minor"] or 0) for row in table) == 18000


async def test_an_export_reads_each_fact_once_and_says_of_changes_what_they_came_to(world: World) -> None:
    class Counts(JetStreamLog):
        """Which runs were read one by one."""

        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            self.read_again: list[str] = []

        async def read(self, key: RunKey, at: Event | None = None) -> History:
            self.read_again.append(key.run)
            return await super().read(key, at)

    for number in range(1, 5):
        await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"), *story_to_the_hold()[1:])
    decision, rest = changed()
    await world.others.say("TCK-4-1", decision, *rest)
    bus = await connect(world.nats, "gateway")
    log, line = Counts(bus.nc, keys=bus.keys), Counts(bus.nc, stream=TENANTS)
    runs, tenants = Runs(log, bus, world.desk, None), Tenants(world.settings.tenants_dir)
    reader = AuditLog(log, Feed(bus, log), runs, TenantFacts(line), world.desk, tenants)
    found: list[Row] = []
    pages = 0
    async for page in reader.pages(asker(ARI), Wanted(), 2):
        found, pages = found + page, pages + 1
    await bus.close()
    assert pages > 3
    assert log.read_again == ["TCK-4-1"], "of changes one has to look what they came to"
    assert line.read_again == ["acme"]
    assert [(row.amount_minor, row.asked_minor) for row in found if row.who == "sam"] == [(12000, 18000)]
