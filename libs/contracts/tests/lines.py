"""Lines of facts for the tests of the log: what somebody said, and a run that has grown."""

import json
from collections.abc import Callable

from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid
from contracts.log import Log
from contracts.subjects import RunKey
from nats.aio.client import Client

from .servers import SOON

STARTED = EXAMPLES["desk.run-started"]
ENDED = EXAMPLES["agent.run-ended"]


def said(text: str, cause: Event | None = None) -> Draft:
    return Draft(CustomerSaid(text=text, message_id=text), cause, key=text)


async def grow(log: Log, key: RunKey, length: int, draft: Callable[[int], Draft] | None = None) -> list[Event]:
    """Makes the run `length` events long."""
    history = await log.read(key)
    grown: list[Event] = []
    for number in range(len(grown) if history.head is None else history.head.ordinal + 1, length):
        fact = Draft(STARTED, None) if number == 0 else (draft or (lambda n: said(f"m-{n}")))(number)
        grown.append(await log.append(history, fact))
        history = await log.read(key)
    return grown


async def publish(nc: Client, event: Event, payload: bytes | None = None, subject: str | None = None) -> int:
    """Stores an event as a service would that keeps to no rule, behind whatever is there."""
    reply = await nc.request(subject or event.key.subject(event.kind), payload or event.payload, timeout=SOON)
    return int(json.loads(reply.data)["seq"])
