"""How a test directs a stand-in: what it is to say, when, and how often it was asked."""

from types import TracebackType
from typing import Any, Self

import httpx


class Director:
    """A client of the stand-in's own calls. Answers are written as `script.py` reads them."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url, timeout=60)

    async def script(self, key: str, answers: list[Any], *, repeat: bool = False) -> None:
        """Fixes the answers of conversations in which `key` occurs; `repeat` says the last one for ever."""
        await self._call("PUT", "/script", json={"key": key, "answers": answers, "repeat": repeat})

    async def clear(self) -> None:
        await self._call("DELETE", "/script")

    async def open(self, gate: str) -> None:
        """Lets the answers through that wait at this gate, and all later ones."""
        await self._call("PUT", f"/gates/{gate}")

    async def asked(self, key: str, *, at_least: int = 0) -> dict[int, int]:
        """How often each step (from 0) was asked for, once it is `at_least` times altogether."""
        answer = await self._call("GET", "/requests", params={"key": key, "at_least": at_least})
        return {row["step"]: row["count"] for row in answer.json()["requests"]}

    async def bodies(self, key: str) -> list[dict[str, Any]]:
        """What was sent in the latest requests of a script, oldest first."""
        answer = await self._call("GET", "/requests", params={"key": key})
        return [row["body"] for row in answer.json()["bodies"]]

    async def _call(self, method: str, path: str, **given: Any) -> httpx.Response:
        answer = await self._http.request(method, path, **given)
        if answer.is_error:
            raise RuntimeError(f"The stand-in refused {method} {path}: {answer.text}")
        return answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()
