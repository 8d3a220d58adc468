"""Who is told, on this machine: an HTTP receiver and a mail server that can be slow, refuse, be away and come back."""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from typing import Any

from aiosmtpd.controller import Controller
from contracts.parts import Json

Reply = tuple[int, dict[str, str]]


@dataclass
class Got:
    """One request, as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        document: Json = json.loads(self.body)
        return document


@dataclass
class Receiver:
    """Answers every request with `reply`, a silent one once it speaks. `got` is all that came."""

    port: int = 0
    reply: Callable[[int], Reply] = lambda _: (200, {})
    silent: bool = False
    tls: ssl.SSLContext | None = None
    got: list[Got] = field(default_factory=list)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    _spoken: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def speak(self) -> None:
        self._spoken.set()

    async def stop(self) -> None:
        self.speak()
        if self._server is not None:
            self._server.close()
            self._server = None

    async def until(self, count: int, within: float = 20) -> list[Got]:
        """What came, once so many have."""
        async with asyncio.timeout(within), self._arrived:
            await self._arrived.wait_for(lambda: len(self.got) >= count)
        return self.got

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            number = len(self.got)
            self.got.append(Got(head[0].split()[1], headers, body))
            async with self._arrived:
                self._arrived.notify_all()
            if self.silent:
                await self._spoken.wait()
            status, more = self.reply(number)
            lines = [f"HTTP/1.1 {status} X", "content-length: 0", *(f"{k}: {v}" for k, v in more.items())]
            writer.write("\r\n".join([*lines, "", ""]).encode())
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def receiver(**more: Any) -> AsyncIterator[Receiver]:
    one = Receiver(**more)
    await one.start()
    try:
        yield one
    finally:
        await one.stop()


class Mailbox:
    """A handler of aiosmtpd: keeps what it takes, and refuses the first `refusals` messages.

    recipients: what is answered to each of these, time after time, the last for ever; "" hangs up.
    as_a_whole: what is answered to a message that any of these would get, once the text has been sent.
    """

    def __init__(
        self,
        refusals: int = 0,
        recipients: dict[str, list[str]] | None = None,
        as_a_whole: dict[str, str] | None = None,
        sender: str = "250 OK",
    ) -> None:
        self.refusals, self.recipients, self.as_a_whole, self.sender = refusals, recipients or {}, as_a_whole, sender
        self.asked: Counter[str] = Counter()
        self.got: asyncio.Queue[tuple[list[str], Message]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    async def handle_MAIL(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        envelope.mail_from = address
        return self.sender

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: list[str]) -> str:
        replies = self.recipients.get(address, ["250 OK"])
        reply = replies[min(self.asked[address], len(replies) - 1)]
        self.asked[address] += 1
        if not reply:
            server.transport.close()
        if reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return reply or "421 Closing"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refusals > 0:
            self.refusals -= 1
            return "451 Try again later"
        for recipient, reply in (self.as_a_whole or {}).items():
            if recipient in envelope.rcpt_tos:
                return reply
        told = (list(envelope.rcpt_tos), message_from_bytes(envelope.content))
        self._loop.call_soon_threadsafe(self.got.put_nowait, told)
        return "250 Taken"

    async def next(self) -> tuple[list[str], Message]:
        return await asyncio.wait_for(self.got.get(), 20)

    def rest(self) -> list[list[str]]:
        """To whom else anything has come by now."""
        return [self.got.get_nowait()[0] for _ in range(self.got.qsize())]


@asynccontextmanager
async def mail_server(mailbox: Mailbox, port: int) -> AsyncIterator[int]:
    controller = Controller(mailbox, hostname="127.0.0.1", port=port)
    await asyncio.to_thread(controller.start)
    try:
        yield controller.port
    finally:
        await asyncio.to_thread(controller.stop)
