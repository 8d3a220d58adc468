"""What approvals is asked and hears: a person's decision, a new hold, a timer that falls due."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog
from contracts.bus import Answer, Bus, Handler
from contracts.events import Draft, Event
from contracts.facts import Json, TurnHeld
from contracts.handler import say
from contracts.history import History
from contracts.identity import InvalidToken, Principal, Verifier
from contracts.log import Clock, Log
from contracts.stops import stop
from contracts.subjects import BadToken, RunKey
from pydantic import ValidationError

from approvals import domain
from approvals.domain import Known, No, Refused
from approvals.requests import Decide

TimerHandler = Callable[[Json], Awaitable[None]]


def deciding(log: Log, verifier: Verifier, clock: Clock) -> Answer:
    """Answers `ask.approvals.decide`: {"status": 200, "event": the fact} or a status with title and detail."""

    async def answer(body: Json) -> Json:
        try:
            asked = Decide.model_validate(body)
            principal = await asyncio.to_thread(verifier.verify, asked.token.get_secret_value())
            key = RunKey(principal.tenant, asked.run)
            structlog.contextvars.bind_contextvars(tenant=key.tenant, run=key.run, turn=asked.turn)
        except ValidationError as error:
            return _no(No(422, "Not a decision", _what_is_wrong(error)))
        except InvalidToken as error:
            return _no(No(403, "Not signed in", str(error)))
        except BadToken:
            return _no(No(404, "No such run", "There is no run of that name."))
        if not principal.may("decide"):
            return _no(No(403, "Not yours to decide", f"The role {principal.role} decides nothing. Ask an approver."))
        if asked.edited is not None:
            return _no(
                No(422, "Not possible yet", "Changed arguments cannot be approved. Approve, or decline with a note.")
            )
        answer = await _settle(log, key, asked, principal, clock)
        stop("approvals.before-answer")
        return answer

    return answer


async def _settle(log: Log, key: RunKey, asked: Decide, principal: Principal, clock: Clock) -> Json:
    outcome: domain.Outcome | None = None
    seen = History(key)

    def decide(history: History) -> Draft | None:
        nonlocal outcome, seen
        seen = history
        outcome = domain.decide(history, asked, principal, clock())
        match outcome:
            case Refused(_, draft) | (Draft() as draft):
                return draft
            case _:
                return None

    said = await say(log, key, decide)
    if said is not None and isinstance(outcome, Draft):
        outcome = domain.recorded(seen, said)
    match outcome:
        case Known(event):
            return {"status": 200, "event": event.document()}
        case Refused(no, _) | (No() as no):
            return _no(no)
    raise AssertionError(f"{outcome} was not said")


def holding(bus: Bus) -> Handler:
    """Hears `policy.turn-held`: sets the hold's two timers. Their names make a repetition harmless."""

    async def hold(event: Event) -> None:
        if isinstance(event.fact, TurnHeld):
            for at in (event.fact.remind_at, event.fact.expires_at):
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


def _no(no: No) -> Json:
    return {"status": no.status, "title": no.title, "detail": no.detail}


def _what_is_wrong(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
