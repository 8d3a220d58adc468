"""Streams as answers: for as long as their reader is signed in, alive while they are silent, ended by an outage."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import psycopg
import structlog
from contracts.errors import Outage
from contracts.identity import Principal
from fastapi.responses import Response

from gateway.feed import with_pauses
from gateway.ports import Gateway
from gateway.sessions import SignedInStream
from gateway.sse import HEADERS, HEARTBEAT

logger = structlog.get_logger()


def respond(ports: Gateway, frames: AsyncGenerator[bytes], asker: Principal, heartbeat: bytes = HEARTBEAT) -> Response:
    """A stream for one person, for as long as they are signed in, with a heartbeat whenever it has nothing to send.
    Answered with a 429 where it is one too many."""
    return SignedInStream(
        _until_outage(_beating(ports, frames, heartbeat)), ports.sessions, ports.streams, asker, HEADERS
    )


async def _beating(ports: Gateway, frames: AsyncGenerator[bytes], heartbeat: bytes) -> AsyncGenerator[bytes]:
    """Without the broker nothing would come, whatever happened: then there is no heartbeat, and the page is stale."""
    async with aclosing(with_pauses(frames, ports.settings.heartbeat_seconds)) as alive:
        async for one in alive:
            if one is not None:
                yield one
            elif ports.connected():
                yield heartbeat


async def _until_outage(frames: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """An outage ends the stream; the client comes back and goes on where it was."""
    try:
        async with aclosing(frames):
            async for one in frames:
                yield one
    except (Outage, psycopg.OperationalError) as error:
        logger.warning("stream ended by an outage", error=repr(error))
