"""Which service has which database role and schemas, and the set-up of both."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

OWNER = "turngate"
DATABASE = "turngate"


@dataclass(frozen=True)
class Keep:
    """What a service keeps: its role, its schemas (Alembic's version table is in the first), and its migrations."""

    service: str
    role: str
    schemas: tuple[str, ...]
    migrations: str


KEEPS = (
    Keep("agent-runner", "turngate_runner", ("ledger",), "agent_runner.migrations"),
    Keep("tools-shop", "turngate_tools", ("shop", "help"), "tools_shop.migrations"),
    Keep("gateway", "turngate_gateway", ("desk",), "gateway.migrations"),
)


def create_roles(superuser: "psycopg.Connection[Any]", password: Callable[[str], str]) -> None:
    """The owner and one role a service, with their passwords of now. None of them is above row-level security."""
    for role in (OWNER, *(keep.role for keep in KEEPS)):
        known = superuser.execute("select 1 from pg_roles where rolname = %s", [role]).fetchone()
        superuser.execute(
            sql.SQL(
                "{} role {} login password {} nosuperuser nocreatedb nocreaterole noreplication nobypassrls"
            ).format(sql.SQL("alter" if known else "create"), sql.Identifier(role), sql.Literal(password(role)))
        )


def create_database(superuser: "psycopg.Connection[Any]", name: str = DATABASE, template: str | None = None) -> None:
    """The owner's database, which only our roles may enter. Does nothing where it exists. Needs autocommit."""
    if superuser.execute("select 1 from pg_database where datname = %s", [name]).fetchone() is None:
        superuser.execute(
            sql.SQL("create database {} owner {} template {}").format(
                sql.Identifier(name), sql.Identifier(OWNER), sql.Identifier(template or "template1")
            )
        )
    superuser.execute(sql.SQL("revoke all on database {} from public").format(sql.Identifier(name)))
    for keep in KEEPS:
        superuser.execute(
            sql.SQL("grant connect on database {} to {}").format(sql.Identifier(name), sql.Identifier(keep.role))
        )


def create_schemas(superuser: "psycopg.Connection[Any]") -> None:
    """Run in the database itself: the vector type (which only a superuser may install), and the owner's schemas."""
    superuser.execute("create extension if not exists vector")
    for keep in KEEPS:
        for schema in keep.schemas:
            superuser.execute(
                sql.SQL("create schema if not exists {} authorization {}").format(
                    sql.Identifier(schema), sql.Identifier(OWNER)
                )
            )
