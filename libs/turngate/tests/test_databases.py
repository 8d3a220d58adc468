"""What the database itself says of roles, tables and rows: read from its catalogue, whatever the migrations meant."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from turngate.databases import KEEPS, OWNER
from turngate.testing import Database

ROLES = tuple(keep.role for keep in KEEPS)
OURS = tuple(schema for keep in KEEPS for schema in keep.schemas)
# Tables that no tenant's row is in: where the views have got to, digests of ended sign-ins, which migrations have run.
NOBODYS = {("desk", "projection"), ("desk", "signed_out")}


@pytest.fixture
def catalogue(postgres: Database) -> "Iterator[psycopg.Connection[Any]]":
    with psycopg.connect(postgres.superuser) as connection:
        yield connection


def tables(catalogue: "psycopg.Connection[Any]") -> list[tuple[str, str]]:
    return catalogue.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind in ('r', 'p') and n.nspname = any(%s) and c.relname not like 'alembic%%' order by 1, 2",
        [list(OURS)],
    ).fetchall()


def test_every_table_is_bound_to_a_tenant_by_forced_row_level_security(catalogue: "psycopg.Connection[Any]") -> None:
    found = tables(catalogue)
    assert len(found) > 10
    for schema, table in found:
        if (schema, table) in NOBODYS:
            continue
        enabled, forced, bound = catalogue.execute(
            "select c.relrowsecurity, c.relforcerowsecurity, exists (select from pg_attribute a"
            " where a.attrelid = c.oid and a.attname = 'tenant' and a.attnotnull)"
            " from pg_class c where c.oid = format('%%I.%%I', %s::text, %s::text)::regclass",
            [schema, table],
        ).fetchone() or (None, None, None)
        assert (enabled, forced, bound) == (True, True, True), f"{schema}.{table}"


def test_every_policy_compares_the_row_with_the_tenant_of_the_transaction(catalogue: "psycopg.Connection[Any]") -> None:
    policies = catalogue.execute(
        "select schemaname, tablename, permissive, cmd, qual, with_check from pg_policies where schemaname = any(%s)",
        [list(OURS)],
    ).fetchall()
    assert {(schema, table) for schema, table, *_ in policies} == set(tables(catalogue)) - NOBODYS
    own = "(tenant = current_setting('turngate.tenant'::text, true))"
    for schema, table, _, command, using, checked in policies:
        assert command == "ALL", f"{schema}.{table}"
        assert using == own, f"{schema}.{table}"
        assert checked in (None, own), f"{schema}.{table}"


def test_no_tables_are_anywhere_else(catalogue: "psycopg.Connection[Any]") -> None:
    elsewhere = catalogue.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema')"
        " and n.nspname not like 'pg_t%%' and not n.nspname = any(%s)",
        [list(OURS)],
    ).fetchall()
    assert elsewhere == []
    views = catalogue.execute(
        "select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind in ('v', 'm') and n.nspname = any(%s)", [list(OURS)],
    ).fetchall()  # fmt: skip
    assert views == [], "a view is read with its owner's rights"


@pytest.mark.parametrize("role", [*ROLES, OWNER])
def test_no_role_is_above_the_rules(catalogue: "psycopg.Connection[Any]", role: str) -> None:
    above = catalogue.execute(
        "select rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication from pg_roles where rolname = %s",
        [role],
    ).fetchone()
    assert above == (False,) * 5
    member_of = catalogue.execute(
        "select r.rolname from pg_auth_members m join pg_roles r on r.oid = m.roleid"
        " where m.member = %s::regrole", [role],
    ).fetchall()  # fmt: skip
    assert member_of == []


@pytest.mark.parametrize("role", ROLES)
def test_no_service_owns_anything(catalogue: "psycopg.Connection[Any]", role: str) -> None:
    owned = catalogue.execute(
        "select 'relation', relname::text from pg_class where relowner = %(role)s::regrole"
        " union all select 'schema', nspname::text from pg_namespace where nspowner = %(role)s::regrole"
        " union all select 'function', proname::text from pg_proc where proowner = %(role)s::regrole"
        " union all select 'type', typname::text from pg_type where typowner = %(role)s::regrole"
        " union all select 'database', datname::text from pg_database where datdba = %(role)s::regrole",
        {"role": role},
    ).fetchall()
    assert owned == []


@pytest.mark.parametrize("keep", KEEPS, ids=ROLES)
def test_a_service_enters_its_own_schemas_only_and_makes_nothing_there(
    catalogue: "psycopg.Connection[Any]", keep: Any
) -> None:
    for schema in (*OURS, "public"):
        uses, creates = catalogue.execute(
            "select has_schema_privilege(%s, %s, 'usage'), has_schema_privilege(%s, %s, 'create')",
            [keep.role, schema, keep.role, schema],
        ).fetchone() or (None, None)
        assert uses == (schema in keep.schemas or schema == "public"), schema
        assert creates is False, schema
    for what in ("create", "temporary"):
        may = catalogue.execute("select has_database_privilege(%s, current_database(), %s)", [keep.role, what])
        assert may.fetchone() == (False,), what


@pytest.mark.parametrize("keep", KEEPS, ids=ROLES)
def test_a_service_has_rights_on_its_own_tables_only_and_can_hand_none_on(
    catalogue: "psycopg.Connection[Any]", keep: Any
) -> None:
    for schema, table in tables(catalogue):
        name = f"{schema}.{table}"
        for right in ("select", "insert", "update", "delete", "truncate", "references", "trigger"):
            (has,) = (
                catalogue.execute("select has_table_privilege(%s, %s, %s)", [keep.role, name, right]).fetchone() or ()
            )
            assert not has or schema in keep.schemas, f"{right} on {name}"
            (hands_on,) = (
                catalogue.execute(
                    "select has_table_privilege(%s, %s, %s)", [keep.role, name, f"{right} with grant option"]
                ).fetchone()
                or ()
            )
            assert not hands_on
        for right in ("references", "trigger"):
            assert catalogue.execute(
                "select has_table_privilege(%s, %s, %s)", [keep.role, name, right]
            ).fetchone() == (False,)  # fmt: skip


def test_no_function_of_ours_runs_with_its_owners_rights(catalogue: "psycopg.Connection[Any]") -> None:
    found = catalogue.execute(
        "select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace"
        " where p.prosecdef and n.nspname = any(%s)", [[*OURS, "public"]],
    ).fetchall()  # fmt: skip
    assert found == []


@pytest.mark.parametrize("keep", KEEPS, ids=ROLES)
def test_a_function_is_run_by_its_own_service_only(catalogue: "psycopg.Connection[Any]", keep: Any) -> None:
    found = catalogue.execute(
        "select n.nspname, p.proname, has_function_privilege(%s, p.oid, 'execute') from pg_proc p"
        " join pg_namespace n on n.oid = p.pronamespace where n.nspname = any(%s)", [keep.role, list(OURS)],
    ).fetchall()  # fmt: skip
    assert [(schema, name) for schema, name, may in found if may and schema not in keep.schemas] == []
