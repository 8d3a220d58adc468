"""Hearing: how messages are taken, kept in hand while they are worked on, acknowledged, given back and given up."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import stops
from contracts.errors import CorruptLog, Forbidden, Outage
from contracts.events import Event
from contracts.logs import unquoted
from contracts.metrics import HANDLED, HANDLING, IN_FLIGHT
from contracts.parts import Json
from contracts.requests import Requests
from contracts.stops import stop
from contracts.topology import HEARS_DEAD
from contracts.tracing import span

logger = structlog.get_logger()

GIVE_UP_AFTER = 8  # deliveries
IN_PROGRESS_EVERY = 0.3  # of the time that the broker waits for a sign of life
TAKEN_AT_ONCE = 512  # of each line
# Characters. A dead letter has to fit into a message, escaped; what is longer stays where `sequence` finds it.
LONGEST_QUOTE = 200_000


@dataclass(slots=True)
class _InHand:
    """A message from its receipt on, as it was delivered last, and when the broker was last told that it is in hand."""

    message: Msg
    told: float


class Hearing:
    """The messages that a service takes from its durable consumers, many at once.

    outages: the exceptions that mean that something is away. ack_wait: seconds for which the broker waits for a sign of
    life before it gives a message to another worker.
    """

    def __init__(
        self, nc: Client, service: str, requests: Requests, outages: tuple[type[Exception], ...], ack_wait: float
    ) -> None:
        self.nc = nc
        self.service = service
        self._requests = requests
        self._outages = outages
        self._ack_wait = ack_wait
        self._in_hand: dict[tuple[str, int], _InHand] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Any] = []
        self._ticker: asyncio.Task[None] | None = None

    async def take(
        self, subject: str, decode: Callable[[Msg], Any], handler: Callable[[Any], Awaitable[object]]
    ) -> None:
        """Gives each message of a consumer's `subject`, as `decode` reads it, to `handler`, until it is dealt with."""

        # A room a line: whoever waits in one (an outage of what its handler needs, say) is in no other's way.
        room = asyncio.Semaphore(TAKEN_AT_ONCE)

        async def arrived(message: Msg) -> None:
            about = message.metadata
            key = (about.stream, about.sequence.stream)
            if (known := self._in_hand.get(key)) is not None:
                known.message = message  # delivered again (the broker was away, say) while it is still being handled
                return
            self._in_hand[key] = _InHand(message, time.monotonic())
            task = asyncio.get_running_loop().create_task(self._deal_with(key, decode, handler, room))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._subscriptions.append(
            await self.nc.subscribe(subject, queue=self.service, cb=arrived, pending_msgs_limit=-1)
        )
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._keep_alive())

    async def _deal_with(
        self,
        key: tuple[str, int],
        decode: Callable[[Msg], Any],
        handler: Callable[[Any], Awaitable[object]],
        room: asyncio.Semaphore,
    ) -> None:
        started = time.monotonic()
        in_hand = self._in_hand[key]
        message = in_hand.message
        IN_FLIGHT.inc()
        kind = _kind(message.subject)
        outcome = "error"
        try:
            heard = decode(message)
            event = heard if isinstance(heard, Event) else None
            if event is not None and (room.locked() or self._has_waited(message, event)):
                heard = event = replace(event, recent=False)
            if event is not None:
                structlog.contextvars.bind_contextvars(
                    tenant=event.key.tenant, run=event.key.run, turn=getattr(event.fact, "turn", None), fact=kind
                )
            elif {"tenant", "run"} <= heard.keys():
                structlog.contextvars.bind_contextvars(tenant=heard["tenant"], run=heard["run"], fact=kind)
            with span(f"{self.service} hears {kind}", event, message.headers):
                async with room:
                    await self._until_no_outage(handler, heard)
            stop("before-ack")
            await in_hand.message.ack()
            if stops.are_armed():  # else a kill at the next point would take the acknowledgement along
                with suppress(nats.errors.Error):
                    await self.nc.flush()
            stop("after-ack")
            outcome = "done"
        except asyncio.CancelledError:
            raise  # given to another worker once the broker notices
        except Exception as error:
            outcome = await self._give_back(in_hand, error)
        finally:
            del self._in_hand[key]
            IN_FLIGHT.dec()
            HANDLED.labels(kind, outcome).inc()
            HANDLING.labels(kind).observe(time.monotonic() - started)

    def _has_waited(self, message: Msg, event: Event) -> bool:
        """Whether somebody had it in hand before, or nobody was there to take it."""
        age = datetime.now(UTC) - event.time
        return message.metadata.num_delivered > 1 or age.total_seconds() > self._ack_wait

    async def _until_no_outage(self, handler: Callable[[Any], Awaitable[object]], heard: Any) -> None:
        """An outage is waited out with the message in hand: it is nobody's fault and counts for nothing.

        What is done again then is decided again, over the run as it has become: it may have ended meanwhile.
        """
        wait = 0.05
        while True:
            try:
                await handler(heard)
                return
            except self._outages as error:
                logger.warning("outage", error=repr(error), again_in=round(wait, 2))
                await asyncio.sleep(wait * random.uniform(0.75, 1.25))  # noqa: S311 - spreads retries
                wait = min(wait * 2, 2.0)
                if isinstance(heard, Event):
                    heard = replace(heard, recent=False)

    async def _give_back(self, in_hand: _InHand, error: Exception) -> str:
        """A bug: again later, with a growing delay, and after enough tries into the dead letters."""
        tries = in_hand.message.metadata.num_delivered
        logger.exception("handler failed", tries=tries, exc_info=error)
        try:
            if tries < GIVE_UP_AFTER and not isinstance(error, CorruptLog):
                await in_hand.message.nak(delay=min(0.04 * self._ack_wait * 2**tries, 30))
                return "given back"
            letter = self._letter(in_hand.message, error)
            if letter is not None:
                reply = await self._requests.ask(f"dead.{self.service}", json.dumps(letter).encode(), timeout=5)
                if "error" in (answer := json.loads(reply.data)):
                    raise Outage(f"The dead letter was not taken: {answer['error']}")
            await in_hand.message.term()
            return "dead"
        except (nats.errors.Error, OSError, Outage, Forbidden) as trouble:
            # It comes again once the broker misses its acknowledgement.
            logger.error("not given back", error=repr(trouble))
            return "unacknowledged"

    def _letter(self, message: Msg, error: Exception) -> Json | None:
        """What nobody here could handle, for those who hear dead letters. None where that would go on for ever."""
        about: Json = {
            "subject": message.subject,
            "sequence": message.metadata.sequence.stream,
            "event": message.data.decode(errors="replace")[:LONGEST_QUOTE],
        }
        if message.subject.startswith("dead."):
            # A letter that could not be handled either is about the fact that the first was about.
            with suppress(ValueError, AttributeError):
                about |= {name: value for name, value in json.loads(message.data).items() if name in about}
            if message.subject.removeprefix("dead.") in HEARS_DEAD:
                logger.error("dead letter given up", subject=about["subject"], sequence=about["sequence"])
                return None
        return {"service": self.service, **about, "error": unquoted(f"{type(error).__name__}: {error}")[:2000]}

    async def _keep_alive(self) -> None:
        """Tells the broker that long work is still in hand, so that only a dead worker's message is heard elsewhere."""
        while True:
            await asyncio.sleep(self._ack_wait / 10)
            now = time.monotonic()
            for in_hand in list(self._in_hand.values()):
                if now - in_hand.told >= IN_PROGRESS_EVERY * self._ack_wait:
                    with suppress(nats.errors.Error, OSError):
                        await in_hand.message.in_progress()
                    in_hand.told = now

    async def close(self, grace: float) -> None:
        """Stops taking, and gives what is in hand so many seconds; what is left is heard by another worker."""
        for subscription in self._subscriptions:
            with suppress(Exception):
                await subscription.unsubscribe()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in [*self._tasks, *([self._ticker] if self._ticker else [])]:
            task.cancel()


def _kind(subject: str) -> str:
    """What sort of message it is: the fact of a run; for timers and dead letters not which one."""
    tokens = subject.split(".")
    return ".".join(tokens[-2:] if tokens[0] in ("run", "tenant") else tokens[:2])
