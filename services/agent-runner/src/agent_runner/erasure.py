"""Erases what the model answered in a customer's runs: what it cost stays in the ledger."""

import psycopg
from pydantic import BaseModel, ConfigDict


class Runs(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tenant: str
    runs: list[str]


def erase(dsn: str, asked: Runs) -> int:
    """How many calls were emptied. The runs have ended: nobody asks for those answers again, and one that is still on
    its way is not kept when it comes."""
    with psycopg.connect(dsn) as connection:
        connection.execute("select set_config('turngate.tenant', %s, true)", [asked.tenant])
        return connection.execute(
            "update ledger.calls set answer = null, erased = true where run = any(%s) and not erased", [asked.runs]
        ).rowcount
