"""Server-sent events: how frames are written, how a stream is kept alive, and where it goes on."""

import json
from typing import Any

from fastapi import Request

from gateway.problems import Problem

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
