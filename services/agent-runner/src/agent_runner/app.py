"""Where the agent-runner's parts meet."""

from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial

import structlog
from contracts.asks import SPEND
from contracts.bus import Bus
from contracts.declines import READS as DECLINES
from contracts.identity import Verifier
from contracts.log import JetStreamLog, Log
from contracts.subjects import TENANTS
from psycopg_pool import AsyncConnectionPool

from agent_runner.budgets import Budgets
from agent_runner.calls import Calls
from agent_runner.catalogue import Catalogue
from agent_runner.handlers import Agent
from agent_runner.ledger import Ledger, must_be_bound_by_row_security, until_back
from agent_runner.model import HOW_TO_SET_THE_KEY, Model
from agent_runner.prices import Prices
from agent_runner.profiles import Profiles
from agent_runner.run import READS
from agent_runner.settings import Settings
from agent_runner.spending import Spending
from agent_runner.waits import Waits

logger = structlog.get_logger()


async def start(bus: Bus, log: Log, settings: Settings, stack: AsyncExitStack) -> None:
    pool = AsyncConnectionPool(
        settings.postgres_dsn.get_secret_value(),
        kwargs={"autocommit": True, "application_name": "agent-runner"},
        min_size=1,
        max_size=8,
        open=False,
    )
    await pool.open()
    stack.push_async_callback(pool.close)
    await until_back(partial(must_be_bound_by_row_security, pool), "the start")
    key = settings.model_api_key.get_secret_value() if settings.model_api_key else None
    model = Model(key, settings.model_base_url, settings.model_timeout_s)
    stack.push_async_callback(model.close)
    if not key and not settings.model_base_url:
        logger.error("no model key", effect="every run will fail", remedy=HOW_TO_SET_THE_KEY)
    ledger = Ledger(pool, lease=settings.ack_wait)
    budgets, line = Budgets(ledger), JetStreamLog(bus.nc, stream=TENANTS)
    whole_log = JetStreamLog(bus.nc, reads=READS | DECLINES, keys=bus.keys)
    bus.on_error += [line.on_error, whole_log.on_error]
    waits = Waits(bus.send_model_wait)
    await stack.enter_async_context(waits.running())
    bus.conditions.append(waits.in_words)
    agent = Agent(
        log=log,
        whole_log=whole_log,
        bus=bus,
        calls=Calls(log, bus, model, ledger, waits, timedelta(seconds=settings.model_deadline_s)),
        ledger=ledger,
        catalogue=Catalogue(bus),
        profiles=Profiles.load(),
        prices=Prices.load(),
        model_instead=settings.model,
        calls_per_tenant=settings.calls_per_tenant,
        run_life=timedelta(seconds=settings.run_life_s),
        chat_idle=timedelta(seconds=settings.chat_idle_s),
    )
    # Before the first run is heard: the ledger may be an older copy, to which the broker repeats nothing.
    await budgets.catch_up(line)
    await bus.hear_tenants(budgets.hear)
    await bus.hear(agent.hear)
    await bus.hear_timers(agent.hear_timer)
    await bus.hear_dead(agent.hear_dead)
    spending = Spending(ledger.days, Verifier(settings.issuers, settings.audience))
    await bus.answer(SPEND, spending.asked)
