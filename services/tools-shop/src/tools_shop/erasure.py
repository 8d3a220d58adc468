"""Erases a customer from the shop: the orders and the money stay, whose they were and what was written does not."""

import json

import psycopg
from contracts.personal import ERASED
from psycopg.rows import dict_row
from pydantic import BaseModel, ConfigDict


class Customer(BaseModel):
    """`runs` are the customer's, where they are to be erased."""

    model_config = ConfigDict(extra="forbid")

    tenant: str
    customer: str
    runs: list[str] = []


def addresses(dsn: str, asked: Customer) -> list[str] | None:
    """The e-mail addresses that the shop knows the customer by; None if it knows no such customer."""
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        _bind(connection, asked.tenant)
        rows = connection.execute("select email from shop.customers where id = %s", [asked.customer]).fetchall()
    return [row["email"] for row in rows if row["email"] != _nobody(asked.customer)] if rows else None


def erase(dsn: str, asked: Customer) -> dict[str, int]:
    """How many rows of each table were emptied. As the tables' owner: the service's own role may not change them."""
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        _bind(connection, asked.tenant)
        return {
            "receipts": _receipts(connection, asked.runs),
            "refunds": connection.execute(
                "update shop.refunds set reason = %s where (customer_id = %s or run = any(%s)) and reason <> %s",
                [ERASED, asked.customer, asked.runs, ERASED],
            ).rowcount,
            "escalations": connection.execute(
                "update shop.escalations set notes = array[%s] where customer_id = %s or run = any(%s)",
                [ERASED, asked.customer, asked.runs],
            ).rowcount,
            "customers": connection.execute(
                "update shop.customers set name = %s, email = %s where id = %s",
                [ERASED, _nobody(asked.customer), asked.customer],
            ).rowcount,
        }


def _receipts(connection: psycopg.Connection[dict[str, object]], runs: list[str]) -> int:
    """A receipt goes on saying what was done and by whose leave; the words of it go."""
    rows = connection.execute(
        "select run, turn, results from shop.receipts where run = any(%s) for update", [runs]
    ).fetchall()
    for row in rows:
        assert isinstance(row["results"], list)  # noqa: S101 - as the service writes them
        results = [{**result, "content": ERASED, "data": {}} for result in row["results"]]
        connection.execute(
            "update shop.receipts set results = %s where run = %s and turn = %s",
            [json.dumps(results), row["run"], row["turn"]],
        )
    return len(rows)


def _bind(connection: psycopg.Connection[dict[str, object]], tenant: str) -> None:
    connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])


def _nobody(customer: str) -> str:
    """An address that reaches nobody, and is nobody else's."""
    return f"{customer.lower()}@erased.invalid"
