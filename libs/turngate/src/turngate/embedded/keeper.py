"""Keeps one child alive: starts it, and starts it again when it dies."""

import asyncio
import contextlib
import subprocess
import threading
import time
from collections.abc import Callable

from turngate.embedded.child import READY_WITHIN, Child
from turngate.embedded.trouble import Trouble

FIRST_STARTS = 3
LONG_LIFE = 30.0
LONGEST_WAIT = 15.0


def next_wait(waited: float | None, lived: float, longest: float = LONGEST_WAIT) -> float:
    """How long to wait before a start: not at all after a long life or a first death, then ever longer."""
    if waited is None or lived > LONG_LIFE:
        return 0.0
    return min(max(waited * 2, 0.5), longest)


class Keeper:
    """All of it runs on the loop of the main thread: the leash of a child is tied to the thread that forked it."""

    def __init__(
        self,
        child: Child,
        changed: Callable[[], None],
        say: Callable[[str], None],
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        self.child = child
        self.process: subprocess.Popen[bytes] | None = None
        self.restarts = 0
        self._changed, self._say, self._longest_wait = changed, say, longest_wait
        self._stopping = False
        self._started = 0.0

    async def start(self) -> None:
        """Returns once the child is ready. A child that ends before that gets another chance or two (a predecessor may
        still be on its way out), then Trouble."""
        for attempt in range(1, FIRST_STARTS + 1):
            process = await self._spawn()
            if await self._ready(process) or self._stopping:
                return
            if process.poll() is None:
                raise Trouble(
                    f"{self.child.name} was not ready after {READY_WITHIN:.0f} s. Its log is {self.child.log}; "
                    f"the end of it:\n{self.child.last_words()}"
                )
            if attempt < FIRST_STARTS:
                await asyncio.sleep(0.3 * attempt)
        raise Trouble(
            f"{self.child.name} does not start (code {process.returncode}). Its log is {self.child.log}; "
            f"the end of it:\n{self.child.last_words()}"
        )

    async def keep(self) -> None:
        """Until `stop`."""
        waited: float | None = None
        while self.process is not None and not self._stopping:
            code = await ended(self.process)
            if self._stopping:
                return
            waited = next_wait(waited, time.monotonic() - self._started, self._longest_wait)
            pause = f" in {waited:g} s" if waited else ""
            self._say(f"{self.child.name} ended with code {code}{self._why(code)}; starting it again{pause}")
            self.restarts += 1
            waited = await self._start_again(waited)

    async def _start_again(self, wait: float) -> float:
        """Returns the wait after which the child could be started."""
        while True:
            await asyncio.sleep(wait)
            try:
                if not self._stopping:
                    await self._spawn()
                return wait
            except (OSError, Trouble) as error:
                wait = next_wait(wait, 0, self._longest_wait)
                self._say(f"{self.child.name} cannot be started: {error}; trying again in {wait:g} s")

    def _why(self, code: int) -> str:
        """The last line of who ended by itself; who was killed had no time for one."""
        said = self.child.last_words(1).strip() if code > 0 else ""
        return f" ({said[:200]})" if said else ""

    def restart(self) -> None:
        """Asks the child to end; it is started again."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(self.child.stop_signal)

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()

    async def stop(self, within: float = 15.0) -> None:
        """Asks the child to end, and kills it when it does not."""
        self._stopping = True
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(self.child.stop_signal)
        try:
            await asyncio.wait_for(ended(self.process), within)
        except TimeoutError:
            self._say(f"{self.child.name} did not end within {within:g} s and was killed")
            self.kill()
            await ended(self.process)

    async def _spawn(self) -> subprocess.Popen[bytes]:
        await asyncio.to_thread(self.child.prepare)
        self.process = self.child.spawn()
        self._started = time.monotonic()
        self._changed()
        return self.process

    async def _ready(self, process: subprocess.Popen[bytes]) -> bool:
        deadline = time.monotonic() + READY_WITHIN
        while process.poll() is None and time.monotonic() < deadline:
            if await asyncio.to_thread(self.child.ready):
                return True
            await asyncio.sleep(0.03)
        return False


async def ended(process: subprocess.Popen[bytes]) -> int:
    """The code that the process ends with, once it does."""
    loop = asyncio.get_running_loop()
    code: asyncio.Future[int] = loop.create_future()

    def tell(number: int) -> None:
        if not code.done():
            code.set_result(number)

    def wait() -> None:
        number = process.wait()
        with contextlib.suppress(RuntimeError):  # nobody is left to hear it
            loop.call_soon_threadsafe(tell, number)

    threading.Thread(target=wait, daemon=True).start()
    return await code
