"""Erases what the model answered in a customer's runs: what it cost stays in the ledger."""

import psycopg
from pydantic import BaseModel, ConfigDict


class Runs(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tenant: str
    runs: list[str]


def erase(dsn: str, asked: Runs) -> int:
    """How many answers were taken out. The runs have ended: nobody asks for those answers again."""
    with psycopg.connect(dsn) as connection:
        connection.execute("select set_config('turngate.tenant', %s, true)", [asked.tenant])
        return connection.execute(
            "update ledger.calls set answer = null where run = any(%s) and answer is not null", [asked.runs]
        ).rowcount
