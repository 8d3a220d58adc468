"""Erases what the model answered in a customer's runs: what it cost stays in the ledger."""

import psycopg
from pydantic import BaseModel, ConfigDict


class Runs(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tenant: str
    runs: list[str]


def erase(dsn: str, asked: Runs) -> int:
    """How many calls were emptied. The runs have ended: nobody asks for those answers again, and one that is still on
    its way, or not even asked for yet, is not kept when it comes."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        # In a transaction of its own: an answer that comes from here on sees it, one from before is emptied below.
        with connection.transaction():
            _of(connection, asked.tenant)
            connection.cursor().executemany(
                "insert into ledger.erased_runs (tenant, run) values (%s, %s) on conflict do nothing",
                [(asked.tenant, run) for run in asked.runs],
            )
        with connection.transaction():
            _of(connection, asked.tenant)
            return connection.execute(
                "update ledger.calls set answer = null, erased = true"
                " where tenant = %s and run = any(%s) and not erased",
                [asked.tenant, asked.runs],
            ).rowcount


def _of(connection: psycopg.Connection, tenant: str) -> None:
    connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])
