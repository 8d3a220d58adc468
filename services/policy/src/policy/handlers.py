"""What policy hears and is asked: quotes, decisions and expiries; promoted packs, and whether a pack can be read."""

import asyncio

import structlog
from contracts.bus import Answer, Handler
from contracts.errors import Outage
from contracts.events import Draft, Event
from contracts.handler import respond
from contracts.history import History
from contracts.log import JetStreamLog, Log
from contracts.parts import Json

from policy import domain
from policy.pack import InvalidPack, parse
from policy.packs import Packs

logger = structlog.get_logger()


def judging(log: Log, packs: Packs) -> Handler:
    """Each quote, decision and expiry may bring one verdict over its turn."""

    async def judge(event: Event) -> None:
        pack = packs.of(event.key.tenant)

        def react(history: History, event: Event) -> Draft | None:
            return domain.react(history, event, pack)

        await respond(log, event, react)

    return judge


def checking(packs: Packs) -> Answer:
    """Whether a text is a pack that this tenant could be judged by."""

    async def check(request: Json) -> Json:
        tenant, text = request.get("tenant"), request.get("text")
        if not isinstance(tenant, str) or not isinstance(text, str):
            return _no("Nothing to check", "Send the tenant and the text of the pack. Nothing was changed.")
        try:
            # In a thread: a text that somebody sends must hold up no turn.
            pack = await asyncio.to_thread(parse, text, source="pack")
        except InvalidPack as error:
            return _no("Not a policy pack", str(error)[:4000])
        currency = packs.currency(tenant) or pack.currency
        if pack.currency != currency:
            why = f"pack, currency: {tenant} pays in {currency}; in {pack.currency} every refund would be refused."
            return _no("Another currency", why)
        return {"status": 200, "pack": pack.stamp.model_dump(mode="json")}

    return check


async def catch_up(line: JetStreamLog, packs: Packs) -> int:
    """Hears every fact that the tenants' lines hold by now, an outage waited out; the sequence of the last."""
    after = 0
    while True:
        try:
            async for event in line.follow(after, live=False):
                packs.hear(event)
                after = event.sequence
            return after
        except Outage as error:
            logger.warning("outage", error=repr(error))
            await asyncio.sleep(0.5)


async def follow(line: JetStreamLog, packs: Packs, after: int) -> None:
    """Hears the tenants' facts behind `after` as they come, for ever."""
    while True:
        try:
            async for event in line.follow(after):
                packs.hear(event)
                after = event.sequence
        except Exception:
            logger.exception("tenants' facts are not followed", after=after)
        await asyncio.sleep(1)


def _no(title: str, detail: str) -> Json:
    return {"status": 422, "title": title, "detail": detail}
