"""A relay between a client and PostgreSQL, which counts how often the client waits for the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

_SYNC, _QUERY = b"S", b"Q"


class Relay:
    """`dsn` leads through it. `round_trips` counts the messages that ask the server to answer."""

    def __init__(self, dsn: str) -> None:
        self._target = urlsplit(dsn)
        self.round_trips = 0
        self.dsn = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, onward = await asyncio.open_connection(self._target.hostname, self._target.port)
        await asyncio.gather(self._count(reader, onward), _hand_on(there, writer))

    async def _count(self, reader: asyncio.StreamReader, onward: asyncio.StreamWriter) -> None:
        """The first message of a connection has no kind, only its length."""
        kind = b""
        try:
            while True:
                length = await reader.readexactly(4)
                onward.write(kind + length + await reader.readexactly(int.from_bytes(length, "big") - 4))
                self.round_trips += kind in (_SYNC, _QUERY)
                kind = await reader.readexactly(1)
        except asyncio.IncompleteReadError:
            onward.close()


async def _hand_on(there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await there.read(65536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def relay(dsn: str) -> AsyncIterator[Relay]:
    one = Relay(dsn)
    server = await asyncio.start_server(one.serve, "127.0.0.1", 0)
    parts = urlsplit(dsn)
    account = parts.netloc.rpartition("@")[0]
    port = server.sockets[0].getsockname()[1]
    one.dsn = urlunsplit(parts._replace(netloc=f"{account}@127.0.0.1:{port}", query="sslmode=disable"))
    try:
        yield one
    finally:
        server.close()
