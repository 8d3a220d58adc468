"""One stream of the broker, as it is read: by place, by subject, everything behind a sequence, and what comes."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import events
from contracts.datakeys import KeyRing, Missing
from contracts.errors import CorruptLog, Outage
from contracts.events import Event, Known
from contracts.requests import Requests
from contracts.subjects import RUNS, TENANTS

logger = structlog.get_logger()

# How the subjects of each stream begin.
_LINES = {RUNS: "run", TENANTS: "tenant"}
# Live events that wait for a follower. What does not fit is read from the stream, which has it anyway.
_WAITING = 4096
# Answers to a batched read that are its end: nothing more, nothing at all.
_ENDS = ("204", "404")


class Stream:
    """The accepted events of a stream, with their personal data where `keys` are given."""

    def __init__(self, nc: Client, name: str, requests: Requests, timeout: float, keys: KeyRing | None) -> None:
        self._nc = nc
        self._line, self._get_from = _LINES[name], f"$JS.API.DIRECT.GET.{name}"
        self._requests = requests
        self._timeout = timeout
        self._keys = keys
        self._known = keys.known if keys else events.no_key

    async def get(self, query: dict[str, object]) -> Event | None:
        """The event that a query finds, None if there is none. Raises Outage where nobody can tell."""
        try:
            answer = await self._requests.ask(self._get_from, json.dumps(query).encode(), timeout=self._timeout)
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The log did not answer a read: {error!r}") from error
        headers = answer.headers or {}
        if "Nats-Subject" not in headers:
            if headers.get("Status") == "404":
                return None
            raise Outage(f"The log refused a read: {headers.get('Status')} {headers.get('Description')}")
        return await self._opened(_event(answer, self._known))

    async def _opened(self, event: Event) -> Event:
        """The event with its personal data, where that is sealed and this process may see it."""
        if event.personal != "sealed" or self._keys is None:
            return event
        return events.opened(event, await self._keys.of(event.key))

    async def follow(self, after: int, tenant: str | None, *, live: bool) -> AsyncGenerator[Event, None]:
        """As `JetStreamLog.follow`."""
        scope = f"{tenant}.>" if tenant else ">"
        queue: asyncio.Queue[_Found] = asyncio.Queue(_WAITING)

        async def arrived(msg: Msg) -> None:
            with suppress(asyncio.QueueFull):
                queue.put_nowait(_found(msg, self._known))

        subscription = await self._nc.subscribe(f"log.{self._line}.{scope}", cb=arrived) if live else None
        behind = True
        try:
            while True:
                if behind:
                    try:
                        async for sequence, event in self._behind(after, f"{self._line}.{scope}"):
                            event = await self._readable(event)
                            after = sequence
                            if event is not None:
                                yield event
                    except Outage:
                        if not live or self._nc.is_closed:
                            raise
                        await asyncio.sleep(0.2)
                        continue
                if not live:
                    return
                try:
                    sequence, event = await asyncio.wait_for(queue.get(), timeout=2.0)
                except TimeoutError:
                    behind = True  # nothing came, or nothing reached us
                    continue
                # A gap: another tenant's events, or lost ones of ours. The stream knows, and has this one in its place.
                behind = sequence > after + 1
                if sequence == after + 1:
                    try:
                        event = await self._readable(event)
                    except Outage:
                        behind = True
                        continue
                    after = sequence
                    if event is not None:
                        yield event
        finally:
            if subscription is not None:
                with suppress(Exception):
                    await subscription.unsubscribe()

    async def _readable(self, event: Event | None) -> Event | None:
        """The event as this process may see it; None where that cannot be read, for which nobody else must wait."""
        try:
            return await self._opened(event) if event is not None else None
        except Missing as error:
            logger.error("sealed event", error=str(error), sequence=event.sequence if event else None)
            return event
        except CorruptLog as error:
            logger.error("unreadable event", error=str(error))
            return None

    async def _behind(self, after: int, subjects: str) -> AsyncIterator["_Found"]:
        while batch := await self._batch(after + 1, subjects):
            for found in batch:
                after = found[0]
                yield found

    async def _batch(self, sequence: int, subjects: str, size: int = 256) -> list["_Found"]:
        """Up to `size` events from `sequence` on, in one request. Raises Forbidden where one may not read."""
        inbox = self._nc.new_inbox()
        found: list[_Found] = []
        try:
            subscription = await self._nc.subscribe(inbox)
            try:
                query = {"seq": sequence, "next_by_subj": subjects, "batch": size}
                with self._requests.refusable(self._get_from):
                    await self._nc.publish(self._get_from, json.dumps(query).encode(), reply=inbox)
                    while True:
                        answer = await subscription.next_msg(timeout=self._timeout)
                        headers = answer.headers or {}
                        if "Nats-Subject" in headers:
                            found.append(_found(answer, self._known))
                        elif headers.get("Status") in _ENDS:
                            return found
                        else:
                            why = f"{headers.get('Status')} {headers.get('Description')}"
                            raise Outage(f"The log refused a read: {why}")
            finally:
                with suppress(Exception):
                    await subscription.unsubscribe()
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The log did not answer a read: {error!r}") from error


# A message's sequence, and its event unless it cannot be read as one.
_Found = tuple[int, Event | None]


def _found(msg: Msg, known: Known) -> _Found:
    try:
        event = _event(msg, known)
        return event.sequence, event
    except CorruptLog as error:
        logger.error("unreadable event", error=str(error))
        return int((msg.headers or {})["Nats-Sequence"]), None


def _event(msg: Msg, known: Known) -> Event:
    """A stored message as an event; the server's own headers say which it is."""
    headers = msg.headers or {}
    return events.read(headers["Nats-Subject"], int(headers["Nats-Sequence"]), msg.data, known)
