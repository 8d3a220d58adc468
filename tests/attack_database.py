"""What a service's database role is good for, beyond what the service does with its tables."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql
from turngate.databases import DATABASE, KEEPS, OWNER
from turngate.running import RunningSystem

from .attempts import OTHERS, OWN, ROLE, TENANT, Attempt

THEIRS = "planted"  # the tenant whose rows the others should not see

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


# What a planted row says where it has to say something.
SOMETHING = {
    "timestamptz": "2020-01-01T00:00:00Z", "date": "2020-01-01", "json": "{}", "jsonb": "{}", "bool": "false",
    "uuid": "00000000-0000-4000-8000-000000000000", "_text": "{}", "bytea": "x", "vector": json.dumps([0.0] * 384),
}  # fmt: skip
ANYTHING_GOES_BUT = {
    "shop.orders": {"status": "placed"},
    "shop.payments": {"status": "captured"},
    "shop.subscriptions": {"status": "active"},
}

OUTSIDE_OF_TRANSACTIONS = (f"create database {DATABASE}_mine", "alter system set log_statement = 'all'")


def in_the_database(system: RunningSystem) -> list[Attempt]:
    with psycopg.connect(system.state.postgres_url) as connection:
        known = connection.execute(
            "select table_schema, table_name from information_schema.tables"
            " where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')"
            " order by 1, 2"
        ).fetchall()
        bound = connection.execute(
            "select table_schema, table_name from information_schema.columns where column_name = 'tenant'"
        ).fetchall()
    with planted(system.state.postgres_url, bound):
        return _attempts(system, known, bound)


@contextmanager
def planted(superuser: str, tables: list[Any]) -> Iterator[None]:
    """While each of these tables has a row of a tenant that nobody is."""
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("set session_replication_role = replica")  # what a row belongs to need not be there
        try:
            for schema, table in tables:
                _plant(connection, schema, table)
            yield
        finally:
            for schema, table in tables:
                whole = sql.Identifier(schema, table)
                connection.execute(sql.SQL("delete from {} where tenant = %s").format(whole), [THEIRS])


def _plant(connection: "psycopg.Connection[Any]", schema: str, table: str) -> None:
    columns = connection.execute(
        "select column_name, udt_name from information_schema.columns where table_schema = %s and table_name = %s"
        " and is_nullable = 'NO' and column_default is null and is_identity = 'NO' and column_name <> 'tenant'",
        [schema, table],
    ).fetchall()
    values = {"tenant": THEIRS} | {name: SOMETHING.get(kind, "1") for name, kind in columns}
    values |= ANYTHING_GOES_BUT.get(f"{schema}.{table}", {})
    connection.execute(
        sql.SQL("insert into {} ({}) values ({})").format(
            sql.Identifier(schema, table),
            sql.SQL(", ").join(map(sql.Identifier, values)),
            sql.SQL(", ").join([sql.Placeholder()] * len(values)),
        ),
        list(values.values()),
    )


def _attempts(system: RunningSystem, known: list[Any], bound: list[Any]) -> list[Attempt]:
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
        yield f"read {shown} {whose}", None if seen else "There is one, and it is not to be seen."
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
