"""Changes of tickets that no fact tells of: one was opened, in whichever process of the gateway, or blanked."""

import asyncio
from collections import Counter

import structlog
from psycopg import AsyncConnection

logger = structlog.get_logger()

CHANNEL = "ticket_changes"
# To be run in the transaction that changes them: whoever listens is told once it is committed.
NOTIFY = f"select pg_notify('{CHANNEL}', current_setting('turngate.tenant'))"
_LOOKS_AGAIN = 30.0  # seconds: finds a connection that has died without a word


class TicketChanges:
    """`revision` of a tenant is another number whenever its tickets may have changed. It means nothing elsewhere."""

    def __init__(self, dsn: str, start: int = 0) -> None:
        self._dsn = dsn
        self._all = start
        self._of: Counter[str] = Counter()

    def revision(self, tenant: str) -> int:
        return self._all + self._of[tenant]

    async def run(self) -> None:
        """Hears of changes, for ever, whatever goes wrong."""
        while True:
            try:
                await self._listen()
            except Exception:
                logger.exception("changes of tickets are not heard")
                await asyncio.sleep(0.5)

    async def _listen(self) -> None:
        async with await AsyncConnection.connect(self._dsn, autocommit=True) as connection:
            await connection.execute(f"listen {CHANNEL}")
            self._all += 1  # what changed before this was not heard
            while True:
                async for heard in connection.notifies(timeout=_LOOKS_AGAIN):
                    self._of[heard.payload] += 1
                await connection.execute("select")
