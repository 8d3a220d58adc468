"""One HTTP response, sent as it comes."""

from starlette.types import Send


class Reply:
    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.started = False

    async def whole(self, body: bytes, status: int, headers: dict[str, str]) -> None:
        await self._start(status, {**headers, "content-length": str(len(body))})
        await self._send({"type": "http.response.body", "body": body})

    async def part(self, body: bytes, headers: dict[str, str]) -> None:
        if not self.started:
            await self._start(200, headers)
        await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self, body: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        self.started = True
        raw = [(key.encode(), value.encode()) for key, value in headers.items()]
        raw.append((b"request-id", self._request_id.encode()))
        await self._send({"type": "http.response.start", "status": status, "headers": raw})
