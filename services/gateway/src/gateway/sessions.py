"""Sign-ins as this process knows them: which have ended, and the streams that end with them, at once."""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from contracts.identity import Principal
from fastapi.responses import StreamingResponse
from starlette.types import Send


def session_of(principal: Principal) -> str:
    """Names one sign-in, so that a page's streams are never those of who was signed in before."""
    this_one = principal.token_id or principal.expires_at.isoformat()
    person = (principal.issuer, principal.tenant, principal.subject, this_one)
    return hashlib.sha256("\n".join(person).encode()).hexdigest()[:16]


class Sessions:
    """A sign-in ends when its token does, or before that when its person signs out."""

    def __init__(self) -> None:
        self._ended: dict[str, datetime] = {}
        self._streams: dict[str, set[asyncio.Timeout]] = defaultdict(set)

    def end(self, principal: Principal) -> None:
        """From now on the token opens nothing here, and what it has opened is closed."""
        now = datetime.now(UTC)
        self._ended = {session: until for session, until in self._ended.items() if until > now}
        session = session_of(principal)
        self._ended[session] = principal.expires_at
        for stream in self._streams.get(session, ()):
            stream.reschedule(asyncio.get_running_loop().time())

    def ended(self, principal: Principal) -> bool:
        return session_of(principal) in self._ended

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
    """A stream for one person, which ends as their sign-in does."""

    def __init__(self, frames: AsyncIterator[bytes], sessions: Sessions, principal: Principal, headers: dict[str, str]):
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        self._sessions = sessions
        self._principal = principal

    async def stream_response(self, send: Send) -> None:
        try:
            async with self._sessions.while_signed_in(self._principal), aclosing(self.body_iterator):  # type: ignore[type-var]
                await super().stream_response(send)
        except TimeoutError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
