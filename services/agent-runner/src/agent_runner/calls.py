"""One call of the model, reserved and recorded: made, waited for, and given up."""

import asyncio
import random
from contextlib import suppress
from datetime import timedelta
from functools import partial

import psycopg
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Event
from contracts.facts import RunEnded
from contracts.log import Log
from contracts.model_wait import ModelWait
from contracts.parts import Json
from contracts.stops import stop
from contracts.subjects import RunKey

from agent_runner.answer import Answer
from agent_runner.endings import TooOften, asked_too_often, waited_too_long
from agent_runner.ledger import MOST_UNKNOWN, Ledger, until_back
from agent_runner.model import Lost, Model, ModelAway, Unusable
from agent_runner.prices import Price
from agent_runner.request import Request
from agent_runner.run import Run
from agent_runner.waits import Waits

SILENT_AFTER = 10.0  # seconds without any of an answer, after which it is said that a run waits
LOOKS_EVERY = 5.0  # seconds, while a run waits for its model: whether it has ended
LONGEST_PAUSE = 30.0  # seconds between two calls, unless the API wants to be left alone for longer


class Calls:
    """deadline: how long a run waits, in one step, for a model that is away."""

    def __init__(self, log: Log, bus: Bus, model: Model, ledger: Ledger, waits: Waits, deadline: timedelta) -> None:
        self._log = log
        self._bus = bus
        self._model = model
        self._ledger = ledger
        self._waits = waits
        self._deadline = deadline

    async def answer(self, asked: Request, run: Run, due: Event, price: Price) -> Answer | RunEnded | None:
        """The answer to a call that is reserved; the run's end, if the model has been waited for long enough; None if
        the run has ended while it was silent."""
        stop("agent-runner.before-answer")
        async with self._ledger.holding(due):
            try:
                answer = await self._call(asked, run.steps + 1, due, price)
            except ModelAway as error:
                return await self._gone(run, due, error)
            except Unusable as error:
                await (self._ledger.lose(due) if error.billed else self._ledger.release(due))
                raise
            except Exception:
                await self._ledger.lose(due)
                raise
            if answer is None:
                await self._ledger.lose(due)
                return None
            stop("agent-runner.after-answer")
            # It is paid for: it is held in hand until the ledger takes it.
            kept = await until_back(partial(self._ledger.record, due, answer), "an answer of the model's")
        stop("agent-runner.after-ledger")
        return kept

    async def _gone(self, run: Run, due: Event, error: ModelAway) -> RunEnded:
        """The run's end, if the model has been waited for long enough. Else raises what it was, with how long to wait.

        A request that may have to be paid is counted, and so are those of other processes."""
        give_back = self._ledger.lose if isinstance(error, Lost) else self._ledger.release
        tries = await until_back(partial(give_back, due), "a reservation")
        if tries.unknown >= MOST_UNKNOWN:
            return asked_too_often(run, TooOften(tries.unknown), error.status)
        left = self._deadline.total_seconds() - tries.seconds
        if left <= 0:
            return waited_too_long(run, tries.seconds, error.status)
        await self._waits.set(
            due.key, ModelWait(state="away", since=tries.since, attempt=tries.requests, status=error.status)
        )
        error.wait = min(max(error.wait, pause_before(tries.requests)), left)
        raise error

    async def _call(self, asked: Request, step: int, due: Event, price: Price) -> Answer | None:
        """The model's answer, its words shown as they come; None if its run has ended before any of it came."""
        shown, begun = False, False

        async def hear(text: str) -> None:
            nonlocal shown
            shown = True
            await self._show(due, {"step": step, "text": text})

        async def begin() -> None:
            nonlocal begun
            begun = True
            await self._waits.clear(due.key)

        calling = asyncio.create_task(self._model.ask(asked, price, hear, begin))
        try:
            await asyncio.wait((calling,), timeout=SILENT_AFTER)
            while not calling.done() and not begun:
                with suppress(Outage, psycopg.OperationalError):
                    if await self.has_ended(due.key):
                        return None
                    tries = await self._ledger.tries(due)
                    await self._waits.set(
                        due.key, ModelWait(state="waiting", since=tries.since, attempt=tries.requests)
                    )
                await asyncio.wait((calling,), timeout=LOOKS_EVERY)
            answer = await calling
        finally:
            calling.cancel()
            await asyncio.wait((calling,))
        if shown:
            await self._show(due, {"step": step, "done": True})
        return answer

    async def _show(self, due: Event, body: Json) -> None:
        """Live text is forgotten anyway: no trouble with it may cost an answer."""
        with suppress(Exception):
            await self._bus.live(due.key, body)

    async def pause(self, key: RunKey, seconds: float) -> None:
        """Waits before the model is asked again; no longer than the run goes on."""
        left = seconds
        while left > 0:
            await asyncio.sleep(min(left, LOOKS_EVERY))
            left -= LOOKS_EVERY
            with suppress(Outage):
                if left > 0 and await self.has_ended(key):
                    return

    async def over(self, key: RunKey) -> None:
        """The run waits for no answer any more."""
        await self._waits.clear(key)

    async def has_ended(self, key: RunKey) -> bool:
        return (await self._log.read(key)).end is not None


def pause_before(requests: int) -> float:
    """Seconds before a call is made again: more each time, and not for all runs at once."""
    longest = min(0.1 * 2.0 ** min(requests - 1, 16), LONGEST_PAUSE)
    return longest * random.uniform(0.75, 1.0)  # noqa: S311 - spreads retries
