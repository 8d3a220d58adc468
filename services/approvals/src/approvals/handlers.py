"""What approvals is asked and hears: a person's decision, a new hold, a timer that falls due."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog
from contracts.bus import Answer, Bus, Handler
from contracts.events import Draft, Event
from contracts.facts import CallQuote, Json, TurnHeld
from contracts.handler import say
from contracts.history import History
from contracts.identity import InvalidToken, Principal, Verifier
from contracts.log import Clock, Log
from contracts.stops import stop
from contracts.subjects import BadToken, RunKey
from pydantic import ValidationError

from approvals import domain
from approvals.domain import Changes, Known, No, Refused
from approvals.requests import Decide

TimerHandler = Callable[[Json], Awaitable[None]]
Ask = Callable[[str, Json], Awaitable[Json]]


def deciding(log: Log, verifier: Verifier, clock: Clock, ask: Ask) -> Answer:
    """Answers `ask.approvals.decide`: {"status": 200, "event": the fact} or a status with title and detail.

    ask: another service's answer, here what a changed call would do.
    """

    async def answer(body: Json) -> Json:
        try:
            asked = Decide.model_validate(body)
            principal = await asyncio.to_thread(verifier.verify, asked.token.get_secret_value())
            key = RunKey(principal.tenant, asked.run)
            structlog.contextvars.bind_contextvars(tenant=key.tenant, run=key.run, turn=asked.turn)
        except ValidationError as error:
            return refusal(No(422, "Not a decision", what_is_wrong(error)))
        except InvalidToken as error:
            return refusal(No(403, "Not signed in", str(error)))
        except BadToken:
            return refusal(No(404, "No such run", "There is no run of that name."))
        if not principal.may("decide"):
            return refusal(
                No(403, "Not yours to decide", f"The role {principal.role} decides nothing. Ask an approver.")
            )
        answer = await _settle(log, key, asked, principal, clock, ask)
        stop("approvals.before-answer")
        return answer

    return answer


async def _settle(log: Log, key: RunKey, asked: Decide, principal: Principal, clock: Clock, ask: Ask) -> Json:
    refused: No | None = None
    seen = History(key)

    async def decide(history: History) -> Draft | Known | No:
        nonlocal refused, seen
        refused, seen = None, history
        outcome = domain.decide(history, asked, principal, clock())
        if isinstance(outcome, Changes):
            quoted = await _quoted(asked, ask)
            return quoted if isinstance(quoted, No) else domain.changed(asked, principal, outcome, quoted)
        if isinstance(outcome, Refused):
            refused = outcome.no
            return outcome.draft
        return outcome

    said: Event | Known | No = await say(log, key, decide)
    outcome = (refused or domain.recorded(seen, said)) if isinstance(said, Event) else said
    return refusal(outcome) if isinstance(outcome, No) else {"status": 200, "event": outcome.event.opened_document()}


async def _quoted(asked: Decide, ask: Ask) -> CallQuote | No:
    """What the call would do as its approver changed it, or why the shop does not say."""
    answer = await ask(
        "ask.tools.quote",
        {
            "token": asked.token.get_secret_value(),
            "run": asked.run,
            "turn": asked.turn,
            "call_id": asked.call_id,
            "edited": asked.edited,
        },
    )
    if answer["status"] != 200:
        return No(
            int(answer["status"]),
            str(answer.get("title", "Not quoted")),
            f"{answer.get('detail', 'The shop did not say what this would do.')} Nothing was decided.",
        )
    return CallQuote.model_validate(answer["quote"], extra="ignore")


def holding(bus: Bus) -> Handler:
    """Hears `policy.turn-held`: sets the hold's timers. Their names make a repetition harmless."""

    async def hold(event: Event) -> None:
        if isinstance(event.fact, TurnHeld):
            for at in domain.due_at(event.fact):
                await _set_timer(bus, event.key, event.ordinal, at)

    return hold


def looking(bus: Bus, log: Log, clock: Clock) -> TimerHandler:
    """Hears a timer: says what the log shows to be owed. A repeated one finds nothing, an early one is set anew."""

    async def look(body: Json) -> None:
        key = RunKey(body["tenant"], body["run"])
        if await say(log, key, lambda history: domain.owed(history, clock())) is None:
            at = domain.next_look(await log.read(key), clock())
            if at is not None:
                await _set_timer(bus, key, body["hold"], at)

    return look


async def _set_timer(bus: Bus, key: RunKey, hold: int, at: datetime) -> None:
    name = f"{key.tenant}.{key.run}.{hold}.{int(at.timestamp() * 1000)}"
    await bus.set_timer(name, at, {"tenant": key.tenant, "run": key.run, "hold": hold})


def refusal(no: No) -> Json:
    return {"status": no.status, "title": no.title, "detail": no.detail}


def what_is_wrong(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
