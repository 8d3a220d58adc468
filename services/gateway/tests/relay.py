"""A connection in between that can hang: it still takes connections, and nothing comes through."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Relay:
    def __init__(self, to: int) -> None:
        self._to = to
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self.server: asyncio.Server

    @property
    def port(self) -> int:
        return int(self.server.sockets[0].getsockname()[1])

    def hang(self) -> None:
        self._flows.clear()

    def go_on(self) -> None:
        self._flows.set()

    async def cut(self) -> None:
        """Ends what there is and takes nothing new."""
        self.server.close()
        for writer in self._writers:
            writer.close()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.CancelledError):
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._to)
            self._writers.add(there_writer)
            await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                await self._flows.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relayed(to: int) -> AsyncIterator[Relay]:
    """One on a port of its own before the given port of this machine."""
    relay = Relay(to)
    relay.server = await asyncio.start_server(relay.take, "127.0.0.1", 0)
    try:
        yield relay
    finally:
        relay.go_on()
        await relay.cut()
