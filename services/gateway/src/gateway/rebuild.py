"""Makes the views of runs anew from the log, whether or not a gateway is running."""

import asyncio

from contracts.bus import Bus
from contracts.log import JetStreamLog

from gateway.database import open_pool
from gateway.desk import Desk
from gateway.feed import Feed
from gateway.projection import Projection
from gateway.settings import Settings


async def rebuild(settings: Settings) -> int:
    """Empties the views and returns, once they hold all of the log again, the sequence that they have reached."""
    bus = await Bus.connect(settings, "gateway")
    dsn = settings.postgres_dsn.get_secret_value()
    pool = open_pool(dsn, size=2)
    try:
        await pool.open(wait=True, timeout=30)
        desk, log = Desk(pool), JetStreamLog(bus.nc, keys=bus.keys)
        last = 0
        async for event in log.follow(live=False):
            last = event.sequence
        await desk.forget_views()
        # Whoever keeps the views, a running gateway or this process, starts again at the beginning of the log.
        projection = Projection(dsn, desk, Feed(bus, log, last))
        keeping = asyncio.create_task(projection.run())
        try:
            while await desk.position() < last:
                await projection.reach(last)
        finally:
            keeping.cancel()
        return last
    finally:
        await pool.close()
        await bus.close()
