"""`POST /v1/messages`: a conversation in, an answer out, or what a script wants to go wrong."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable

from starlette.types import Message, Receive, Scope, Send

from standin import agent, bench
from standin import request as requests
from standin.answer import name
from standin.errors import TYPES, ApiError
from standin.reply import Reply
from standin.script import Line
from standin.stage import Stage
from standin.wire import Event, broken_off, failed, streamed, whole

MAX_BODY = 32 * 1024 * 1024
SSE = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
JSON = {"content-type": "application/json"}


class Messages:
    """The endpoint, written to ASGI itself, as a benchmark pays for every layer."""

    def __init__(self, stage: Stage, pace_ms: float) -> None:
        self._stage = stage
        self._pace_ms = pace_ms
        self._answered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._answered += 1
        request_id = name("req", self._answered.to_bytes(8, "big"))
        reply = Reply(send, request_id)
        try:
            authenticate(scope)
            body = await _body(scope, receive)
            request = requests.read(body)
            line = await self._stage.heard(request, body)
            seed = hashlib.blake2b(body, digest_size=16).digest()
            if line is None:
                await self._say(self._unscripted(request), request, seed, reply)
            else:
                await _unless_gone(receive, self._act(line, request, seed, reply))
        except ApiError as error:
            if reply.started:
                await reply.end(failed(error.type, error.message).encode())
            else:
                text = json.dumps(error.body(request_id)).encode()
                await reply.whole(text, error.status, {**JSON, **error.headers()})

    def _unscripted(self, request: requests.Request) -> Line:
        turns = bench.turns(request)
        if turns is not None:
            return Line(bench.answer(request, turns), pace_ms=0, in_pieces=False)
        return Line(agent.answer(request.messages, request.tools))

    async def _act(self, line: Line, request: requests.Request, seed: bytes, reply: Reply) -> None:
        if line.gate:
            await self._stage.gate(line.gate).wait()
        if line.delay_ms:
            await asyncio.sleep(line.delay_ms / 1000)
        if line.fault and line.fault.status:
            raise ApiError(line.fault.status, line.fault.message, retry_after=line.fault.retry_after)
        await self._say(line, request, seed, reply)

    async def _say(self, line: Line, request: requests.Request, seed: bytes, reply: Reply) -> None:
        answer = line.answer.within(request.max_tokens)
        if not request.stream:
            text = whole(answer, request, seed)
            if line.fault and line.fault.error:
                raise ApiError(_status(line.fault.error), line.fault.message)
            if line.fault and line.fault.cut:
                await reply.part(text[: len(text) // 2], JSON)
                return
            await reply.whole(text, 200, JSON)
            return
        events = list(streamed(answer, request, seed, in_pieces=line.in_pieces))
        if line.fault and (line.fault.cut or line.fault.error):
            events = broken_off(events)
            if line.fault.error:
                message = ApiError(_status(line.fault.error), line.fault.message).message
                events.append(failed(line.fault.error, message))
        pace_ms = self._pace_ms if line.pace_ms is None else line.pace_ms
        async for part in _paced(events, pace_ms):
            await reply.part(part, SSE)
        if not (line.fault and line.fault.cut == "connection"):
            await reply.end()


async def _paced(events: list[Event], pace_ms: float) -> AsyncIterator[bytes]:
    """The events' bytes: in one piece without a pace, else each piece of text after its pause."""
    if not pace_ms:
        yield b"".join(event.encode() for event in events)
        return
    for event in events:
        if event.pace:
            await asyncio.sleep(pace_ms / 1000)
        yield event.encode()


def authenticate(scope: Scope) -> None:
    """Any key will do but an empty one and those that begin with `invalid`."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    key = headers.get(b"x-api-key") or headers.get(b"authorization", b"").removeprefix(b"Bearer ")
    if not key:
        raise ApiError(401, "x-api-key header is required")
    if key.startswith(b"invalid"):
        raise ApiError(401)
    if b"anthropic-version" not in headers:
        raise ApiError(400, "anthropic-version: header is required")


async def _body(scope: Scope, receive: Receive) -> bytes:
    """The whole body, however it was sent. A caller who leaves half-way is answered 400 that nobody reads."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ApiError(400, "The request body is incomplete")
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise ApiError(413)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _unless_gone(receive: Receive, acting: Awaitable[None]) -> None:
    """Acts, but stops once the caller has left: a scripted wait must not outlive who waits for it."""
    act = asyncio.ensure_future(acting)
    gone: asyncio.Future[Message] = asyncio.ensure_future(receive())
    try:
        await asyncio.wait((act, gone), return_when=asyncio.FIRST_COMPLETED)
        if act.done():
            await act
    finally:
        for task in (act, gone):
            task.cancel()


def _status(error_type: str) -> int:
    """The status that goes with an error's type."""
    return next((status for status, kind in TYPES.items() if kind == error_type), 500)
