"""What approvals is asked and hears: a person's word on a held call or on their tenant, a new hold, a timer."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import structlog
from contracts.bus import Answer, Bus, Handler
from contracts.events import Draft, Event
from contracts.facts import TurnHeld
from contracts.handler import say
from contracts.history import History
from contracts.identity import InvalidToken, Principal, Verifier
from contracts.log import Clock, Log
from contracts.parts import CallQuote, Json, Pack
from contracts.stops import stop
from contracts.subjects import BadToken, RunKey, TenantKey
from pydantic import SecretStr, ValidationError

from approvals import domain, tenants
from approvals.answers import Known, No, on_the_wire, what_is_wrong
from approvals.domain import Changes, Refused
from approvals.requests import SAY_OF_TENANT, Decide, Promote, SayOfTenant

TimerHandler = Callable[[Json], Awaitable[None]]
Ask = Callable[[str, Json], Awaitable[Json]]


def deciding(log: Log, verifier: Verifier, clock: Clock, ask: Ask) -> Answer:
    """Answers `ask.approvals.decide` with the fact that a person's decision came to, or why it changes nothing.

    ask: another service's answer, here what a changed call would do.
    """

    async def answer(body: Json) -> Json:
        try:
            asked = Decide.model_validate(body)
            principal = await _who(verifier, asked.token)
            key = RunKey(principal.tenant, asked.run)
            structlog.contextvars.bind_contextvars(tenant=key.tenant, run=key.run, turn=asked.turn)
        except ValidationError as error:
            return on_the_wire(No(422, "Not a decision", what_is_wrong(error)))
        except InvalidToken as error:
            return on_the_wire(No(403, "Not signed in", str(error)))
        except BadToken:
            return on_the_wire(No(404, "No such run", "There is no run of that name."))
        if not principal.may("decide"):
            why = f"The role {principal.role} decides nothing. Ask an approver."
            return on_the_wire(No(403, "Not yours to decide", why))
        answer = on_the_wire(await _settle(log, key, asked, principal, clock, ask))
        stop("approvals.before-answer")
        return answer

    return answer


def hearing_of_tenants(log: Log, verifier: Verifier, ask: Ask) -> Answer:
    """Answers `ask.approvals.tenant` with the fact that a person's word came to, or why it changes nothing.

    log: the tenants' own lines. ask: another service's answer, here what policy reads in a pack.
    """

    async def answer(body: Json) -> Json:
        try:
            asked = SAY_OF_TENANT.validate_python(body)
            principal = await _who(verifier, asked.token)
        except ValidationError as error:
            return on_the_wire(No(422, "Not a request", what_is_wrong(error)))
        except InvalidToken as error:
            return on_the_wire(No(403, "Not signed in", str(error)))
        structlog.contextvars.bind_contextvars(tenant=principal.tenant)
        if (no := tenants.barred(asked, principal)) is not None:
            return on_the_wire(no)
        answer = on_the_wire(await _say_of_tenant(log, asked, principal, ask))
        stop("approvals.before-answer")
        return answer

    return answer


async def _say_of_tenant(log: Log, asked: SayOfTenant, principal: Principal, ask: Ask) -> Known | No:
    async def decide(history: History) -> Draft | Known | No:
        if (before := tenants.said_before(history, asked, principal)) is not None:
            return before
        pack = await _read(asked.text, principal.tenant, ask) if isinstance(asked, Promote) else None
        return pack if isinstance(pack, No) else tenants.decide(history, asked, principal, pack)

    said: Event | Known | No = await say(log, TenantKey(principal.tenant), decide)
    return Known(said) if isinstance(said, Event) else said


async def _read(text: str, tenant: str, ask: Ask) -> Pack | No:
    """Which pack policy reads in the text, or why it is none."""
    answer = await ask("ask.policy.check", {"tenant": tenant, "text": text})
    if answer["status"] != 200:
        return _passed_on(answer, "Policy did not say what is wrong with it.", "Nothing was promoted.")
    return Pack.model_validate(answer["pack"], extra="ignore")


async def _who(verifier: Verifier, token: SecretStr) -> Principal:
    return await asyncio.to_thread(verifier.verify, token.get_secret_value())


async def _settle(log: Log, key: RunKey, asked: Decide, principal: Principal, clock: Clock, ask: Ask) -> Known | No:
    refused: No | None = None
    seen = History(key)

    async def decide(history: History) -> Draft | Known | No:
        nonlocal refused, seen
        refused, seen = None, history
        outcome = domain.decide(history, asked, principal, clock())
        if isinstance(outcome, Changes):
            quoted = await _quoted(asked, ask)
            if isinstance(quoted, No):
                return quoted
            outcome = domain.changed(history, asked, principal, clock(), outcome, quoted)
        if isinstance(outcome, Refused):
            refused = outcome.no
            return outcome.draft
        return outcome

    said: Event | Known | No = await say(log, key, decide)
    return (refused or domain.recorded(seen, said)) if isinstance(said, Event) else said


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
        return _passed_on(answer, "The shop did not say what this would do.", "Nothing was decided.")
    return CallQuote.model_validate(answer["quote"], extra="ignore")


def _passed_on(answer: Json, unsaid: str, so: str) -> No:
    """Another service's no, as this one's."""
    detail = f"{answer.get('detail', unsaid)} {so}"
    return No(int(answer["status"]), str(answer.get("title", "Not possible")), detail)


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
