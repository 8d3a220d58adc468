"""Where tools-shop is put together."""

import asyncio
from contextlib import AsyncExitStack

from contracts.asks import CATALOGUE, QUOTE
from contracts.bus import Bus
from contracts.identity import Verifier
from contracts.log import JetStreamLog
from contracts.subjects import TENANTS

from tools_shop import database
from tools_shop.asked import Asked
from tools_shop.embedding import Embedder
from tools_shop.handlers import Handlers
from tools_shop.help_centre import HelpCentre
from tools_shop.settings import Settings
from tools_shop.stop_switch import StopSwitch
from tools_shop.toolsets.shop import shop
from tools_shop.turns import Turns


async def start(bus: Bus, log: JetStreamLog, settings: Settings, stack: AsyncExitStack) -> None:
    pool = await stack.enter_async_context(database.pool(settings.postgres_dsn.get_secret_value(), settings.pool_size))
    await database.must_be_bound_by_row_security(pool)
    embedder = Embedder()
    stack.push_async_callback(embedder.close)
    embedder.load_soon()
    toolset = shop(HelpCentre(embedder).ask)
    turns, toolsets = Turns(pool), {toolset.name: toolset}
    asked = Asked(log, turns, toolsets, Verifier(settings.issuers, settings.audience))
    switch, line = StopSwitch(pool), JetStreamLog(bus.nc, stream=TENANTS)
    bus.on_error.append(line.on_error)
    # Before the first turn is heard: the stop that another process took with it when it died counts for that turn.
    after = await switch.catch_up(line)
    following = asyncio.create_task(switch.follow(line, after))
    stack.callback(following.cancel)
    await bus.hear_tenants(switch.hear)
    await bus.hear(Handlers(log, turns, toolsets).hear)
    await bus.answer(CATALOGUE, asked.catalogue)
    await bus.answer(QUOTE, asked.quote)
