"""One customer is one customer, however their e-mail address is written: in histories, pseudonyms and erasures."""

import unicodedata

import psycopg
import pytest
from contracts.facts import RunErased
from contracts.parts import Customer
from contracts.personal import ERASED
from gateway.erasure import erase
from gateway.histories import History
from gateway.redaction import Redaction
from turngate import databases, migrations
from turngate.testing import Database

from .conftest import World
from .facts import TOM, started, story_from_the_hold, story_to_the_hold
from .test_erasure import ERASE, approvals_agree
from .test_personal import browser

pytestmark = pytest.mark.timeout(60)
REDACTION = Redaction(b"a key", "GBP")
NFD = unicodedata.normalize("NFD", "josé@mail.example")


async def run_for(world: World, ticket: str, email: str, *facts: object) -> None:
    start = started(ticket)
    customer = Customer(email=email, name="A customer")
    start = start.model_copy(update={"ticket": start.ticket.model_copy(update={"customer": customer})})
    await world.others.say(f"{ticket}-1", start, *facts)


@pytest.mark.parametrize(
    ("earlier", "now"),
    [
        ("tom.whitfield@mail.example", "TOM.WHITFIELD@MAIL.EXAMPLE"),
        ("straßer@mail.example", "STRAẞER@mail.example"),
        (NFD, "JOSÉ@mail.example"),
        ("tom@bücher.example", "tom@xn--bcher-kva.example"),
    ],
)
async def test_an_approver_is_shown_the_customers_history_however_they_write_their_address(
    world: World, earlier: str, now: str
) -> None:
    world.pays_in_pounds()
    await run_for(world, "TCK-1", earlier, *story_to_the_hold()[1:], *story_from_the_hold())
    await run_for(world, "TCK-2", now, *story_to_the_hold()[1:])
    await world.seen("TCK-2-1")
    async with world.client("sam") as sam:
        [held] = (await sam.get("/v1/approvals")).json()["approvals"]
    async with browser(world, "sam") as sam:
        page = (await sam.get("/tickets/TCK-2")).text
    assert (held["run"], held["history"]["runs"]) == ("TCK-2-1", 1)
    assert held["history"]["moved"] == [{"currency": "GBP", "amount_minor": 18000}]
    assert "180.00" in page.partition("Moved in them")[2][:200]


@pytest.mark.parametrize(
    ("one", "other"),
    [("straßer@mail.example", "strasser@mail.example"), ("no address", "no address"), ("", "")],
)
async def test_another_customers_history_is_not_theirs(world: World, one: str, other: str) -> None:
    await run_for(world, "TCK-1", one)
    await run_for(world, "TCK-2", other)
    await world.seen("TCK-2-1")
    [_, view] = sorted(await world.desk.runs("acme"), key=lambda view: view.run)
    assert (await world.desk.histories("acme", [view]))["TCK-2-1"] == History()


async def test_all_tickets_of_who_is_erased_are_theirs_however_they_wrote_their_address(world: World) -> None:
    spelt = ["JOSÉ@mail.example", "josé@MAIL.example", NFD]
    others = ["jose@mail.example", "nobody", "", "josé+1@mail.example"]
    for n, email in enumerate([*spelt, *others]):
        await world.ticket(f"TCK-{n}", customer=Customer(email=email, name="A customer"))
    await approvals_agree(world)
    await erase(world.settings, ERASE.model_copy(update={"emails": [spelt[0], ""], "customer": "C-9"}))
    tickets = {one.ticket: one.customer.email for one in await world.desk.tickets("acme")}
    assert [tickets[f"TCK-{n}"] for n in range(len(spelt) + len(others))] == [ERASED] * len(spelt) + others


async def test_runs_of_who_was_erased_are_nobodys_history(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", started())
    await world.seen("TCK-2004-1")
    await approvals_agree(world)
    await erase(world.settings, ERASE)
    assert (await world.runs.history("acme", "TCK-2004-1")).last(RunErased) is not None
    [view] = await world.desk.runs("acme")
    for email in (TOM.email, ERASED):
        other = view.model_copy(update={"run": "TCK-9-1", "customer": Customer(email=email)})
        assert await world.desk.histories("acme", [other]) == {"TCK-9-1": History()}


@pytest.mark.parametrize(
    "email", ["JOSÉ@mail.example", NFD, " josé@mail.example ", "josé@MAIL.example.", "josé@ｍａｉｌ.example"]
)
def test_a_pseudonym_is_the_mailboxs(email: str) -> None:
    assert REDACTION.pseudonym(Customer(email=email)) == REDACTION.pseudonym(Customer(email="josé@mail.example"))


@pytest.mark.parametrize("email", ["strasser@mail.example", "straßer@mail", "nobody", "", "straßer"])
def test_another_mailbox_has_another_pseudonym(email: str) -> None:
    assert REDACTION.pseudonym(Customer(email=email)) != REDACTION.pseudonym(Customer(email="straßer@mail.example"))


def test_old_rows_are_given_the_address_that_they_are_compared_by(fresh_database: Database) -> None:
    emails = ["TOM@mail.example", NFD, "nobody", ERASED]
    with psycopg.connect(fresh_database.superuser, autocommit=True) as connection:
        connection.execute("drop schema desk cascade")
        databases.create_schemas(connection)
        migrations.migrate(fresh_database.owner, "gateway.migrations", "desk", "0005")
        for n, email in enumerate(emails):
            connection.execute(
                "insert into desk.tickets (tenant, reference, channel, customer_email, subject, body, opened_at)"
                " values ('t', %s, 'ticket', %s, '', '', now())",
                [f"TCK-{n}", email],
            )
            connection.execute(
                "insert into desk.runs (tenant, run, ticket, n, status, customer_email, started_event, started_at,"
                " sequence, state) values ('t', %s, %s, 1, 'resolved', %s, '', now(), 1, '{}')",
                [f"TCK-{n}-1", f"TCK-{n}", email],
            )
        migrations.migrate(fresh_database.owner, "gateway.migrations", "desk")
        for table in (b"tickets", b"runs"):
            rows = connection.execute(b"select customer_address from desk.%s order by 1 nulls last" % table).fetchall()
            assert [row[0] for row in rows] == ["josé@mail.example", "tom@mail.example", None, None]
            bound = connection.execute(
                "select relforcerowsecurity from pg_class where oid = %s::regclass", [f"desk.{table.decode()}"]
            )
            assert bound.fetchone() == (True,)
