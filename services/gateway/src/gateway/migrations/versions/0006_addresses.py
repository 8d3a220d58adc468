"""Tickets and runs have their customer's e-mail address in the form that addresses are compared in, too."""

from typing import Any

from alembic import op
from contracts.addresses import comparable
from sqlalchemy import text

revision = "0006"
down_revision = "0005"

TABLES = ("tickets", "runs")


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"alter table desk.{table} add column customer_address text")
        # Their owner sees the rows of all tenants, to the end of this.
        op.execute(f"alter table desk.{table} no force row level security")
        _fill(op.get_bind(), table)
        op.execute(f"alter table desk.{table} force row level security")
    op.execute("drop index desk.runs_tenant_customer_email_idx")
    op.execute("create index on desk.runs (tenant, customer_address)")


def _fill(connection: Any, table: str) -> None:
    """In one pass: an update for each address would read the whole table as often."""
    emails = [email for (email,) in connection.execute(text(f"select distinct customer_email from desk.{table}"))]  # noqa: S608 - of ours
    connection.execute(
        text(
            f"update desk.{table} set customer_address = known.address"  # noqa: S608 - of ours
            " from unnest(cast(:emails as text[]), cast(:addresses as text[])) as known (email, address)"
            " where customer_email = known.email"
        ),
        {"emails": emails, "addresses": [comparable(email) for email in emails]},
    )
