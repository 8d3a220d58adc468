"""Connections to the desk's own tables. Whoever reads or writes names the tenant."""

from collections.abc import Awaitable, Callable
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

Connection = AsyncConnection[dict[str, Any]]


async def work_for(connection: Connection, tenant: str) -> None:
    """From here to the end of the transaction, this tenant's rows are the only ones there are."""
    await connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])


async def one(cursor: Any) -> dict[str, Any]:
    row: dict[str, Any] | None = await cursor.fetchone()
    if row is None:
        raise LookupError("The row that was just written, or that migrations bring, is not there.")
    return row


def open_pool(
    dsn: str, size: int = 10, configure: Callable[[Connection], Awaitable[None]] | None = None
) -> AsyncConnectionPool[Connection]:
    """Connections of the gateway's role. Not open yet. One that the database has dropped is never handed out."""
    return AsyncConnectionPool(
        dsn,
        min_size=1,
        max_size=size,
        open=False,
        check=AsyncConnectionPool.check_connection,
        kwargs={"row_factory": dict_row},
        configure=configure,
    )
