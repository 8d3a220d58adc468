"""The sign-ins that people have ended before their tokens expire, where every process of the gateway reads them."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from gateway.database import Connection

_CHANNEL = "signed_out"
_LOOKS_AGAIN = 30.0  # seconds: finds a connection that has died without a word


class SignedOut:
    """Digests of sign-ins, each with when its token expires; after that the row is of no use, and goes."""

    def __init__(self, pool: AsyncConnectionPool[Connection], dsn: str) -> None:
        self._pool = pool
        self._dsn = dsn

    async def all(self) -> dict[str, datetime]:
        async with self._pool.connection() as connection:
            cursor = await connection.execute(
                "select sign_in, expires_at from desk.signed_out where expires_at > %s", [datetime.now(UTC)]
            )
            return {row["sign_in"]: row["expires_at"] for row in await cursor.fetchall()}

    async def add(self, sign_in: str, expires_at: datetime) -> None:
        async with self._pool.connection() as connection, connection.transaction():
            await connection.execute("delete from desk.signed_out where expires_at <= %s", [datetime.now(UTC)])
            await connection.execute(
                "insert into desk.signed_out (sign_in, expires_at) values (%s, %s) on conflict do nothing",
                [sign_in, expires_at],
            )
            await connection.execute("select pg_notify(%s, '')", [_CHANNEL])

    async def follow(self) -> AsyncIterator[dict[str, datetime]]:
        """All of them, now and whenever there may be more. Raises psycopg's errors where they cannot be had."""
        async with await AsyncConnection.connect(self._dsn, autocommit=True) as connection:
            await connection.execute(f"listen {_CHANNEL}")
            while True:
                yield await self.all()
                async for _ in connection.notifies(timeout=_LOOKS_AGAIN, stop_after=1):
                    pass
                await connection.execute("select")
