"""A nats-server that a test may kill, connections with each user's rights, and a wire that can be cut."""

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from typing import Self

import pytest
from contracts import setup
from contracts.bus import Bus
from contracts.log import EVERYTHING, JetStreamLog
from contracts.settings import ACK_WAIT, ServiceSettings
from nats.aio.client import Client
from turngate.embedded.nats import SETUP
from turngate.testing import NatsAccess

# What is waited for comes within milliseconds on an idle machine; this is for a busy one.
SOON = 30.0

own_server = pytest.mark.skipif(
    "NATS_URL" in os.environ, reason="NATS_URL names a server that this test may neither stop nor ask for its users"
)


class House:
    """Connections to one server, by the name of the user that opens them."""

    def __init__(self, access: NatsAccess, url: str | None = None) -> None:
        self.access = access
        self.url = url or access.url
        self._stack = AsyncExitStack()
        self._ack_wait = ACK_WAIT

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def wait_for_acks(self, seconds: float) -> None:
        """Makes the broker and the workers that connect from now on wait so long for a sign of life."""
        self._ack_wait = seconds
        await setup.create_streams(self.access.url, *self.access.user(SETUP), ack_wait=seconds)

    async def bus(self, service: str, outages: tuple[type[Exception], ...] = ()) -> Bus:
        user, password = self.access.user(service)
        settings = ServiceSettings.model_validate(
            {
                "nats_url": self.url,
                "nats_user": user or None,
                "nats_password": password or None,
                "ack_wait": self._ack_wait,
            }
        )
        bus = await Bus.connect(settings, service, outages)
        self._stack.push_async_callback(bus.close, 0.1)
        return bus

    async def client(self, user: str) -> Client:
        return (await self.bus(user)).nc

    async def log(self, user: str = SETUP, reads: frozenset[str] = EVERYTHING, timeout: float = 5.0) -> JetStreamLog:
        """A log with a memory of its own, as another process has it."""
        bus = await self.bus(user)
        log = JetStreamLog(bus.nc, reads, timeout=timeout)
        bus.on_error.append(log.on_error)
        return log


class Wire:
    """A TCP connection's way to the server, on which answers can be held back: what was asked is done, unheard."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._answers = asyncio.Event()
        self._answers.set()
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listener.close()
        self.cut()
        for pipe in self._pipes:
            pipe.cancel()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def hold_answers(self) -> None:
        self._answers.clear()

    def let_answers_through(self) -> None:
        self._answers.set()

    def cut(self) -> None:
        """Ends every connection; what was held back is lost."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers |= {writer, to_server}
        for pipe in (self._pipe(reader, to_server, None), self._pipe(from_server, writer, self._answers)):
            task = asyncio.create_task(pipe)
            self._pipes.add(task)
            task.add_done_callback(self._pipes.discard)

    async def _pipe(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, gate: asyncio.Event | None) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if gate is not None:
                    await gate.wait()
                sink.write(data)
                await sink.drain()
        sink.close()
