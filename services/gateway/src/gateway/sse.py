"""Server-sent events: how frames are written, how a stream is kept alive, and where it goes on."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import psycopg
import structlog
from contracts.errors import Outage
from contracts.identity import Principal
from fastapi import Request
from fastapi.responses import Response

from gateway.access import Streams
from gateway.problems import Problem
from gateway.sessions import Sessions, SignedInStream

logger = structlog.get_logger()
HEARTBEAT = b": still here\n\n"
RETRY = b"retry: 1000\n\n"
HEADERS = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}


def frame(data: str, *, id: int | None = None, event: str | None = None, retry: int | None = None) -> bytes:
    """One frame. The data's lines are sent as lines, so that no text can end a frame or begin a field."""
    lines = []
    if retry is not None:
        lines.append(f"retry: {retry}")
    if id is not None:
        lines.append(f"id: {id}")
    if event is not None:
        lines.append(f"event: {event}")
    lines += [f"data: {line}" for line in data.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


def data(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def after(request: Request) -> int:
    """Where the client goes on: the larger of `Last-Event-ID` and `?after=`, 0 for neither. Raises a 400."""
    return max(last_event_id(request), _number(request.query_params.get("after")))


def last_event_id(request: Request) -> int:
    """The last event that the client has seen of this very stream, 0 for none. Raises a 400."""
    return _number(request.headers.get("last-event-id"))


def _number(place: str | None) -> int:
    if not place:
        return 0
    if not (place.isascii() and place.isdigit() and len(place) <= 18):
        raise Problem(
            400, "No such place", "Last-Event-ID and `after` are the number of an event. Send none to start over."
        )
    return int(place)


def respond(frames: AsyncGenerator[bytes], sessions: Sessions, streams: Streams, asker: Principal) -> Response:
    """A stream for one person, for as long as they are signed in. Answered with a 429 where it is one too many."""
    return SignedInStream(_until_outage(frames), sessions, streams, asker, HEADERS)


async def _until_outage(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """An outage ends the stream; the client comes back and goes on where it was."""
    try:
        async with aclosing(frames):
            async for one in frames:
                yield one
    except (Outage, psycopg.OperationalError) as error:
        logger.warning("stream ended by an outage", error=repr(error))
