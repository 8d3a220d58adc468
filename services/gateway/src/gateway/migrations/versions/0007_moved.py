"""What each run has moved, beside its view: sums over all runs of a customer read no views."""

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.execute("alter table desk.runs add column moved json generated always as (state -> 'moved') stored")
