"""The other systems that hear a tenant's facts, as the broker keeps them: each by a consumer that says whose it is."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from contracts import setup
from contracts.subjects import RUNS, BadToken
from contracts.topology import subscriber
from nats.aio.client import Client

from turngate.broker import Subscriber
from turngate.embedded.trouble import Trouble

NKEY = "turngate-nkey"  # the public half; the seed is kept nowhere


@dataclass(frozen=True)
class Hearing:
    """How far a subscriber is: the sequence up to which it has acknowledged, and how many facts wait for it."""

    subscriber: Subscriber
    acknowledged: int
    waiting: int


async def hearing(nc: Client) -> list[Hearing]:
    """All of them, by name."""
    found = [one async for one in _consumers(nc)]
    return sorted(found, key=lambda one: one.subscriber.name)


async def named(nc: Client, name: str) -> Subscriber | None:
    """Raises Trouble where no subscriber can be called so."""
    try:
        subscriber(name)
    except BadToken as error:
        raise Trouble(f"{error} Nothing was changed.") from None
    return next((one.subscriber for one in await hearing(nc) if one.subscriber.name == name), None)


async def add(nc: Client, one: Subscriber) -> None:
    """Gives it its place in the log. It may enter once the broker's configuration names it, too."""
    await setup.add_subscriber(nc, one.name, one.tenant, {NKEY: one.nkey})


async def remove(nc: Client, name: str) -> None:
    await setup.remove_subscriber(nc, name)


async def _consumers(nc: Client) -> AsyncIterator[Hearing]:
    jetstream, offset = nc.jetstream(), 0
    while page := await jetstream.consumers_info(RUNS, offset):
        offset += len(page)
        for info in page:
            if nkey := (info.config.metadata or {}).get(NKEY):
                waiting = (info.num_pending or 0) + (info.num_ack_pending or 0)
                yield Hearing(_of(info, nkey), info.ack_floor.stream_seq if info.ack_floor else 0, waiting)


def _of(info: Any, nkey: str) -> Subscriber:
    [subject] = info.config.filter_subjects or [info.config.filter_subject]
    return Subscriber(info.name.removeprefix("subscriber-"), subject.split(".")[1], nkey)
