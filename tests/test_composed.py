"""The composed system, run as its files say but without containers: a ticket worked, and what operators ask of it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, LiteralString

import nats.errors
import psycopg
import pytest
from contracts.connection import connect
from pydantic import SecretStr
from turngate import records
from turngate.setup import in_database

from .composed import Composed, composed
from .world import until

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def system() -> Iterator[Composed]:
    with composed() as running:
        yield running


@pytest.fixture(scope="module")
def worked(system: Composed) -> str:
    """A run that has ended."""
    run: str = system.api("alex").post("/v1/tickets/TCK-2001/runs")["run"]
    for _ in system.api("alex").events(f"/v1/runs/{run}/events"):
        pass
    return run


def subscribers(system: Composed) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(system.turngate("subscriber", "list", "--json").stdout)["subscribers"]
    return found


def told_to_the_broker(system: Composed) -> None:
    """What `subscriber add` says is to be done."""
    printed = system.turngate("subscriber", "users")
    assert printed.returncode == 0, printed.stderr
    system.subscribers.write_text(printed.stdout)
    system.broker_reads_again()


async def pulled(told: dict[str, Any], count: int) -> list[dict[str, Any]]:
    settings = records.settings(nats_url=told["url"], nats_nkey=SecretStr(told["seed"]))
    nc = await connect(settings, inbox_prefix=told["inbox_prefix"], allow_reconnect=False)
    try:
        facts = await nc.jetstream().pull_subscribe_bind(told["consumer"], stream=told["stream"])
        found: list[dict[str, Any]] = []
        while len(found) < count:
            for message in await facts.fetch(count - len(found), timeout=10):
                found.append(json.loads(message.data))
                await message.ack()
        return found
    finally:
        await nc.close()


async def last_of_the_tenant(url: str, system: Composed) -> dict[str, Any]:
    """What acme's line says last."""
    password = SecretStr(system.environment("set-up")["TURNGATE_NATS_PASSWORD"])
    nc = await connect(records.settings(nats_url=url, nats_user="setup", nats_password=password))
    try:
        message = await nc.jetstream().get_last_msg("TENANTS", "tenant.acme.>")
        said: dict[str, Any] = json.loads(message.data or b"")
        return said
    finally:
        await nc.close()


def enters(told: dict[str, Any]) -> bool:
    try:
        asyncio.run(pulled(told, 0))
    except (OSError, nats.errors.Error):
        return False
    return True


def test_a_ticket_is_worked_by_the_five_services_as_they_are_composed(system: Composed, worked: str) -> None:
    assert system.api("alex").get(f"/v1/runs/{worked}")["status"] == "resolved"


def test_who_may_not_let_others_in_changes_nothing(system: Composed) -> None:
    before = system.turngate("subscriber", "users").stdout
    for who, why in (("", "TURNGATE_TOKEN"), ("alex", "scope subscribers"), ("gia", "--tenant")):
        token = system.token(who) if who else ""
        refused = system.turngate("subscriber", "add", "sly", "--tenant", "acme", token=token)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert why in refused.stderr
    assert before
    assert system.turngate("subscriber", "users").stdout == before


def test_another_system_hears_sealed_facts_once_its_admin_said_so_and_the_broker_was_told(
    system: Composed, worked: str
) -> None:
    # given what the admin asked for, which the broker does not know of yet
    added = system.turngate("subscriber", "add", "crm", "--tenant", "acme", "--json", token=system.token("ada"))
    assert added.returncode == 0, added.stderr
    told = json.loads(added.stdout)
    assert not enters(told)
    # when the broker's file is written and read again
    told_to_the_broker(system)
    until(lambda: enters(told), within=30)
    # then each accepted fact comes once, in the log's order, and nothing personal is in it
    run = system.api("alex").get(f"/v1/runs/{worked}/events")["events"]
    heard = asyncio.run(pulled(told, len(run)))
    assert [fact["id"] for fact in heard] == [fact["id"] for fact in run]
    ticket = run[0]["data"]["ticket"]
    for secret in (ticket["customer"]["email"], ticket["body"], ticket["subject"]):
        assert secret not in json.dumps(heard)
    assert [(one["name"], one["tenant"]) for one in subscribers(system)] == [("crm", "acme")]
    # and the record says who it was
    said = asyncio.run(last_of_the_tenant(told["url"], system))
    assert (said["data"]["subscriber"], said["data"]["by"]["subject"]) == ("crm", "ada")


def test_who_is_removed_is_shut_out_once_the_broker_was_told(system: Composed) -> None:
    added = system.turngate("subscriber", "add", "former", "--tenant", "acme", "--json", token=system.token("ada"))
    told = json.loads(added.stdout)
    told_to_the_broker(system)
    until(lambda: enters(told), within=30)
    assert system.turngate("subscriber", "remove", "former", token=system.token("alex")).returncode == 1
    assert enters(told)

    removed = system.turngate("subscriber", "remove", "former", token=system.token("ada"))

    assert removed.returncode == 0, removed.stderr
    assert "HUP nats" in removed.stdout
    told_to_the_broker(system)
    until(lambda: not enters(told), within=30)
    assert "former" not in [one["name"] for one in subscribers(system)]


def test_a_customer_is_erased_by_the_admins_token(system: Composed, worked: str) -> None:
    ticket = system.api("alex").get(f"/v1/runs/{worked}/events")["events"][0]["data"]["ticket"]
    customer = of_the_shop(system, ticket["customer"]["email"])
    for who, words in (("", "TURNGATE_TOKEN"), ("alex", "scope erase")):
        refused = system.turngate("erase", "--customer", customer, token=system.token(who) if who else "")
        assert (refused.returncode, words in refused.stderr) == (1, True), refused.stderr
    assert names(system, customer) != ["[erased]"]

    erased = system.turngate("erase", "--customer", customer, "--json", token=system.token("ada"))

    assert erased.returncode == 0, erased.stderr
    assert worked in json.loads(erased.stdout)["runs"]
    assert names(system, customer) == ["[erased]"]
    ticket = system.api("alex").get(f"/v1/runs/{worked}/events")["events"][0]["data"]["ticket"]
    assert ticket["body"] == "[erased]"


def of_the_shop(system: Composed, email: str) -> str:
    query = "select id from shop.customers where tenant = 'acme' and lower(email) = lower(%s)"
    [customer] = ask(system, query, email)
    return customer


def names(system: Composed, customer: str) -> list[str]:
    return ask(system, "select name from shop.customers where tenant = 'acme' and id = %s", customer)


def ask(system: Composed, query: LiteralString, *values: str) -> list[str]:
    with psycopg.connect(in_database(system.postgres.dsn(), "turngate")) as connection:
        return [row[0] for row in connection.execute(query, values)]
