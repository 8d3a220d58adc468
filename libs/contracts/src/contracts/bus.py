"""The bus: the one place that knows how messages are taken, acknowledged, given back and given up."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import nats
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from contracts import connection, events, stops, subjects
from contracts.datakeys import JetStreamKeys, KeyRing
from contracts.errors import CorruptLog, Forbidden, Outage
from contracts.events import Event
from contracts.logs import unquoted
from contracts.metrics import HANDLED, HANDLING, IN_FLIGHT
from contracts.parts import Json
from contracts.requests import Refusal, Requests, refusal
from contracts.settings import ACK_WAIT, ServiceSettings
from contracts.stops import stop
from contracts.subjects import RunKey
from contracts.topology import HEARS_DEAD, OPENS
from contracts.tracing import headers, span

logger = structlog.get_logger()

Handler = Callable[[Event], Awaitable[object]]
Answer = Callable[[Json], Awaitable[Json]]

GIVE_UP_AFTER = 8  # deliveries
IN_PROGRESS_EVERY = 0.3  # of the time that the broker waits for a sign of life
TAKEN_AT_ONCE = 512
# Seconds. Who answers may just be starting, and what reached nobody can be asked again.
NOBODY_THERE = 2.0
# Characters. A dead letter has to fit into a message, escaped; what is longer stays where `sequence` finds it.
LONGEST_QUOTE = 200_000


@dataclass(slots=True)
class _InHand:
    """A message from its receipt on, as it was delivered last, and when the broker was last told that it is in hand."""

    message: Msg
    told: float


class Bus:
    """A service's connection: what it hears, asks, answers and says outside the log."""

    def __init__(
        self, nc: Client, service: str, outages: tuple[type[Exception], ...] = (), ack_wait: float = ACK_WAIT
    ) -> None:
        self.nc = nc
        self.service = service
        self.on_error: list[Callable[[Exception], None]] = []
        self.refused: list[Refusal] = []
        self._outages: tuple[type[Exception], ...] = (Outage, *outages)
        self._ack_wait = ack_wait
        self._in_hand: dict[tuple[str, int], _InHand] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Any] = []
        self._room = asyncio.Semaphore(TAKEN_AT_ONCE)
        self._ticker: asyncio.Task[None] | None = None
        self._requests = Requests(nc)
        self.on_error.append(self._requests.on_error)
        # Of the runs' personal data, where this service may see it.
        self.keys: KeyRing | None = None
        if service in OPENS:
            store = JetStreamKeys(nc)
            self.on_error.append(store.on_error)
            self.keys = KeyRing(store)

    @classmethod
    async def connect(cls, settings: ServiceSettings, service: str, outages: tuple[type[Exception], ...] = ()) -> "Bus":
        """A connection that reconnects for ever. `outages` are the exceptions that mean a dependency is away."""
        nc = Client()
        bus = cls(nc, service, outages, settings.ack_wait)

        async def failed(error: Exception) -> None:
            for callback in bus.on_error:
                callback(error)
            if refused := refusal(error):
                bus.refused.append(refused)
                logger.error("refused", error=str(refused))
            else:
                logger.warning("broker", error=str(error))

        await connection.connect(
            settings,
            nc,
            name=service,
            inbox_prefix=f"_INBOX_{service}".encode(),
            error_cb=failed,
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,  # seconds; the client takes fractions
            ping_interval=10,
            pending_size=64 * 1024 * 1024,
        )
        return bus

    @property
    def connected(self) -> bool:
        return self.nc.is_connected

    async def settled(self) -> None:
        """Returns once the broker knows what this service hears and answers. Raises Forbidden where it may not."""
        await connection.settle(self.nc)
        for refused in self.refused:
            if refused.listening:
                raise Forbidden(str(refused))

    # Hearing

    async def hear(self, handler: Handler) -> None:
        """Gives each fact of the service's durable consumer to `handler`, many at once, until it is dealt with."""
        known = self.keys.known if self.keys else events.no_key

        def decode(message: Msg) -> Event:
            return events.read(message.subject, message.metadata.sequence.stream, message.data, known)

        async def hear(event: Event) -> object:
            if event.personal == "sealed" and self.keys is not None:
                event = events.opened(event, await self.keys.of(event.key))
            return await handler(event)

        await self._take(f"deliver.{self.service}", decode, hear)

    async def hear_tenants(self, handler: Handler) -> None:
        """Gives each fact of the tenants' own lines that the service has a durable consumer for to `handler`."""
        await self._take(f"deliver.tenant.{self.service}", _event, handler)

    async def hear_timers(self, handler: Callable[[Json], Awaitable[object]]) -> None:
        """Gives each timer of this service that falls due to `handler`, as the body that it was set with."""
        await self._take(f"deliver.timer.{self.service}", lambda message: json.loads(message.data), handler)

    async def hear_dead(self, handler: Callable[[Json], Awaitable[object]]) -> None:
        """Gives each dead letter to `handler`: {"service", "subject", "sequence", "error", "event"}."""
        await self._take(f"deliver.dead.{self.service}", lambda message: json.loads(message.data), handler)

    async def _take(
        self, subject: str, decode: Callable[[Msg], Any], handler: Callable[[Any], Awaitable[object]]
    ) -> None:
        async def arrived(message: Msg) -> None:
            about = message.metadata
            key = (about.stream, about.sequence.stream)
            if (known := self._in_hand.get(key)) is not None:
                known.message = message  # delivered again (the broker was away, say) while it is still being handled
                return
            self._in_hand[key] = _InHand(message, time.monotonic())
            task = asyncio.get_running_loop().create_task(self._deal_with(key, decode, handler))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._subscriptions.append(
            await self.nc.subscribe(subject, queue=self.service, cb=arrived, pending_msgs_limit=-1)
        )
        if self._ticker is None:
            self._ticker = asyncio.create_task(self._keep_alive())

    async def _deal_with(
        self, key: tuple[str, int], decode: Callable[[Msg], Any], handler: Callable[[Any], Awaitable[object]]
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
            if event is not None:
                structlog.contextvars.bind_contextvars(
                    tenant=event.key.tenant, run=event.key.run, turn=getattr(event.fact, "turn", None), fact=kind
                )
            elif {"tenant", "run"} <= heard.keys():
                structlog.contextvars.bind_contextvars(tenant=heard["tenant"], run=heard["run"], fact=kind)
            with span(f"{self.service} hears {kind}", event, message.headers):
                async with self._room:
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

    async def _until_no_outage(self, handler: Callable[[Any], Awaitable[object]], heard: Any) -> None:
        """An outage is waited out with the message in hand: it is nobody's fault and counts for nothing."""
        wait = 0.05
        while True:
            try:
                await handler(heard)
                return
            except self._outages as error:
                logger.warning("outage", error=repr(error), again_in=round(wait, 2))
                await asyncio.sleep(wait * random.uniform(0.75, 1.25))  # noqa: S311 - spreads retries
                wait = min(wait * 2, 2.0)

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

    # Asking and answering

    async def answer(self, subject: str, handler: Answer) -> None:
        """Answers requests, each in a task of its own. An exception becomes a 500 that names no internals."""

        async def deal(message: Msg) -> None:
            try:
                with span(f"{self.service} answers {subject}", came_with=message.headers):
                    body = await handler(json.loads(message.data))
            except self._outages:
                body = {
                    "status": 503,
                    "title": "Not now",
                    "detail": "A dependency is away. Whether it was done is not known; ask the same again.",
                }
            except Exception:
                logger.exception("request failed", subject=subject)
                body = {
                    "status": 500,
                    "title": "Our fault",
                    "detail": "Something went wrong here; the log file has the cause. Look whether it was done.",
                }
            with suppress(nats.errors.Error, OSError):
                await message.respond(json.dumps(body).encode())

        async def arrived(message: Msg) -> None:
            task = asyncio.get_running_loop().create_task(deal(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._subscriptions.append(await self.nc.subscribe(subject, queue=self.service, cb=arrived))

    async def ask(self, subject: str, body: Json, timeout: float = 10.0, about: Event | None = None) -> Json:
        """Another service's answer; `about` is the fact that the question goes back to. Raises Outage if nobody gives
        one in `timeout` seconds, and Forbidden where the broker lets this service not ask."""
        nobody_until = time.monotonic() + min(NOBODY_THERE, timeout)
        while True:
            try:
                with span(f"{self.service} asks {subject}", about):
                    reply = await self._requests.ask(
                        subject, json.dumps(body).encode(), timeout=timeout, headers=headers() or None
                    )
            except nats.errors.NoRespondersError as error:
                if time.monotonic() > nobody_until:
                    raise Outage(f"Nobody is there who answers {subject}.") from error
                await asyncio.sleep(0.05)
            except (nats.errors.Error, OSError) as error:
                raise Outage(f"Nobody answered {subject}: {error!r}") from error
            else:
                answer: Json = json.loads(reply.data)
                return answer

    # Saying outside the log

    async def live(self, key: RunKey, body: Json) -> None:
        """Text of a running model call: heard by whoever listens now, and forgotten."""
        await self.nc.publish(subjects.live(key), json.dumps(body).encode())

    @asynccontextmanager
    async def hear_live(self, key: RunKey, handler: Callable[[Json], object]) -> AsyncIterator[None]:
        """Gives the text of a run's model calls to `handler` for as long as the block lasts; the first words may be
        missed. What nobody listens to is sent to no one."""

        async def arrived(message: Msg) -> None:
            handler(json.loads(message.data))

        subscription = await self.nc.subscribe(subjects.live(key), cb=arrived)
        try:
            yield
        finally:
            with suppress(nats.errors.Error, OSError):
                await subscription.unsubscribe()

    async def set_timer(self, name: str, at: datetime, body: Json) -> None:
        """Has `body` delivered to this service's `hear_timers` at a time. The same name set again replaces it."""
        schedule = {
            "Nats-Schedule": f"@at {at.isoformat().replace('+00:00', 'Z')}",
            "Nats-Schedule-Target": f"timer.due.{self.service}.{name}",
            **headers(),
        }
        try:
            reply = await self._requests.ask(
                f"timer.set.{self.service}.{name}", json.dumps(body).encode(), headers=schedule, timeout=5
            )
        except (nats.errors.Error, OSError) as error:
            raise Outage(f"The timer {name} was not set: {error!r}") from error
        if "error" in (answer := json.loads(reply.data)):
            raise RuntimeError(f"The timer {name} was not set: {answer['error']}")

    async def close(self, grace: float = 3.0) -> None:
        """Stops taking, gives what is in hand a moment, then goes; what is left is heard by another worker."""
        for subscription in self._subscriptions:
            with suppress(Exception):
                await subscription.unsubscribe()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace)
        for task in [*self._tasks, *([self._ticker] if self._ticker else [])]:
            task.cancel()
        with suppress(Exception):
            await self.nc.close()


def _event(message: Msg) -> Event:
    return events.read(message.subject, message.metadata.sequence.stream, message.data)


def _kind(subject: str) -> str:
    """What sort of message it is: the fact of a run; for timers and dead letters not which one."""
    tokens = subject.split(".")
    return ".".join(tokens[-2:] if tokens[0] in ("run", "tenant") else tokens[:2])
