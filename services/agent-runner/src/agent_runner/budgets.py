"""The tenants' budgets of a day: heard on their own lines, and kept where reservations find them."""

from functools import partial

from contracts.events import Event
from contracts.following import catch_up
from contracts.log import JetStreamLog
from contracts.tenant_facts import BudgetSet

from agent_runner.ledger import Ledger, until_back


class Budgets:
    """Heard once by whichever process the broker gives a fact to. A ledger that was restored from a backup has
    forgotten what the broker was told that it was heard: so every process reads the lines when it starts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def hear(self, event: Event) -> None:
        """Once this returns, no reservation exceeds the budget that was set."""
        if isinstance(event.fact, BudgetSet):
            await self._ledger.set_budget(event.key.tenant, event.fact.day_micro_usd, event.sequence)

    async def catch_up(self, line: JetStreamLog) -> None:
        """Hears the last budget of every tenant, an outage of the broker or the database waited out."""
        last: dict[str, Event] = {}

        def take(event: Event) -> None:
            if isinstance(event.fact, BudgetSet):
                last[event.key.tenant] = event

        await catch_up(line, take)
        for event in last.values():
            await until_back(partial(self.hear, event), "a tenant's budget")
