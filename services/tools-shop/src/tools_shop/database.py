"""The service's connections to its database."""

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from tools_shop.turns import Pool


class AboveRowSecurity(Exception):
    """The database role that was given sees every tenant's rows."""


def pool(dsn: str, size: int) -> Pool:
    """Up to `size` connections, opened when entered.

    They are in autocommit mode: a read is one statement, and what writes opens its transaction itself.
    """
    return AsyncConnectionPool(
        dsn,
        connection_class=AsyncConnection,
        kwargs={"row_factory": dict_row, "autocommit": True},
        min_size=min(2, size),
        max_size=size,
        timeout=10,
        open=False,
    )


async def must_be_bound_by_row_security(pool: Pool) -> None:
    """Raises AboveRowSecurity unless the role is one that row-level security binds."""
    async with pool.connection() as connection:
        cursor = await connection.execute(
            "select rolsuper or rolbypassrls as above from pg_roles where rolname = current_user"
        )
        row = await cursor.fetchone()
    if row is None or row["above"]:
        raise AboveRowSecurity(
            "TURNGATE_POSTGRES_DSN names a role that is above row-level security, so tenants would not be kept apart. "
            "Give it the role turngate_tools."
        )
