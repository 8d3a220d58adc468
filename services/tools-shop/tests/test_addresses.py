"""Whose account a ticket's e-mail address reaches: its own, however it is written, and never anybody else's."""

import unicodedata
from collections.abc import Callable

import psycopg
import pytest
from contracts.bus import Bus
from contracts.facts import TurnExecuted, TurnQuoted
from contracts.parts import ToolCall
from tools_shop import demo
from tools_shop.erasure import Customer, erase
from turngate import databases, migrations
from turngate.testing import Database

from .others import Others, forwarded, proposed, refund
from .shops import TENANTS, Shop, started_for

OpenShop = Callable[[demo.DemoShop], Shop]
ORDER = "ORD-10042"
LOOK_UP = ("get_order", {"order_reference": ORDER})
PAY = ("issue_refund", {"order_reference": ORDER, "amount_pence": 4500, "reason": "broken"})
WHO = ToolCall(call_id="c", tool="find_customer", arguments={"query": "Tom Whitfield"})


def shop_of(email: str, name: str = "Tom Whitfield") -> demo.DemoShop:
    """The demo shop, whose C-1004 has this address and name."""
    acme = demo.read(TENANTS / "acme" / "demo.yaml")
    customers = [
        one.model_copy(update={"email": email, "name": name}) if one.id == "C-1004" else one for one in acme.customers
    ]
    return acme.model_copy(update={"customers": customers})


@pytest.fixture
def acme(open_shop: OpenShop) -> Shop:
    """Tom's account has no e-mail address."""
    return open_shop(shop_of(""))


async def test_a_ticket_whose_address_no_account_has_reaches_none_not_even_the_one_that_has_none(
    others: Others, acme: Shop, running: Bus
) -> None:
    await others.say(started_for("straßer@mail.example"))
    await others.say(proposed(ToolCall(call_id="a", tool="get_order", arguments=LOOK_UP[1]), refund(minor=4500), WHO))
    quoted = await others.hear("tools.turn-quoted")
    assert isinstance(quoted.fact, TurnQuoted)
    await others.say(forwarded(quoted.fact), quoted)
    executed = await others.hear("tools.turn-executed")
    assert isinstance(executed.fact, TurnExecuted)
    assert [result.is_error for result in executed.fact.results] == [True, True, True]
    assert [quote.subject for quote in quoted.fact.quotes] == [None, None, None]
    assert acme.refunds() == []


@pytest.mark.parametrize(
    ("account", "ticket"),
    [
        ("straßer@mail.example", "straßer@mail.example"),
        ("Straßer@Mail.Example", "STRAẞER@mail.example."),
        ("josé@mail.example", unicodedata.normalize("NFD", "JOSÉ@mail.example")),
        (unicodedata.normalize("NFD", "josé@mail.example"), "josé@mail.example"),
        ("tom@bücher.example", "tom@xn--bcher-kva.example"),
        ("tom@xn--bcher-kva.example", "tom@BÜCHER.example"),
        ("tom.whitfield@mail.example", " TOM.Whitfield@MAIL.example "),
    ],
)
async def test_an_account_is_reached_by_its_address_however_it_is_written(
    open_shop: OpenShop, account: str, ticket: str
) -> None:
    shop = open_shop(shop_of(account))
    shop.email = ticket
    found, paid, who = await shop.run(LOOK_UP, PAY, ("find_customer", {"query": ticket.strip()}))
    assert [found.is_error, paid.is_error, who.is_error] == [False] * 3
    assert shop.refunds() == [4500]


@pytest.mark.parametrize(
    ("account", "ticket"),
    [
        ("", ""),
        ("", " "),
        ("", "tom@a@mail.example"),
        ("strasser@mail.example", "straßer@mail.example"),
        ("kim@mail.example", "\N{KELVIN SIGN}im@mail.example"),
        ("\N{KELVIN SIGN}im@mail.example", "kim@mail.example"),
        ("\N{KELVIN SIGN}im@mail.example", "\N{KELVIN SIGN}im@mail.example"),
        ("ilkay@mail.example", "İlkay@mail.example"),
        ("İlkay@mail.example", "ilkay@mail.example"),
        ("tom@mail.example", "ｔｏｍ@mail.example"),
        ("tom@mail.example", "to\u200bm@mail.example"),
        ("to\u200bm@mail.example", "to\u200bm@mail.example"),
        ("tom@mail.example", "tom+refunds@mail.example"),
    ],
)
async def test_an_address_that_is_another_or_nobodys_reaches_nothing(
    open_shop: OpenShop, account: str, ticket: str
) -> None:
    shop = open_shop(shop_of(account))
    shop.email = ticket
    results = await shop.run(LOOK_UP, PAY, ("find_customer", {"query": "Tom Whitfield"}))
    assert [result.is_error for result in results] == [True] * 3
    assert shop.refunds() == []


@pytest.mark.parametrize(
    ("account", "ticket", "reached"),
    [
        ("straßer@mail.example", "STRAẞER@mail.example", True),
        (unicodedata.normalize("NFD", "josé@mail.example"), "josé@mail.example", True),
        ("", "", False),
        ("to\u200bm@mail.example", "tom@mail.example", False),
        ("\N{KELVIN SIGN}im@mail.example", "kim@mail.example", False),
    ],
)
async def test_what_another_program_writes_into_the_shop_is_found_under_the_address_that_it_wrote(
    open_shop: OpenShop, account: str, ticket: str, reached: bool
) -> None:
    shop = open_shop(shop_of("somebody@mail.example"))
    shop.rows("update shop.customers set email = %s where id = 'C-1004'", account)
    shop.email = ticket
    [found] = await shop.run(LOOK_UP)
    assert found.is_error is not reached


async def test_two_accounts_of_one_mailbox_cannot_be_written(open_shop: OpenShop) -> None:
    shop = open_shop(shop_of("josé@mail.example"))
    email = unicodedata.normalize("NFD", "josé@mail.example")
    with pytest.raises(psycopg.errors.UniqueViolation):
        shop.rows("update shop.customers set email = %s where id = 'C-1001'", email)


async def test_who_was_erased_is_reached_by_no_address(open_shop: OpenShop, postgres: Database) -> None:
    shop = open_shop(shop_of("straßer@mail.example"))
    assert erase(postgres.owner, Customer(tenant=shop.tenant, customer="C-1004"))["customers"] == 1
    for shop.email in ("straßer@mail.example", "c-1004@erased.invalid"):
        [found] = await shop.run(LOOK_UP)
        assert found.is_error


def test_old_rows_are_given_the_address_that_they_are_compared_by(fresh_database: Database) -> None:
    old = [
        ("C-1", "tom@mail.example", "tom@mail.example"),
        ("C-2", "straßer@mail.example", "straßer@mail.example"),
        ("C-3", "", None),
        ("C-4", "josé@mail.example", None),  # of these two nobody knows whose it is
        ("C-5", unicodedata.normalize("NFD", "josé@mail.example"), None),
    ]
    with psycopg.connect(fresh_database.superuser, autocommit=True) as connection:
        connection.execute("drop schema shop, help cascade")
        databases.create_schemas(connection)
        migrations.migrate(fresh_database.owner, "tools_shop.migrations", "shop", "0002")
        connection.execute("insert into shop.tenants values ('t', 'T', 'GBP', 'UTC', 0, 30)")
        for customer, email, _ in old:
            connection.execute("insert into shop.customers values ('t', %s, 'Tom', %s)", [customer, email])
        migrations.migrate(fresh_database.owner, "tools_shop.migrations", "shop")
        rows = connection.execute("select id, email, address from shop.customers order by id").fetchall()
        forced = connection.execute("select relforcerowsecurity from pg_class where oid = 'shop.customers'::regclass")
        assert forced.fetchone() == (True,)
    assert rows == old


# find_customer


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("José Ñuñez", unicodedata.normalize("NFD", "josé ñuñez")),
        (unicodedata.normalize("NFD", "José Ñuñez"), "JOSÉ ÑUÑEZ"),
        ("Jörg Straßer", "jörg STRASSER"),
        ("Jörg Straßer", unicodedata.normalize("NFD", "STRAẞER")),
        ("王芳", "王芳"),
        ("Tom  Whitfield", "tom\u00a0whitfield"),
        ("김민지", unicodedata.normalize("NFD", "김민지")),
    ],
)
async def test_a_customer_is_found_by_their_name_however_it_is_typed(
    open_shop: OpenShop, name: str, query: str
) -> None:
    shop = open_shop(shop_of("tom@mail.example", name))
    shop.email = "tom@mail.example"
    [found] = await shop.run(("find_customer", {"query": query}))
    assert not found.is_error, found


@pytest.mark.parametrize("query", ["Jose Ñuñez", "josé", "王", "Wang Fang"])
async def test_a_first_name_or_another_name_finds_nobody(open_shop: OpenShop, query: str) -> None:
    shop = open_shop(shop_of("tom@mail.example", "José Ñuñez"))
    shop.email = "tom@mail.example"
    [found] = await shop.run(("find_customer", {"query": query}))
    assert found.is_error
