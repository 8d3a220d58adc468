"""What is asked of all of a tenant's tickets, however many they are: how many of a status, and the highest number."""

from alembic import op

revision = "0002"
down_revision = "0001"

INDEXES = r"""
create index tickets_by_status on desk.tickets (tenant, status);
create index tickets_by_number on desk.tickets
    (tenant, (substring(reference from '^TCK-(\d{1,9})$')::integer) desc nulls last);
"""


def upgrade() -> None:
    op.execute(INDEXES)
