"""The log: append behind what one has read, read one run, follow everything that was accepted."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import events
from contracts.errors import Conflict, CorruptLog, Forbidden, Outage
from contracts.events import Draft, Event, Link
from contracts.facts import CATALOGUE
from contracts.history import History
from contracts.metrics import APPENDED, CONFLICTS
from contracts.subjects import RUNS, RunKey
from contracts.tracing import traceparent_behind

Clock = Callable[[], datetime]

# Wrong expected sequence; and, in a cluster, another proposal for the same subjects still in flight.
CONFLICT_CODES = (10071, 10164)
# Facts that end a run are read by everyone: no fold may miss them.
TERMINAL = frozenset(kind for kind, fact in CATALOGUE.items() if fact.terminal)
EVERYTHING = frozenset(CATALOGUE)
_HISTORIES = 4096


class Log(Protocol):
    """One run's line of facts, and how it grows. Two implementations: JetStream, and memory for simulations."""

    async def read(self, key: RunKey, at: Event | None = None) -> History:
        """The run as far as it is known to have come: at least to `at`, or to its head where no event is given."""

    async def append(self, history: History, draft: Draft) -> Event:
        """The accepted event. Raises Conflict if the run has grown since `history`, Outage if nobody can tell."""


class JetStreamLog:
    """The log on a JetStream stream.

    A process keeps recent histories in memory and fetches, by sequence, only what it lacks and only the kinds that its
    own folds read (`reads`; the kinds that end a run are always among them).
    """

    def __init__(
        self,
        nc: Client,
        reads: Iterable[str] = EVERYTHING,
        *,
        clock: Clock = lambda: datetime.now(UTC),
        timeout: float = 5.0,
    ) -> None:
        self._nc = nc
        self._reads = frozenset(reads) | TERMINAL
        self._clock = clock
        self._timeout = timeout
        self._memory: OrderedDict[RunKey, History] = OrderedDict()
        self._publishing: dict[str, asyncio.Task[object]] = {}
        self._refused: set[str] = set()

    # Reading one run

    async def read(self, key: RunKey, at: Event | None = None) -> History:
        known = self._memory.get(key)
        head = at or await self.head(key)
        if head is None:
            return History(key)
        if known is not None and known.head is not None and head.ordinal <= known.head.ordinal:
            return known
        return self._remember(await self._extend(known or History(key), head))

    async def head(self, key: RunKey) -> Event | None:
        """The run's last event, whatever its kind."""
        return await self._get({"last_by_subj": key.every})

    async def last_of(self, key: RunKey, kind: str) -> Event | None:
        """The last event of one kind, by its exact subject: nobody's trail is believed for it."""
        return await self._get({"last_by_subj": key.subject(kind)})

    async def every_of(self, key: RunKey, kind: str) -> list[Event]:
        """All events of one kind in order, by their exact subject."""
        found: list[Event] = []
        sequence = 1
        while (event := await self._get({"seq": sequence, "next_by_subj": key.subject(kind)})) is not None:
            found.append(event)
            sequence = event.sequence + 1
        return found

    async def at(self, sequence: int) -> Event | None:
        return await self._get({"seq": sequence})

    async def _extend(self, known: History, head: Event) -> History:
        """`known` up to `head`, fetching what lies between and is read here."""
        after = known.head.ordinal if known.head else -1
        fresh = [head]
        oldest = head
        while True:
            wanted = [
                link
                for ordinal, link in enumerate(oldest.trail, oldest.ordinal - len(oldest.trail))
                if ordinal > after and link.kind in self._reads
            ]
            fresh += await asyncio.gather(*(self._fetch(known.key, link) for link in wanted))
            reached = oldest.ordinal - len(oldest.trail)
            if reached <= after + 1:
                break
            # The trail does not reach back far enough: go on from the oldest event that it names.
            oldest = await self._fetch(known.key, oldest.trail[0])
        unique = {event.ordinal: event for event in fresh if event.kind in self._reads}
        ordered = tuple(unique[ordinal] for ordinal in sorted(unique))
        before = known.head
        for event in [*ordered, head]:
            if before and event.ordinal == before.ordinal + 1 and not event.follows(before.chain):
                raise CorruptLog(f"Event {event.ordinal} of {known.key} does not fit the chain of the one before it.")
            before = event
        return History(known.key, known.events + ordered, head)

    async def _fetch(self, key: RunKey, link: Link) -> Event:
        event = await self._get({"seq": link.sequence})
        if event is None or event.key != key or event.kind != link.kind:
            raise CorruptLog(f"Sequence {link.sequence} is not the {link.kind} of {key} that the trail names.")
        return event

    async def _get(self, query: dict[str, object]) -> Event | None:
        try:
            answer = await self._nc.request(
                f"$JS.API.DIRECT.GET.{RUNS}", json.dumps(query).encode(), timeout=self._timeout
            )
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The log did not answer a read: {error!r}") from error
        headers = answer.headers or {}
        if "Nats-Subject" not in headers:
            if headers.get("Status") == "404":
                return None
            raise Outage(f"The log refused a read: {headers.get('Status')} {headers.get('Description')}")
        return _event(answer)

    def _remember(self, history: History) -> History:
        self._memory[history.key] = history
        self._memory.move_to_end(history.key)
        if len(self._memory) > _HISTORIES:
            self._memory.popitem(last=False)
        return history

    # Appending

    async def append(self, history: History, draft: Draft) -> Event:
        before, key = history.head, history.key
        parent = traceparent_behind(draft.cause)
        event = events.write(key, draft, before, self._clock(), parent)
        sequence = await self._publish(event, before.sequence if before else 0)
        event = replace(event, sequence=sequence)
        known = self._memory.get(key)
        if known is None or known.head is None or known.head.ordinal < event.ordinal:
            self._remember(history.with_event(event) if event.kind in self._reads else replace(history, head=event))
        APPENDED.labels(event.kind).inc()
        return event

    async def _publish(self, event: Event, expected: int) -> int:
        subject = event.key.subject(event.kind)
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(expected),
            "Nats-Expected-Last-Subject-Sequence-Subject": event.key.every,
        }
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - appending happens in a task
        self._publishing[subject] = task
        try:
            reply = await self._nc.request(subject, event.payload, timeout=self._timeout, headers=headers)
            answer = json.loads(reply.data)
        except asyncio.CancelledError:
            if subject not in self._refused:
                raise
            self._refused.discard(subject)
            task.uncancel()
            raise Forbidden(
                f"The broker does not let this service say {event.kind}: nothing was added to {event.key.run}. "
                "Check the service's NATS user."
            ) from None
        except (nats.errors.Error, OSError) as error:
            # Taken or not, nobody knows: the run's head will tell.
            raise Outage(f"The log did not confirm {event.kind} of {event.key.run}: {error!r}") from error
        finally:
            self._publishing.pop(subject, None)
        if "error" in answer:
            if answer["error"].get("err_code") in CONFLICT_CODES:
                CONFLICTS.labels(event.kind).inc()
                raise Conflict(f"{event.key.run} has grown since it was read.")
            raise Outage(f"The log did not take {event.kind} of {event.key.run}: {answer['error'].get('description')}")
        if answer.get("duplicate"):
            raise CorruptLog(f"The log swallowed {event.kind} of {event.key.run} as a duplicate.")
        return int(answer["seq"])

    def on_error(self, error: Exception) -> None:
        """The client's error callback: a refused publish is known at once, and nowhere else."""
        text = str(error)
        if "permissions violation" in text.lower():
            for subject, task in self._publishing.items():
                if f'"{subject}"'.lower() in text.lower():
                    self._refused.add(subject)
                    task.cancel()

    # Following everything

    async def follow(self, after: int = 0, tenant: str | None = None, *, live: bool = True) -> AsyncIterator[Event]:
        """Every accepted event behind sequence `after`, in order, once; then, if `live`, the new ones as they come."""
        scope = f"{tenant}.>" if tenant else ">"
        queue: asyncio.Queue[Event] = asyncio.Queue()

        async def arrived(msg: Msg) -> None:
            queue.put_nowait(_event(msg))

        subscription = None
        if live:
            subscription = await self._nc.subscribe(f"log.run.{scope}", cb=arrived, pending_msgs_limit=-1)
            await self._nc.flush()
        try:
            async for stored in self._behind(after, f"run.{scope}"):
                after = stored.sequence
                yield stored
            event: Event | None
            while live:
                try:
                    event = await asyncio.wait_for(queue.get(), timeout=2.0)
                    missed = event.sequence > after + 1 and tenant is None
                except TimeoutError:
                    event, missed = None, True
                if missed:
                    # Something may have passed us by (a lost connection, a gap): the stream itself knows.
                    with suppress(Outage):
                        async for late in self._behind(after, f"run.{scope}"):
                            after = late.sequence
                            yield late
                if event is not None and event.sequence > after:
                    after = event.sequence
                    yield event
        finally:
            if subscription is not None:
                with suppress(Exception):
                    await subscription.unsubscribe()

    async def _behind(self, after: int, subjects: str) -> AsyncIterator[Event]:
        while True:
            batch = await self._batch(after + 1, subjects)
            for event in batch:
                after = event.sequence
                yield event
            if not batch:
                return

    async def _batch(self, sequence: int, subjects: str, size: int = 256) -> list[Event]:
        """Up to `size` events from `sequence` on, in one request."""
        inbox = self._nc.new_inbox()
        subscription = await self._nc.subscribe(inbox)
        found: list[Event] = []
        try:
            query = {"seq": sequence, "next_by_subj": subjects, "batch": size}
            await self._nc.publish(f"$JS.API.DIRECT.GET.{RUNS}", json.dumps(query).encode(), reply=inbox)
            while True:
                answer = await subscription.next_msg(timeout=self._timeout)
                if "Nats-Subject" not in (answer.headers or {}):
                    return found
                found.append(_event(answer))
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The log did not answer a read: {error!r}") from error
        finally:
            with suppress(Exception):
                await subscription.unsubscribe()


def _event(msg: Msg) -> Event:
    """A stored message as an event; the server's own headers say which it is."""
    headers = msg.headers or {}
    return events.read(headers["Nats-Subject"], int(headers["Nats-Sequence"]), msg.data)
