"""An endpoint that is only nearly the Messages API: it answers what a test gives it, byte by byte, over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from contracts.parts import Json

SSE = "text/event-stream; charset=utf-8"


class Endpoint:
    """`bodies` are its answers, the last one again and again; `asked` are the requests that it got."""

    def __init__(self, *bodies: bytes, content_type: str = SSE) -> None:
        self.bodies = list(bodies)
        self.content_type = content_type
        self.asked: list[Json] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = [int(h.split(b":")[1]) for h in head.lower().splitlines() if h.startswith(b"content-length:")]
            self.asked.append(json.loads(await reader.readexactly(length)))
            body = self.bodies.pop(0) if len(self.bodies) > 1 else self.bodies[0]
            how = f"HTTP/1.1 200 OK\r\ncontent-type: {self.content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
            writer.write(how.encode() + body)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def endpoint(*bodies: bytes, content_type: str = SSE) -> AsyncIterator[Endpoint]:
    found = Endpoint(*bodies, content_type=content_type)
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield found


def sse(events: Iterable[Any]) -> bytes:
    """Events as the API writes them; what is bytes already is a line of its own."""
    return b"".join(
        event if isinstance(event, bytes) else f"event: {_kind(event)}\ndata: {json.dumps(event)}\n\n".encode()
        for event in events
    )


def _kind(event: Any) -> str:
    kind = event.get("type") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) and kind.isascii() and kind.isprintable() else "message"


def text_answer(text: str = "Your parcel is on its way.") -> list[Json]:
    """An answer as it should be."""
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    ]


def call_answer(
    call_id: str = "toolu_1", name: str = "get_order", pieces: str = '{"order_reference":"ORD-1"}'
) -> list[Json]:
    """A turn of one call as it should be."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": pieces}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 12}},
        {"type": "message_stop"},
    ]
