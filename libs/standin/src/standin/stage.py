"""What a running stand-in remembers: the scripts it was given, the gates it waits at, and what it was asked."""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from standin import ticket
from standin.request import Request
from standin.script import Line, Script

KEPT_BODIES = 200


class Stage:
    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.asked: Counter[tuple[str, int]] = Counter()
        self.bodies: deque[tuple[str, int, dict[str, Any]]] = deque(maxlen=KEPT_BODIES)
        self._gates: dict[str, asyncio.Event] = {}
        self._changed = asyncio.Condition()

    def put(self, script: Script) -> None:
        self.scripts.pop(script.key, None)
        self.scripts[script.key] = script

    def clear(self, key: str | None) -> None:
        """Forgets one script, or everything. Who waits at a gate is let through."""
        if key is not None:
            self.scripts.pop(key, None)
            return
        self.scripts.clear()
        self.asked.clear()
        self.bodies.clear()
        for gate in self._gates.values():
            gate.set()
        self._gates.clear()

    def gate(self, name: str) -> asyncio.Event:
        return self._gates.setdefault(name, asyncio.Event())

    async def heard(self, request: Request, body: bytes) -> Line | None:
        """Counts a request, and gives the scripted line for it, if there is one.

        The longest key that occurs in the conversation is its script; without one it counts under its ticket.
        """
        script = self._script(request) if self.scripts else None
        key = script.key if script else ticket.reference(request.messages[0].text())
        step = request.step()
        self.asked[key, step] += 1
        if script:
            self.bodies.append((key, step, json.loads(body)))
        async with self._changed:
            self._changed.notify_all()
        return script.line(step, self.asked[key, step]) if script else None

    async def until(self, reached: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(reached)

    def times(self, key: str) -> int:
        return sum(count for (asked, _), count in self.asked.items() if asked == key)

    def _script(self, request: Request) -> Script | None:
        conversation = "\n".join(json.dumps(message.blocks, ensure_ascii=False) for message in request.messages)
        found = [script for key, script in self.scripts.items() if key in conversation]
        return max(found, key=lambda script: len(script.key), default=None)
