"""What PostgreSQL still holds of rows that were changed: dead rows, statistics, its journal."""

import psycopg
from psycopg import sql

# What an erasure changes. Each is locked while it is written anew.
TABLES = (
    ("desk", "tickets"), ("desk", "runs"), ("shop", "customers"), ("shop", "refunds"), ("shop", "escalations"),
    ("shop", "receipts"), ("ledger", "calls"),
)  # fmt: skip


def rewrite(superuser_dsn: str) -> None:
    """Writes these tables and their indexes anew, without their dead rows; what the planner has noted of their values,
    too; and lets go of the journal so far. Safe to repeat.

    Not reached: backups, replicas' own files, a journal that is archived, and segments of it that a server which
    recycles them (`wal_recycle`) has not yet overwritten.
    """
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        for schema, table in TABLES:
            connection.execute(sql.SQL("vacuum (full, analyze) {}").format(sql.Identifier(schema, table)))
        connection.execute("vacuum (full) pg_catalog.pg_statistic")
        connection.execute("select pg_switch_wal()")
        connection.execute("checkpoint")
