"""What policy hears: a new quote, a person's decision, a hold's expiry. Each may bring one verdict over the turn."""

from contracts.bus import Handler
from contracts.events import Draft, Event
from contracts.handler import respond
from contracts.history import History
from contracts.log import Log

from policy import domain
from policy.packs import Packs


def judging(log: Log, packs: Packs) -> Handler:
    async def judge(event: Event) -> None:
        pack = packs.of(event.key.tenant)

        def react(history: History, event: Event) -> Draft | None:
            return domain.react(history, event, pack)

        await respond(log, event, react)

    return judge
