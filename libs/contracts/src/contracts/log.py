"""The log: read one run, append behind what one has read, follow everything that was accepted."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import nats.errors
import structlog
from nats.aio.client import Client

from contracts import events
from contracts.datakeys import KeyRing
from contracts.errors import Conflict, CorruptLog, Outage
from contracts.events import Draft, Event, Link
from contracts.facts import CATALOGUE, RunErased, RunStarted
from contracts.history import History
from contracts.metrics import APPENDED, CONFLICTS
from contracts.recent import Recent
from contracts.requests import Requests
from contracts.sealing import DataKey, Gone
from contracts.stream import Stream
from contracts.subjects import RUNS, RunKey
from contracts.tenant_facts import TENANT_FACTS
from contracts.tracing import traceparent_behind
from contracts.writability import Writability

logger = structlog.get_logger()
Clock = Callable[[], datetime]

# Wrong expected sequence; and, in a cluster, another proposal for the same subjects still in flight.
CONFLICT_CODES = (10071, 10164)
# Facts that end a run are read by everyone: no fold may miss them.
TERMINAL = frozenset(kind for kind, fact in CATALOGUE.items() if fact.terminal)
EVERYTHING = frozenset(CATALOGUE) | frozenset(TENANT_FACTS)


class Log(Protocol):
    """One run's line of facts, and how it grows. Two implementations: JetStream, and memory for simulations."""

    async def read(self, key: RunKey, at: Event | None = None) -> History:
        """The run as far as it is known to have come: at least to `at`, or to its head where no event is given, or one
        that is not recent."""

    async def append(self, history: History, draft: Draft) -> Event:
        """The accepted event. Raises Conflict if the run has grown since `history`, Outage if nobody can tell."""


class JetStreamLog:
    """The log on a JetStream stream: the runs' lines, or with TENANTS the tenants' own.

    A process keeps recent histories in memory and fetches, by sequence, only what it lacks and only the kinds that its
    own folds read (`reads`; the kinds that end a run, or say that it was erased, are always among them).

    writability: is told how each append went.
    keys: of the runs' personal data, where this process may see it. Without them facts are read with placeholders, and
    written as they are.
    """

    def __init__(
        self,
        nc: Client,
        reads: Iterable[str] = EVERYTHING,
        *,
        stream: str = RUNS,
        clock: Clock = lambda: datetime.now(UTC),
        timeout: float = 5.0,
        keys: KeyRing | None = None,
        writability: Writability | None = None,
    ) -> None:
        self._nc = nc
        self._keys = keys
        self._writability = writability or Writability()
        self._known = keys.known if keys else events.no_key
        self._reads = frozenset(reads) | TERMINAL | {RunErased.kind}
        self._clock = clock
        self._timeout = timeout
        self._recent = Recent()
        self._requests = Requests(nc)
        self._stream = Stream(nc, stream, self._requests, timeout, keys)

    # Reading one run

    async def read(self, key: RunKey, at: Event | None = None) -> History:
        head = at if at is not None and at.sequence and at.recent else await self.head(key)
        if head is None:
            return History(key)
        known = self._recent.get(key)
        # By sequence, which the broker gave: an ordinal is only what the author says.
        if known is not None and known.head is not None and head.sequence <= known.head.sequence:
            return known
        history = await self._extend(known or History(key), head)
        if known is not None and any(event.kind == RunErased.kind for event in history.events[len(known.events) :]):
            # What is in memory was read while it could be.
            if self._keys is not None:
                self._keys.forget(key)
            history = await self._extend(History(key), head)
        return self._remember(history)

    async def head(self, key: RunKey) -> Event | None:
        """The run's last event, whatever its kind."""
        return await self._stream.get({"last_by_subj": key.every})

    async def last_of(self, key: RunKey, kind: str) -> Event | None:
        """The last event of one kind, by its exact subject: nobody's trail is believed for it."""
        return await self._stream.get({"last_by_subj": key.subject(kind)})

    async def every_of(self, key: RunKey, kind: str) -> list[Event]:
        """All events of one kind in order, by their exact subject."""
        found: list[Event] = []
        sequence = 1
        while (event := await self._stream.get({"seq": sequence, "next_by_subj": key.subject(kind)})) is not None:
            found.append(event)
            sequence = event.sequence + 1
        return found

    async def at(self, sequence: int) -> Event | None:
        return await self._stream.get({"seq": sequence})

    async def _extend(self, known: History, head: Event) -> History:
        """`known` up to `head`, fetching what lies between and is read here."""
        after = known.head.ordinal if known.head else -1
        if head.ordinal <= after:
            raise CorruptLog(f"Event {head.sequence} of {known.key} says that it is number {head.ordinal} again.")
        found = {head.ordinal: head}
        oldest = head
        while True:
            reached = oldest.ordinal - len(oldest.trail)
            more = reached > after + 1  # then the trail goes on from the oldest event that it names
            wanted = [
                (ordinal, link)
                for ordinal, link in enumerate(oldest.trail, reached)
                if ordinal > after and (link.kind in self._reads or (more and ordinal == reached))
            ]
            for event in await asyncio.gather(*(self._fetch(known.key, *named) for named in wanted)):
                found[event.ordinal] = event
            if not more:
                break
            oldest = found[reached]
        ordered = tuple(found[ordinal] for ordinal in sorted(found) if found[ordinal].kind in self._reads)
        before = known.head
        for event in [*ordered, head]:
            if before and event.ordinal == before.ordinal + 1 and not event.follows(before.chain):
                raise CorruptLog(f"Event {event.ordinal} of {known.key} does not fit the chain of the one before it.")
            before = event
        return History(known.key, known.events + ordered, head)

    async def _fetch(self, key: RunKey, ordinal: int, link: Link) -> Event:
        event = await self._stream.get({"seq": link.sequence})
        if event is None or (event.key, event.kind, event.ordinal) != (key, link.kind, ordinal):
            raise CorruptLog(
                f"Sequence {link.sequence} is not event {ordinal} of {key}, the {link.kind} that a trail names."
            )
        return event

    def _remember(self, history: History) -> History:
        known = self._recent.get(history.key)
        if known and known.head and history.head and known.head.sequence > history.head.sequence:
            return history  # another task has read further meanwhile
        return self._recent.put(history)

    # Appending

    async def append(self, history: History, draft: Draft) -> Event:
        before, key = history.head, history.key
        parent = traceparent_behind(draft.cause, before)
        data_key = await self._key_for(history) if self._keys else None
        event = events.write(key, draft, before, self._clock(), parent, data_key)
        sequence = await self._publish(event, before.sequence if before else 0)
        event = replace(event, sequence=sequence)
        # Only what was read here: a history that its caller made may lack events that readers would then miss.
        if self._recent.get(key) is history or before is None:
            self._remember(history.with_event(event) if event.kind in self._reads else replace(history, head=event))
        APPENDED.labels(event.kind).inc()
        logger.info(
            "said",
            tenant=key.tenant,
            run=key.run,
            turn=getattr(draft.fact, "turn", None),
            fact=event.kind,
            ordinal=event.ordinal,
            sequence=sequence,
        )
        return event

    async def _key_for(self, history: History) -> DataKey | Gone | None:
        """What a fact behind this history is sealed with. A run that began in clear text goes on so."""
        assert self._keys is not None  # noqa: S101 - asked only where there are keys
        if type(history.key) is not RunKey:
            return None
        if history.head is None:
            return await self._keys.make(history.key)
        known = history.events[0] if history.events else history.head
        begun = known if known.ordinal == 0 else await self.last_of(history.key, RunStarted.kind)
        if begun is None or begun.personal == "clear":
            return None
        return self._known(history.key) or await self._keys.of(history.key)

    async def _publish(self, event: Event, expected: int) -> int:
        subject = event.key.subject(event.kind)
        headers = {
            "Nats-Expected-Last-Subject-Sequence": str(expected),
            "Nats-Expected-Last-Subject-Sequence-Subject": event.key.every,
        }
        try:
            reply = await self._requests.ask(subject, event.payload, timeout=self._timeout, headers=headers)
            answer = json.loads(reply.data)
        except (nats.errors.Error, OSError) as error:
            # Taken or not, nobody knows: the run's head will tell.
            self._writability.failed(f"the log did not confirm an append: {error!r}")
            raise Outage(f"The log did not confirm {event.kind} of {event.key.run}: {error!r}") from error
        if "error" in answer:
            if answer["error"].get("err_code") in CONFLICT_CODES:
                CONFLICTS.labels(event.kind).inc()
                raise Conflict(f"{event.key.run} has grown since it was read.")
            why = answer["error"].get("description")
            self._writability.failed(f"the log does not take an append: {why}")
            raise Outage(f"The log did not take {event.kind} of {event.key.run}: {why}")
        if answer.get("duplicate"):
            raise CorruptLog(f"The log swallowed {event.kind} of {event.key.run} as a duplicate.")
        self._writability.succeeded()
        return int(answer["seq"])

    @property
    def closed(self) -> bool:
        """Whether the connection is closed for good."""
        return self._nc.is_closed

    def on_error(self, error: Exception) -> None:
        """The client's error callback: a refused publish is known at once, and nowhere else."""
        self._requests.on_error(error)

    def follow(self, after: int = 0, tenant: str | None = None, *, live: bool = True) -> AsyncGenerator[Event, None]:
        """Every accepted event behind sequence `after`, in order, once; then, if `live`, the new ones as they come.

        What cannot be read as an event is logged and passed over: one author's bad message must not blind everyone.
        An outage is waited out if `live`, and raised otherwise.
        """
        return self._stream.follow(after, tenant, live=live)
