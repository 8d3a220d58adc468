"""What the agent does about what it hears: asks the model, and says what came of it."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from datetime import timedelta
from functools import partial

import structlog
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Draft, Event
from contracts.facts import Fact, ReplyGiven, RunStarted
from contracts.handler import respond
from contracts.history import History
from contracts.log import Log
from contracts.parts import Json
from contracts.stops import stop
from contracts.subjects import RunKey, parse

from agent_runner import request
from agent_runner.answer import Answer
from agent_runner.catalogue import Catalogue, NoToolset
from agent_runner.declined import any_declined
from agent_runner.domain import (
    Ask,
    DayFull,
    Run,
    abandoned,
    awaits_customer,
    ended,
    next_step,
    out_of_days_money,
    out_of_money,
    overdue,
    word_of,
)
from agent_runner.ledger import Ledger, until_back
from agent_runner.metrics import REUSED
from agent_runner.model import Model, NotTaken, Unusable
from agent_runner.prices import NoPrice, Price, Prices
from agent_runner.profiles import Profiles, Unknown
from agent_runner.request import Request

logger = structlog.get_logger()


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
        model: Model,
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
        self._model = model
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
            if step is None:
                return None
            if not isinstance(step, Ask):
                return Draft(step, event)
            if word is None:
                async with self._shares[event.key.tenant]:
                    word = await self._say(step.run, event)
            return Draft(word, event)

        if isinstance(event.fact, RunStarted):
            await self._set_timer(event, "life", self._run_life)
        said = await respond(await self._log_for_the_end(event), event, react)
        if said is None and isinstance(event.fact, ReplyGiven):
            await self._mind_a_silent_customer(event)

    async def _log_for_the_end(self, event: Event) -> Log:
        """The log to answer `event` from: with what tells which declines stand, where the run may end because of it."""
        if not isinstance(event.fact, ReplyGiven):
            return self._log
        history = await self._log.read(event.key, at=event)
        return self._whole_log if any_declined(history.events) else self._log

    # Asking the model

    async def _say(self, run: Run, due: Event) -> Fact:
        """The model's answer to `due`, or why there is none."""
        try:
            price = self._prices.of(self._model_of(run))
            asked = await self._request(run, due, price)
            if asked is None:
                return out_of_money(run)
            answer = await self._answer(asked, run, due, price)
            return out_of_days_money(run, answer) if isinstance(answer, DayFull) else word_of(run, answer)
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

    async def _request(self, run: Run, due: Event, price: Price) -> Request | None:
        profile = self._profiles.profile(run.started.profile)
        prompt = self._profiles.prompt(run.started.prompt_version)
        try:
            tools = await self._catalogue.tools(due.key.tenant, run.started.toolset)
            return request.build(run, prompt, tools, self._model_of(run), price, profile.max_tokens)
        except (Outage, NoToolset):
            raise
        except Exception as error:
            logger.exception("request could not be built", reference=_reference(due))
            raise Unusable(
                "The next question to the model could not be put together, and the run was stopped. A person must go "
                "on with the ticket; the agent-runner's log file has the cause."
            ) from error

    async def _answer(self, asked: Request, run: Run, due: Event, price: Price) -> Answer | DayFull:
        stop("agent-runner.before-ledger")
        known = await self._ledger.reserve(due, asked)
        if isinstance(known, Answer) and await self._ledger.reused(due, known):
            REUSED.inc()
        if known is not None:
            return known
        stop("agent-runner.before-answer")
        async with self._ledger.holding(due):
            answer = await self._ask(asked, run.steps + 1, due, price)
            stop("agent-runner.after-answer")
            # It is paid for: it is held in hand until the ledger takes it.
            kept = await until_back(partial(self._ledger.record, due, answer), "an answer of the model's")
        stop("agent-runner.after-ledger")
        return kept

    async def _ask(self, asked: Request, step: int, due: Event, price: Price) -> Answer:
        """The model's answer, its words shown as they come. Where there is none its reservation is given back, or is
        uncertain from then on, if the request was sent and may have to be paid."""
        shown = False

        async def hear(text: str) -> None:
            nonlocal shown
            shown = True
            await self._show(due, {"step": step, "text": text})

        try:
            answer = await self._model.ask(asked, price, hear)
        except NotTaken as error:
            await self._ledger.release(due)
            await asyncio.sleep(error.wait)
            raise
        except Unusable:
            await self._ledger.release(due)
            raise
        except Exception:
            await self._ledger.lose(due)
            raise
        if shown:
            await self._show(due, {"step": step, "done": True})
        return answer

    async def _show(self, due: Event, body: Json) -> None:
        """Live text is forgotten anyway: no trouble with it may cost an answer."""
        with suppress(Exception):
            await self._bus.live(due.key, body)

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

        def react(history: History, event: Event) -> Draft | None:
            end = overdue(history.events, event)
            return Draft(end, None, key=f"{body['what']} {event.id}") if end else None

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

        def react(history: History, event: Event) -> Draft | None:
            end = abandoned(history.events, letter["service"], kind, reference)
            return Draft(end, None, key=f"dead {reference}") if end else None

        await respond(self._log, head, react)


def _reference(event: Event) -> str:
    """What an operator quotes, and the log file is searched for."""
    return event.id[:8]
