"""What the agent does about what it hears: asks the model, and says what came of it."""

import asyncio
import time
from collections import defaultdict
from datetime import timedelta

import structlog
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Draft, Event
from contracts.facts import Fact, ReplyGiven, RunEnded, RunStarted
from contracts.handler import respond
from contracts.history import History
from contracts.log import Log
from contracts.parts import Json
from contracts.stops import stop
from contracts.subjects import RunKey, parse

from agent_runner import request
from agent_runner.answer import Answer
from agent_runner.calls import Calls
from agent_runner.catalogue import Catalogue, NoToolset
from agent_runner.declined import any_declined
from agent_runner.domain import Ask, abandoned, awaits_customer, next_step, overdue, word_of
from agent_runner.endings import (
    DayFull,
    RunFull,
    TooOften,
    asked_too_often,
    ended,
    out_of_days_money,
    out_of_money,
)
from agent_runner.ledger import Ledger
from agent_runner.metrics import REUSED
from agent_runner.model import ModelAway, Unusable
from agent_runner.prices import NoPrice, Price, Prices
from agent_runner.profiles import Profiles, Unknown
from agent_runner.request import Request
from agent_runner.run import Run

logger = structlog.get_logger()

RECENT = 1.0  # seconds for which what was read of a run is taken for how it stands


class Agent:
    """The runner's handlers. `model_instead` is asked instead of the model that a run names.

    whole_log: reads the kinds that tell which declines stand, which most runs do without.
    """

    def __init__(
        self,
        *,
        log: Log,
        whole_log: Log,
        bus: Bus,
        calls: Calls,
        ledger: Ledger,
        catalogue: Catalogue,
        profiles: Profiles,
        prices: Prices,
        model_instead: str | None,
        calls_per_tenant: int,
        run_life: timedelta,
        chat_idle: timedelta,
    ) -> None:
        self._log = log
        self._whole_log = whole_log
        self._bus = bus
        self._calls = calls
        self._ledger = ledger
        self._catalogue = catalogue
        self._profiles = profiles
        self._prices = prices
        self._model_instead = model_instead
        self._shares: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(calls_per_tenant))
        self._run_life = run_life
        self._chat_idle = chat_idle

    async def hear(self, event: Event) -> None:
        """A fact of a run. What the model answered is kept while the run grows, and said behind the newer facts."""
        word: Fact | None = None

        async def react(history: History, event: Event) -> Draft | None:
            nonlocal word
            step = next_step(history.events, event)
            if isinstance(step, Ask) and word is None:
                word = await self._say(step.run, event)
            fact = word if isinstance(step, Ask) else step
            return Draft(await self._with_uncertain(history, fact), event) if fact else None

        if isinstance(event.fact, RunStarted):
            await self._set_timer(event, "life", self._run_life)
        try:
            said = await respond(await self._log_for_the_end(event), event, react)
        except ModelAway as error:
            # It is said to be away until it is asked again, which is once the run has been read again.
            await self._calls.pause(event.key, error.wait)
            raise
        except BaseException:
            await self._calls.over(event.key)
            raise
        await self._calls.over(event.key)
        if said is None and isinstance(event.fact, ReplyGiven):
            await self._mind_a_silent_customer(event)

    async def _log_for_the_end(self, event: Event) -> Log:
        """The log to answer `event` from: with what tells which declines stand, where the run may end because of it."""
        if not isinstance(event.fact, ReplyGiven):
            return self._log
        history = await self._log.read(event.key, at=event)
        return self._whole_log if any_declined(history.events) else self._log

    # Asking the model

    async def _say(self, run: Run, due: Event) -> Fact | None:
        """The model's answer to `due`, or why there is none; None where the run has ended meanwhile."""
        read_at = time.monotonic()
        try:
            async with self._shares[due.key.tenant]:
                return await self._ask_for(run, due, read_at)
        except (Unknown, NoToolset) as error:
            return ended(run, "failed", f"{error} The run was not worked on. Start it again with one that there is.")
        except NoPrice as error:
            return ended(
                run,
                "failed",
                f"The model {str(error)!r} has no price, so the run's cost limit could not be kept and it was not "
                "asked. Add its price to the agent-runner's prices.yaml, or set TURNGATE_MODEL to a model that is "
                "there, and start the run again.",
            )
        except Unusable as error:
            logger.error("model unusable", reason=str(error), internals=error.internals, reference=_reference(due))
            return ended(run, "failed", f"{error} Reference: {_reference(due)}.")

    async def _ask_for(self, run: Run, due: Event, read_at: float) -> Fact | None:
        price = self._prices.of(self._model_of(run))
        taken = 0
        while True:
            asked = await self._request(run, due, price, taken)
            if asked is None:
                return out_of_money(run, taken)
            stop("agent-runner.before-ledger")
            known = await self._ledger.reserve(due, asked, run.cost_micro_usd, run.started.limits.max_cost_micro_usd)
            match known:
                case Answer():
                    if await self._ledger.reused(due, known):
                        REUSED.inc()
                    return word_of(run, known)
                case DayFull():
                    return out_of_days_money(run, known)
                case TooOften():
                    return asked_too_often(run, known, None)
                case RunFull():
                    taken = known.taken
                case None:
                    break
        # It may have had to wait, for its tenant's other calls or for another process that made this very call.
        if time.monotonic() - read_at > RECENT and await self._calls.has_ended(due.key):
            await self._ledger.release(due)
            return None
        answer = await self._calls.answer(asked, run, due, price)
        return word_of(run, answer) if isinstance(answer, Answer) else answer

    async def _with_uncertain(self, history: History, fact: Fact) -> Fact:
        """A run's end says what may have to be paid beside what its log tells of."""
        if not isinstance(fact, RunEnded) or history.started is None:
            return fact
        limit = history.started.limits.max_cost_micro_usd
        uncertain = await self._ledger.uncertain(history.key, fact.cost_micro_usd, limit)
        return fact.model_copy(update={"uncertain_micro_usd": uncertain}) if uncertain else fact

    async def _request(self, run: Run, due: Event, price: Price, taken: int) -> Request | None:
        profile = self._profiles.profile(run.started.profile)
        prompt = self._profiles.prompt(run.started.prompt_version)
        try:
            tools = await self._catalogue.tools(due.key.tenant, run.started)
            return request.build(run, prompt, tools, self._model_of(run), price, profile.max_tokens, taken)
        except (Outage, NoToolset):
            raise
        except Exception as error:
            logger.exception("request could not be built", reference=_reference(due))
            raise Unusable(
                "The next question to the model could not be put together, and the run was stopped. A person must go "
                "on with the ticket; the agent-runner's log file has the cause."
            ) from error

    def _model_of(self, run: Run) -> str:
        return self._model_instead or run.started.model

    # Time

    async def _set_timer(self, event: Event, what: str, after: timedelta) -> None:
        body = {"tenant": event.key.tenant, "run": event.key.run, "what": what, "of": event.id}
        await self._bus.set_timer(f"{event.key.tenant}.{event.key.run}.{what}", event.time + after, body)

    async def _mind_a_silent_customer(self, reply: Event) -> None:
        history = await self._log.read(reply.key, at=reply)
        if awaits_customer(history.events, reply.id):
            await self._set_timer(reply, "idle", self._chat_idle)

    async def hear_timer(self, body: Json) -> None:
        """A run has gone on for long, or its customer has been silent; the log says whether that is still so."""
        history = await self._log.read(RunKey(body["tenant"], body["run"]))
        since = next((event for event in history.events if event.id == body["of"]), None)
        if since is None:
            return

        async def react(history: History, event: Event) -> Draft | None:
            end = overdue(history.events, event)
            return Draft(await self._with_uncertain(history, end), None, f"{body['what']} {event.id}") if end else None

        await respond(await self._log_for_the_end(since), since, react)

    # What nobody could handle

    async def hear_dead(self, letter: Json) -> None:
        """A fact that some service gave up on: its run is ended, and what went wrong stays in the log file."""
        reference = f"{letter['service']}-{letter['sequence']}"
        logger.error("dead letter", reference=reference, subject=letter["subject"], error=letter["error"])
        try:
            key, kind = parse(letter["subject"])
        except ValueError:
            return  # no fact of a run; a timer, say
        head = (await self._log.read(key)).head
        if head is None:
            return

        async def react(history: History, event: Event) -> Draft | None:
            end = abandoned(history.events, letter["service"], kind, reference)
            return Draft(await self._with_uncertain(history, end), None, f"dead {reference}") if end else None

        await respond(self._log, head, react)


def _reference(event: Event) -> str:
    """What an operator quotes, and the log file is searched for."""
    return event.id[:8]
