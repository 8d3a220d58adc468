"""The facts themselves: one run's, or all of the tenant's, as JSON or as a stream that can be resumed."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from contracts.events import Event
from contracts.facts import RunTakenOver
from contracts.history import History
from contracts.identity import Principal
from contracts.subjects import RunKey
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from gateway import shapes, sse
from gateway.access import may
from gateway.feed import LOOK
from gateway.ports import Gateway, Ports
from gateway.problems import Problem
from gateway.shown import shown
from gateway.streaming import respond

AT_ONCE = 16  # frames of a stream that are written without letting others have their turn
router = APIRouter(prefix="/v1", tags=["events"])
Reader = Annotated[Principal, Depends(may("read"))]
STREAM = {200: {"content": {"text/event-stream": {}}, "description": "id = the log's sequence, data = a CloudEvent"}}


def not_here() -> Problem:
    return Problem(
        400,
        "No such place",
        "Last-Event-ID names no event of this stream. Send the id that it gave you, or none to start over.",
    )


@router.get("/runs/{run}/events", response_model=shapes.Events, responses=STREAM)  # type: ignore[arg-type]
async def run_events(ports: Ports, asker: Reader, request: Request, run: str) -> Response:
    """JSON, or a stream for `Accept: text/event-stream`, which ends once the run has ended and all of it is told.

    What comes later still, as a payment that was under way, is told to who connects again; who has it all is told the
    end again. A run that a person has taken over goes on being told, for people write in it.
    """
    after = sse.after(request)
    history = await ports.runs.history(asker.tenant, run)
    if (last := sse.last_event_id(request)) and last not in {event.sequence for event in history.events}:
        raise not_here()
    if not wants_stream(request):
        documents = [shown(event, asker) for event in history.events if event.sequence > after]
        return JSONResponse({"events": documents})
    return respond(ports, _of_run(ports, asker, history.key, after), asker)


@router.get("/events", responses=STREAM)  # type: ignore[arg-type]
async def tenant_events(ports: Ports, asker: Reader, request: Request) -> Response:
    """Every fact of the tenant, from `Last-Event-ID` or `?after=` on, and then as they come."""
    after = sse.after(request)
    if (last := sse.last_event_id(request)) and await ports.feed.backlog.tenant_at(last) != asker.tenant:
        raise not_here()
    return respond(ports, _of_tenant(ports, asker, after), asker)


def wants_stream(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


async def _of_run(ports: Gateway, asker: Principal, key: RunKey, after: int) -> AsyncGenerator[bytes]:
    history = await ports.runs.history(key.tenant, key.run)
    end = history.end
    if end is not None and is_over(history, after):
        # Whoever comes back behind the end is told the end again, not left waiting.
        yield ports.feed.frames.of(end, asker)
        return
    ended = end is not None
    yield sse.RETRY
    async with aclosing(ports.feed.of_run(key, after)) as source:
        async for heard in source:
            if LOOK in heard:
                yield sse.HEARTBEAT  # so that who follows looks whether the run still goes on as it did
            for event in heard:
                if isinstance(event, Event):
                    yield ports.feed.frames.of(event, asker)
                    after, ended = event.sequence, ended or event.terminal
            if ended and is_over(await ports.runs.history(key.tenant, key.run), after):
                return


def is_over(history: History, told: int) -> bool:
    """Whether a run has nothing more to tell to who knows it up to `told`: it has ended, and nobody writes in it."""
    end = history.end
    return end is not None and not isinstance(end.fact, RunTakenOver) and told >= history.events[-1].sequence


async def _of_tenant(ports: Gateway, asker: Principal, after: int) -> AsyncGenerator[bytes]:
    yield sse.RETRY
    async with aclosing(ports.feed.batches(after, asker.tenant)) as source:
        async for batch in source:
            # Few at a time: of many who catch up none waits until the others have it all.
            for start in range(0, len(batch), AT_ONCE):
                frames = [ports.feed.frames.of(event, asker) for event in batch[start : start + AT_ONCE]]
                yield b"".join(frames)
                await asyncio.sleep(0)
