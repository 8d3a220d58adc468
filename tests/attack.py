"""What a stolen credential is good for: all that its service should not have, tried on a running system.

`python -m tests.attack` starts a system, attacks it, and writes the table of docs/threat-model.md from what came of it.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats.errors
import psycopg
import structlog
from contracts.bus import Bus
from contracts.connection import settle
from contracts.errors import Forbidden
from contracts.facts import CATALOGUE
from contracts.requests import Requests
from contracts.settings import ServiceSettings
from contracts.subjects import DEAD, KEYS, RUNS, TENANTS, TIMERS
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import ANSWERS, AUTHORS, BESIDE, HEARS, HEARS_DEAD, HEARS_TENANTS, HEARS_TIMERS, permissions
from nats.aio.client import Client
from psycopg import sql
from turngate import records
from turngate.databases import DATABASE, KEEPS, OWNER
from turngate.running import RunningSystem, temporary_system

from .world import DONE, open_case, refund, turn

SERVICES = tuple(AUTHORS)
STREAMS = (RUNS, TENANTS, DEAD, TIMERS, KEYS)
ASKS = tuple(subject for subjects in ANSWERS.values() for subject in subjects)
PAGE = Path(__file__).parents[1] / "docs" / "threat-model.md"
BEGIN, END = "<!-- the attack: written by `make attack` -->\n", "<!-- end of the attack -->\n"
SOON = 30.0

# What is tried, in the words of the table.
SAY = "say another's fact"
BE_THE_LOG = "pose as the log, a timer, a dead letter, somebody's inbox"
ASK = "ask what it does not ask"
TAKE = "take or acknowledge another's messages"
MANAGE = "change or list streams and consumers"
LISTEN = "listen in"
REPLY = "have an answer of the broker's delivered as its word"
OTHERS = "another service's tables"
OWN = "its own tables: their shape, their rules, what must stay"
TENANT = "rows of another tenant"
ROLE = "be somebody else in the database, reach its files or programs"
BROKER, TABLES = (SAY, BE_THE_LOG, ASK, TAKE, MANAGE, LISTEN, REPLY), (OTHERS, OWN, TENANT, ROLE)


@dataclass(frozen=True)
class Attempt:
    """One operation with one credential. `refused` is how; None where it went through."""

    who: str
    what: str
    operation: str
    refused: str | None


def attack(system: RunningSystem, run: str) -> list[Attempt]:
    """All of it, with each service's own credentials. `run` is one of acme's, which waits for a person."""
    return [*asyncio.run(_broker(system, run)), *_tables(system)]


# The broker


def others_subjects(service: str, run: str) -> Iterable[tuple[str, str]]:
    """What is tried, and each subject that it is tried on; whatever its permissions should say is left out by name."""
    author, lines = AUTHORS[service], {service, *BESIDE.get(service, ())}
    every = [*SERVICES, *(line for names in BESIDE.values() for line in names)]
    for kind, fact in CATALOGUE.items():
        if fact.author != author:
            yield SAY, f"run.acme.{run}.{kind}"
    for kind, fact in TENANT_FACTS.items():
        if fact.author != author:
            yield SAY, f"tenant.acme.{kind}"
    yield SAY, f"run.acme.{run}.{author}.no-such-fact"
    yield BE_THE_LOG, f"log.run.acme.{run}.policy.turn-forwarded"
    yield BE_THE_LOG, "log.tenant.acme.approvals.stop-lifted"
    for line in every:
        yield BE_THE_LOG, f"deliver.{line}"
        yield BE_THE_LOG, f"deliver.timer.{line}"
        yield BE_THE_LOG, f"timer.due.{line}.x"
        if line not in lines:
            yield BE_THE_LOG, f"timer.set.{line}.x"
            yield BE_THE_LOG, f"dead.{line}"
            yield BE_THE_LOG, f"_INBOX_{line}.x"
    if service != "agent-runner":
        yield BE_THE_LOG, f"live.acme.{run}"
    asks = {subject for subject in ASKS if subject not in permissions(service)["publish"]}
    for subject in sorted(asks):
        yield ASK, subject
    for stream, hearers in ((RUNS, HEARS), (TIMERS, HEARS_TIMERS), (DEAD, HEARS_DEAD), (TENANTS, HEARS_TENANTS)):
        for consumer in (*hearers, "subscriber-crm"):
            yield TAKE, f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
            if consumer not in lines:
                yield TAKE, f"$JS.ACK.{stream}.{consumer}.1.1.1.1.0"
    for stream in (DEAD, TIMERS):
        yield TAKE, f"$JS.API.DIRECT.GET.{stream}"
    for stream in STREAMS:
        for verb in ("UPDATE", "DELETE", "PURGE", "INFO", "SNAPSHOT", "MSG.GET", "MSG.DELETE", "LEADER.STEPDOWN"):
            yield MANAGE, f"$JS.API.STREAM.{verb}.{stream}"
        for verb in ("LIST", "NAMES", "CREATE"):
            yield MANAGE, f"$JS.API.CONSUMER.{verb}.{stream}"
        for verb in ("CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "INFO"):
            yield MANAGE, f"$JS.API.CONSUMER.{verb}.{stream}.{service}"
    for subject in ("STREAM.CREATE.MINE", "STREAM.LIST", "STREAM.NAMES", "INFO", "ACCOUNT.PURGE.LOG"):
        yield MANAGE, f"$JS.API.{subject}"
    yield MANAGE, "$SYS.REQ.SERVER.PING"


def others_ears(service: str) -> Iterable[str]:
    """Where it tries to listen."""
    may = permissions(service)["subscribe"]
    lines = {service, *BESIDE.get(service, ())}
    yield from ("run.>", "run.acme.>", "tenant.>", "keys.>", "timer.>", "dead.>", ">", "*.>", "$JS.>", "$JS.ACK.>")
    yield from ("$SYS.>", "_INBOX.>", "ask.>", "deliver.>", "_R_.>", "log.>", "$JS.API.>")
    yield from (subject for subject in (*ASKS, "log.run.>", "log.run.acme.>", "log.tenant.>", "live.>")
                if not any(_covers(allowed, subject) for allowed in may))  # fmt: skip
    for line in {*SERVICES, *(line for names in BESIDE.values() for line in names)} - lines:
        yield from (f"deliver.{line}", f"deliver.timer.{line}", f"deliver.dead.{line}", f"deliver.tenant.{line}")
        yield f"_INBOX_{line}.>"


def _covers(allowed: str, subject: str) -> bool:
    return allowed == subject or (allowed.endswith(".>") and subject.startswith(allowed[:-1]))


async def _broker(system: RunningSystem, run: str) -> list[Attempt]:
    found: list[Attempt] = []
    async with AsyncExitStack() as stack:
        root = await stack.enter_async_context(records.set_up_broker(system.data).connection())
        for service in SERVICES:
            told = system.environment(service)
            bus = await Bus.connect(
                ServiceSettings.model_validate(
                    {"nats_url": told["TURNGATE_NATS_URL"], "nats_nkey": told["TURNGATE_NATS_NKEY"]}
                ),
                service,
            )
            stack.push_async_callback(bus.close, 0)
            found += await _publishing(bus, run)
            found += await _listening(bus)
            found += await _answered_elsewhere(bus, root, run)
    return found


async def _publishing(bus: Bus, run: str) -> list[Attempt]:
    requests = Requests(bus.nc)
    bus.on_error.append(requests.on_error)

    async def one(what: str, subject: str) -> Attempt:
        try:
            reply = await requests.ask(subject, b'{"seq":1}', timeout=SOON)
        except Forbidden as error:
            return Attempt(bus.service, what, f"publish {subject}", str(error))
        except nats.errors.Error as error:  # it left: nobody was there, or nobody answered
            return Attempt(bus.service, what, f"publish {subject}: {error!r}", None)
        return Attempt(bus.service, what, f"publish {subject}: {reply.data[:80]!r}", None)

    return await asyncio.gather(*(one(what, subject) for what, subject in others_subjects(bus.service, run)))


async def _listening(bus: Bus) -> list[Attempt]:
    tried = [(subject, queue) for subject in others_ears(bus.service) for queue in ("", "thief")]
    for subject, queue in tried:
        await bus.nc.subscribe(subject, queue=queue)
    await settle(bus.nc)
    refused = {refused.subject: str(refused) for refused in bus.refused if refused.listening}
    return [Attempt(bus.service, LISTEN, f"subscribe {subject}", refused.get(subject.lower())) for subject, _ in tried]


async def _answered_elsewhere(bus: Bus, root: Client, run: str) -> list[Attempt]:
    """Whoever is answered names the subject of the answer: here another's, or a command to the streams."""
    asked: list[tuple[str, bytes, dict[str, str] | None]] = [("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', None)]
    for subject in permissions(bus.service)["publish"]:
        if subject.startswith("run."):  # never taken: the broker answers with an error
            behind = {"Nats-Expected-Last-Subject-Sequence": "999999999"}
            asked.append((subject.replace("*.*", f"acme.{run}"), b"{}", behind))
        elif subject.startswith("ask."):
            asked.append((subject, b"{}", None))
    targets = [
        *(f"run.acme.{run}.{kind}" for kind, fact in CATALOGUE.items() if fact.author != AUTHORS[bus.service]),
        *(f"tenant.acme.{kind}" for kind, fact in TENANT_FACTS.items() if fact.author != AUTHORS[bus.service]),
        *(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("UPDATE", "PURGE", "DELETE") for stream in STREAMS),
        *(f"$JS.ACK.RUNS.{other}.1.1.1.1.0" for other in HEARS if other != bus.service),
        *(f"timer.set.{other}.x" for other in HEARS_TIMERS if other != bus.service),
        *(f"dead.{other}" for other in SERVICES if other != bus.service),
    ]
    heard: set[str] = set()

    async def hear(message: Any) -> None:
        heard.add(message.subject)

    ears = [await root.subscribe(target, cb=hear) for target in targets]
    await settle(root)
    tried = list(product(asked, targets))
    for (subject, body, headers), target in tried:
        await bus.nc.publish(subject, body, reply=target, headers=headers)
    await settle(bus.nc)
    # The broker has answered all of them once it answers one that comes behind them.
    await Requests(bus.nc).ask("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', timeout=SOON)
    await settle(root)
    for ear in ears:
        await ear.unsubscribe()
    return [
        Attempt(
            bus.service,
            REPLY,
            f"publish {subject} with the answer to {target}",
            None if target in heard else "The answer reached nobody there.",
        )
        for (subject, _, _), target in tried
    ]


# The database

# What a service may do with its tables is granted by its migrations; these rows and rules are not its to touch.
KEPT = {
    "turngate_tools": (
        "update shop.refunds set amount_minor = 1", "delete from shop.refunds", "delete from shop.receipts",
        "update shop.receipts set results = '[]'", "update shop.tenants set floor_minor = 0",
        "insert into shop.payments values ('acme', 'P', 'ORD-1', 1, 'x', 'captured', now())",
        "update shop.payments set amount_minor = 1", "update shop.items set unit_minor = 1",
        "update shop.customers set email = 'x'", "delete from shop.day_counters", "delete from shop.orders",
    ),
    "turngate_runner": ("delete from ledger.calls", "truncate ledger.calls"),
    "turngate_gateway": ("delete from desk.tickets", "truncate desk.tickets"),
}  # fmt: skip
TO_BE = (
    f"set role {OWNER}", "set role postgres",
    f"set session authorization {OWNER}", "set session authorization postgres",
    "alter role current_user bypassrls", "alter role current_user superuser", "create role mine login",
    f"grant {OWNER} to current_user", "create schema mine", "create table public.mine (n int)",
    "create temporary table mine (n int)", f"alter database {DATABASE} reset all",
    f"alter database {DATABASE} owner to current_user", "create extension dblink", "drop extension vector",
    "select * from pg_authid", "select pg_read_file('PG_VERSION')", "select pg_ls_dir('.')",
    "copy (select 1) to program 'true'", "copy (select 1) to '/tmp/turngate-was-here'", "select pg_reload_conf()",
    "create function public.mine() returns int language sql as 'select 1'",
    "create publication mine for all tables", "create event trigger mine on ddl_command_start execute function now()",
    "set session_replication_role = replica",
    "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'postgres'",
)  # fmt: skip


OUTSIDE_OF_TRANSACTIONS = (f"create database {DATABASE}_mine", "alter system set log_statement = 'all'")


def _tables(system: RunningSystem) -> list[Attempt]:
    with psycopg.connect(system.state.postgres_url) as connection:
        known = connection.execute(
            "select table_schema, table_name from information_schema.tables"
            " where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')"
            " order by 1, 2"
        ).fetchall()
        bound = connection.execute(
            "select table_schema, table_name from information_schema.columns where column_name = 'tenant'"
        ).fetchall()
    found: list[Attempt] = []
    for keep in KEEPS:
        dsn = system.environment(keep.service)["TURNGATE_POSTGRES_DSN"]
        for statement in OUTSIDE_OF_TRANSACTIONS:
            found.append(Attempt(keep.service, ROLE, statement, _refused_at_once(dsn, statement)))
        with psycopg.connect(dsn) as connection:
            for what, statement in _statements(keep.role, keep.schemas, known):
                found.append(Attempt(keep.service, what, statement, _refused(connection, statement)))
            found += [
                Attempt(keep.service, TENANT, operation, refused)
                for schema, table in sorted(bound)
                if schema in keep.schemas
                for operation, refused in _another_tenant(connection, schema, table)
            ]
            found += [
                Attempt(keep.service, ROLE, f"log in as {role}", _logs_in(dsn, role))
                for role in ("postgres", OWNER, *(other.role for other in KEEPS if other is not keep))
            ]
    return found


def _statements(role: str, schemas: tuple[str, ...], known: list[Any]) -> Iterable[tuple[str, str]]:
    for schema, table in known:
        name = f"{schema}.{table}"
        if schema not in schemas:
            yield OTHERS, f"select * from {name}"
            yield OTHERS, f"insert into {name} default values"
            yield OTHERS, f"delete from {name}"
            yield OTHERS, f"lock table {name}"
        what = OWN if schema in schemas else OTHERS
        yield what, f"drop table {name}"
        yield what, f"alter table {name} owner to {role}"
        yield what, f"alter table {name} add column mine int"
        yield what, f"alter table {name} disable row level security"
        yield what, f"alter table {name} no force row level security"
        yield what, f"create policy mine on {name} using (true)"
        yield what, f"create index on {name} ((1))"
        yield what, f"create trigger mine before insert on {name} execute function suppress_redundant_updates_trigger()"
        yield what, f"create rule mine as on insert to {name} do instead nothing"
        yield what, f"grant all on {name} to public"
    for schema in sorted({schema for schema, _ in known}):
        what = OWN if schema in schemas else OTHERS
        yield what, f"create table {schema}.mine (n int)"
        yield what, f"drop schema {schema} cascade"
    yield from ((OWN, statement) for statement in KEPT[role])
    yield from ((ROLE, statement) for statement in TO_BE)


def _refused(connection: "psycopg.Connection[Any]", statement: str) -> str | None:
    """The database's words; None where it let it pass, or try. Nothing stays either way."""
    told: list[str] = []
    connection.add_notice_handler(lambda notice: told.append(str(notice.message_primary)))
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("select set_config('turngate.tenant', 'acme', true)")
            connection.execute("set local lock_timeout = '10s'")
            connection.execute(statement.encode())
    except psycopg.Error as error:
        return _words(error)
    return next((words for words in told if words.startswith("no privileges were granted")), None)


def _refused_at_once(dsn: str, statement: str) -> str | None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            connection.execute(statement.encode())
        except psycopg.Error as error:
            return _words(error)
    return None


def _words(error: psycopg.Error) -> str | None:
    """How it was refused. What stumbled over something else had been let try."""
    return str(error).splitlines()[0] if isinstance(error, psycopg.errors.InsufficientPrivilege) else None


def _another_tenant(connection: "psycopg.Connection[Any]", schema: str, table: str) -> Iterable[tuple[str, str | None]]:
    name = sql.SQL(".").join([sql.Identifier(schema), sql.Identifier(table)])
    shown = f"{schema}.{table}"
    for tenant in ("acme", None):
        with connection.transaction(force_rollback=True):
            if tenant:
                connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])
            query = sql.SQL("select count(*) from {} where tenant is distinct from %s").format(name)
            (seen,) = connection.execute(query, [tenant]).fetchone() or (0,)
        whose = f"as {tenant}" if tenant else "as no tenant"
        yield f"read {shown} {whose}", None if seen else "There are no such rows."
    refused = _refused(connection, f"set local row_security = off; select count(*) from {shown}")
    yield f"read {shown} with row_security = off", refused
    refused = _refused(connection, f"insert into {shown} (tenant) values ('globex')")
    yield f"write {shown} for globex, as acme", refused


def _logs_in(dsn: str, role: str) -> str | None:
    parts = urlsplit(dsn)
    try:
        psycopg.connect(
            host=parts.hostname,
            port=parts.port,
            dbname=DATABASE,
            user=role,
            password=parts.password,
            connect_timeout=10,
        ).close()
    except psycopg.OperationalError as error:
        return "authentication failed" if "authentication failed" in str(error) else None
    return None


# The table


def table(attempts: list[Attempt]) -> str:
    """Markdown: each kind of attempt with each service's credentials, and what came of it."""
    lines = ["| with the credentials of | " + " | ".join(SERVICES) + " |", "|---|" + "---|" * len(SERVICES)]
    for what in (*BROKER, *TABLES):
        cells = [_cell([attempt for attempt in attempts if (attempt.who, attempt.what) == (who, what)])
                 for who in SERVICES]  # fmt: skip
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(attempts: list[Attempt]) -> str:
    through = [attempt for attempt in attempts if attempt.refused is None]
    if not attempts:
        return "has no credential"
    return f"**{len(through)} went through**" if through else "all refused"


def written(page: str, attempts: list[Attempt]) -> str:
    """The page with the table of these attempts in its place."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table(attempts) + END + rest.split(END)[1]


def a_held_run(system: RunningSystem) -> str:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    run.holds()
    return run.run


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with temporary_system() as own:
        tried = attack(own, a_held_run(own))
    PAGE.write_text(written(PAGE.read_text(), tried))
    went = [attempt for attempt in tried if attempt.refused is None]
    print(json.dumps({"tried": len(tried), "went through": [f"{one.who}: {one.operation}" for one in went]}, indent=2))
    sys.exit(1 if went else 0)
