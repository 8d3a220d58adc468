"""The authority table, attacked: what each stolen credential is good for, and what it is not."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from contracts.bus import Bus
from contracts.errors import Forbidden
from contracts.events import Draft
from contracts.examples import EXAMPLES
from contracts.facts import CallDecided, Fact, TurnForwarded, TurnQuoted
from contracts.log import JetStreamLog
from contracts.parts import Person
from contracts.settings import ServiceSettings
from contracts.subjects import RunKey
from psycopg import sql
from turngate.databases import KEEPS
from turngate.running import RunningSystem
from turngate.testing import Database

from . import attack as attacks
from .attack import attack, written
from .attack_broker import how_refused
from .attack_database import THEIRS, planted
from .attempts import Attempt
from .test_money import forward
from .world import DONE, Case, Run, open_case, refund, turn

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def case(system: RunningSystem) -> Case:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    return case


@pytest.fixture(scope="module")
def run(case: Case) -> Run:
    """One that waits for a person to release £180.00."""
    run = case.start()
    assert len(run.holds()) == 1
    return run


@pytest.fixture(scope="module")
def attempts(system: RunningSystem, run: Run) -> Iterator[list[Attempt]]:
    before = run.view()["sequence"]
    yield attack(system, run.run)
    assert run.view()["sequence"] == before, "something of the attack reached the log"


def test_whatever_a_stolen_credential_tries_is_refused(attempts: list[Attempt]) -> None:
    assert [attempt for attempt in attempts if attempt.refused is None] == []


def test_everything_is_tried_with_every_credential(attempts: list[Attempt]) -> None:
    with_tables = {keep.service for keep in KEEPS}
    assert len(attempts) > 4000
    for service in attacks.SERVICES:
        tried = {attempt.what for attempt in attempts if attempt.who == service}
        assert tried == {*attacks.BROKER, *(attacks.TABLES if service in with_tables else ())}


def test_who_is_refused_alone_is_not_taken_to_be_refused_in_a_queue() -> None:
    alone, queued = 'permissions violation for subscription to "run.>"', 'subscription to "run.>" using queue "thief"'
    assert how_refused([alone], "run.>", "") == alone
    assert how_refused([alone], "run.>", "thief") is None
    assert how_refused([queued], "run.>", "") is None
    assert how_refused([alone, queued], "run.>", "thief") == queued


def test_each_table_has_a_row_of_another_tenant_while_it_is_attacked(postgres: Database) -> None:
    with psycopg.connect(postgres.superuser) as connection:
        bound = connection.execute(
            "select table_schema, table_name from information_schema.columns where column_name = 'tenant'"
        ).fetchall()
        assert len(bound) > 10
        with planted(postgres.superuser, bound):
            for schema, table in bound:
                query = sql.SQL("select count(*) from {} where tenant = %s").format(sql.Identifier(schema, table))
                assert connection.execute(query, [THEIRS]).fetchone() == (1,), table


def test_the_table_in_the_threat_model_is_what_came_of_the_attack(attempts: list[Attempt]) -> None:
    page = attacks.PAGE.read_text()
    assert page == written(page, attempts), "make attack"


FORGED = {
    "agent-runner": ("policy.turn-forwarded", "approvals.call-decided"),
    "gateway": ("policy.turn-forwarded", "approvals.call-decided"),
    "policy": ("approvals.call-decided",),
    "approvals": ("policy.turn-forwarded", "policy.turn-held"),
    "tools-shop": ("policy.turn-forwarded", "approvals.call-decided"),
}


@pytest.mark.parametrize(("service", "kind"), [(name, kind) for name, kinds in FORGED.items() for kind in kinds])
def test_a_fact_forged_with_a_services_own_credentials_never_reaches_the_log(
    system: RunningSystem, case: Case, run: Run, service: str, kind: str
) -> None:
    # given a forgery that would release the refund
    (hold,) = run.holds()
    quoted = run.until(TurnQuoted)
    sam = Person(subject="sam", issuer=run.view()["requested_by"]["issuer"], role="approver")
    made: dict[str, Fact] = {
        TurnForwarded.kind: forward(quoted),
        CallDecided.kind: CallDecided(
            turn=hold["turn"], call_id=hold["call_id"], digest=hold["digest"], decision="approve", by=sam
        ),
    }
    before = run.kinds()
    # when it is said with that service's credentials, then it is refused at once
    with pytest.raises(Forbidden, match="does not let this service publish"):
        asyncio.run(_say(system, service, run, made.get(kind, EXAMPLES[kind])))
    assert run.kinds() == before
    assert case.refunds() == []


async def _say(system: RunningSystem, service: str, run: Run, fact: Fact) -> None:
    told = system.environment(service)
    names = {"nats_url": told["TURNGATE_NATS_URL"], "nats_nkey": told["TURNGATE_NATS_NKEY"]}
    bus = await Bus.connect(ServiceSettings.model_validate(names), service)
    try:
        log = JetStreamLog(bus.nc)
        bus.on_error.append(log.on_error)
        async with asyncio.timeout(5):
            history = await log.read(RunKey(run.tenant, run.run))
            await log.append(history, Draft(fact, history.head))
    finally:
        await bus.close(0)


# The page

NAMED = re.compile(r"`((?:libs|services|tests)/[\w/.-]+\.py)::(test_\w+)`")
ROOT = Path(__file__).parents[1]


def test_each_test_that_the_threat_model_names_exists() -> None:
    named = NAMED.findall(attacks.PAGE.read_text())
    assert len(named) > 20
    for file, name in named:
        assert (ROOT / file).is_file(), file
        assert re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.M), f"{file}::{name}"


def test_each_row_of_the_authority_table_names_a_test() -> None:
    page = attacks.PAGE.read_text()
    rows = [
        line for line in page.split("## Who can do what")[1].split("\n## ")[0].splitlines() if line.startswith("| ")
    ]
    who = [row.split("|")[1].strip() for row in rows[1:]]
    assert who == [
        "the model, or a ticket that talks to it", "agent-runner", "policy", "gateway", "approvals", "tools-shop",
        "one tenant's token", "another system that subscribes",
    ]  # fmt: skip
    for row in rows[1:]:
        assert NAMED.search(row), row
