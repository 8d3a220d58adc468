"""Sign-ins: which have ended, in whichever process of the gateway, and the streams that end with them, at once."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog
from contracts.identity import Principal
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.signed_out import SignedOut

if TYPE_CHECKING:
    from gateway.access import Streams

logger = structlog.get_logger()


def session_of(principal: Principal) -> str:
    """Names one sign-in, so that a page's streams are never those of who was signed in before."""
    this_one = principal.token_id or principal.expires_at.isoformat()
    person = (principal.issuer, principal.tenant, principal.subject, this_one)
    return hashlib.sha256("\n".join(person).encode()).hexdigest()[:16]


class Sessions:
    """A sign-in ends when its token does, or before that when its person signs out."""

    def __init__(self, kept: SignedOut) -> None:
        self._kept = kept
        self._ended: dict[str, datetime] = {}
        self._streams: dict[str, set[asyncio.Timeout]] = defaultdict(set)

    async def load(self) -> None:
        """Learns which were ended before this process was there."""
        self._end(await self._kept.all())

    async def run(self) -> None:
        """Learns which other processes end, for ever, whatever goes wrong; what ended meanwhile is learnt then."""
        while True:
            try:
                async for ended in self._kept.follow():
                    self._end(ended)
            except Exception:
                logger.exception("sign-outs of other processes are not heard")
                await asyncio.sleep(0.5)

    async def end(self, principal: Principal) -> None:
        """From now on the token opens nothing, and what it has opened is closed: here at once, in other processes in a
        moment. Raises psycopg's OperationalError where only this process will know."""
        session = session_of(principal)
        self._end({session: principal.expires_at})
        await self._kept.add(session, principal.expires_at)

    def _end(self, ended: dict[str, datetime]) -> None:
        now = datetime.now(UTC)
        fresh = ended.keys() - self._ended.keys()
        self._ended = {session: until for session, until in (self._ended | ended).items() if until > now}
        for session in fresh:
            for stream in self._streams.get(session, ()):
                stream.reschedule(asyncio.get_running_loop().time())

    def ended(self, principal: Principal) -> bool:
        return session_of(principal) in self._ended

    async def until_ended(self, frames: AsyncIterator[bytes], principal: Principal) -> AsyncGenerator[bytes]:
        """The frames until the sign-in is over. Who is told so in the very moment in which something else has come may
        miss it (`asyncio.wait_for` of Python 3.11 does), so each frame is looked at."""
        async for frame in frames:
            if self.ended(principal) or principal.expires_at <= datetime.now(UTC):
                return
            yield frame

    @asynccontextmanager
    async def while_signed_in(self, principal: Principal) -> AsyncIterator[None]:
        """Raises a TimeoutError inside once the person has signed out or their token has expired."""
        session = session_of(principal)
        left = 0.0 if self.ended(principal) else (principal.expires_at - datetime.now(UTC)).total_seconds()
        async with asyncio.timeout(left) as stream:
            self._streams[session].add(stream)
            try:
                yield
            finally:
                self._streams[session].discard(stream)
                if not self._streams[session]:
                    del self._streams[session]


class SignedInStream(StreamingResponse):
    """A stream for one person, which ends as their sign-in does, and counts as theirs before it is answered."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes],
        sessions: Sessions,
        streams: "Streams",
        principal: Principal,
        headers: dict[str, str],
    ):
        self._frames = frames
        super().__init__(sessions.until_ended(frames, principal), media_type="text/event-stream", headers=headers)
        self._sessions = sessions
        self._streams = streams
        self._principal = principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._streams.one_more(self._principal):
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        try:
            async with self._sessions.while_signed_in(self._principal), aclosing(self._frames):
                await super().stream_response(send)
        except TimeoutError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
