"""The bus: a service's one connection, with all that it hears, asks, answers and says outside the log."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Any

import nats
import nats.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import TypeAdapter

from contracts import connection, events, subjects
from contracts.answers import No
from contracts.datakeys import JetStreamKeys, KeyRing
from contracts.errors import Forbidden, Outage
from contracts.events import Event
from contracts.hearing import Hearing
from contracts.model_wait import ModelWait
from contracts.parts import Json
from contracts.requests import Refusal, Requests, refusal
from contracts.settings import ACK_WAIT, ServiceSettings
from contracts.strict import AMBIGUOUS, Ambiguous, parse_json
from contracts.subjects import RunKey
from contracts.topology import OPENS
from contracts.tracing import headers, span
from contracts.writability import Writability

logger = structlog.get_logger()

WAIT: TypeAdapter[ModelWait | None] = TypeAdapter(ModelWait | None)
Handler = Callable[[Event], Awaitable[object]]
Answer = Callable[[Json], Awaitable[Json]]

# Seconds. Who answers may just be starting, and what reached nobody can be asked again.
NOBODY_THERE = 2.0
AWAY = No(503, "Not now", "A dependency is away. Whether it was done is not known; ask the same again.")
OUR_FAULT = No(500, "Our fault", "Something went wrong here; the log file has the cause. Look whether it was done.")


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
        self._requests = Requests(nc)
        self._hearing = Hearing(nc, service, self._requests, self._outages, ack_wait)
        # What whoever asks whether the service is ready is told besides: lines, none where all is well.
        self.conditions: list[Callable[[], list[str]]] = []
        # Lines that the service has beside its own, each on a connection of its own.
        self.beside: list[Bus] = []
        self._answering: set[asyncio.Task[None]] = set()
        self._subscriptions: list[Any] = []
        self.on_error.append(self._requests.on_error)
        self.writability = Writability()
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
        return self.nc.is_connected and all(other.connected for other in self.beside)

    @property
    def ready(self) -> bool:
        """Whether messages can be taken, and what comes of them can be appended."""
        return self.connected and self.writability.trouble is None

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

        await self._hearing.take(f"deliver.{self.service}", decode, hear)

    async def hear_tenants(self, handler: Handler) -> None:
        """Gives each fact of the tenants' own lines that the service has a durable consumer for to `handler`."""
        await self._hearing.take(f"deliver.tenant.{self.service}", _event, handler)

    async def hear_timers(self, handler: Callable[[Json], Awaitable[object]]) -> None:
        """Gives each timer of this service that falls due to `handler`, as the body that it was set with."""
        await self._hearing.take(f"deliver.timer.{self.service}", lambda message: json.loads(message.data), handler)

    async def hear_dead(self, handler: Callable[[Json], Awaitable[object]]) -> None:
        """Gives each dead letter to `handler`: {"service", "subject", "sequence", "error", "event"}."""
        await self._hearing.take(f"deliver.dead.{self.service}", lambda message: json.loads(message.data), handler)

    # Asking and answering

    async def answer(self, subject: str, handler: Answer) -> None:
        """Answers requests, each in a task of its own. An exception becomes a 500 that names no internals."""

        async def deal(message: Msg) -> None:
            try:
                with span(f"{self.service} answers {subject}", came_with=message.headers):
                    body = await handler(parse_json(message.data))
            except Ambiguous as error:
                body = No(400, AMBIGUOUS, f"Nothing was done: {error}.").on_the_wire()
            except self._outages:
                body = AWAY.on_the_wire()
            except Exception:
                logger.exception("request failed", subject=subject)
                body = OUR_FAULT.on_the_wire()
            with suppress(nats.errors.Error, OSError):
                await message.respond(json.dumps(body).encode())

        async def arrived(message: Msg) -> None:
            task = asyncio.get_running_loop().create_task(deal(message))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)

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

    async def send_model_wait(self, key: RunKey, wait: ModelWait | None) -> None:
        """That a run waits for its model, or with None that it does no more: for whoever listens now."""
        await self.nc.publish(subjects.model_wait(key), wait.model_dump_json().encode() if wait else b"null")

    async def hear_model_waits(self, handler: Callable[[RunKey, ModelWait | None], object]) -> None:
        """Gives what is said of runs that wait for their model to `handler`, for as long as the connection lasts."""

        async def arrived(message: Msg) -> None:
            with suppress(ValueError):
                wait = WAIT.validate_json(message.data)
                handler(subjects.waiting_run(message.subject), wait)

        self._subscriptions.append(await self.nc.subscribe(subjects.MODEL_WAITS, cb=arrived))

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

    async def stop_taking(self, grace: float = 3.0) -> None:
        """Hears and answers nothing more, and gives what is in hand a moment; what is left is heard by another worker.

        Asking and saying go on."""
        for subscription in self._subscriptions:
            with suppress(Exception):
                await subscription.unsubscribe()
        answered = asyncio.wait(self._answering, timeout=grace) if self._answering else asyncio.sleep(0)
        await asyncio.gather(self._hearing.close(grace), answered)
        for task in self._answering:
            task.cancel()

    async def close(self, grace: float = 3.0) -> None:
        """Stops taking, then goes."""
        await self.stop_taking(grace)
        with suppress(Exception):
            await self.nc.close()


def _event(message: Msg) -> Event:
    return events.read(message.subject, message.metadata.sequence.stream, message.data)
