"""What approvals is asked and hears: a person's word on a held call or on their tenant, a new hold, a timer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import structlog
from contracts import asks
from contracts.answers import No, no_such
from contracts.asks import SAY_OF_TENANT, AskDecide, AskPromote, AskQuote, SayOfTenant
from contracts.bus import Answer, Bus, Handler
from contracts.events import Draft, Event
from contracts.facts import TurnHeld
from contracts.handler import say
from contracts.history import History
from contracts.identity import InvalidToken, Principal, Verifier
from contracts.kill_switch import standing
from contracts.log import Clock, Log
from contracts.parts import CallQuote, Json, Pack
from contracts.stops import stop
from contracts.subjects import BadToken, RunKey, TenantKey
from contracts.validation import explain
from pydantic import SecretStr, ValidationError

from approvals import domain, tenants, waiting
from approvals.answers import Recorded, on_the_wire
from approvals.domain import MayChange, NoOnRecord

TimerHandler = Callable[[Json], Awaitable[None]]
Ask = Callable[[str, Json], Awaitable[Json]]


def deciding(log: Log, verifier: Verifier, clock: Clock, ask: Ask, lines: Log | None = None) -> Answer:
    """Answers `ask.approvals.decide` with the fact that a person's decision came to, or why it changes nothing.

    ask: another service's answer, here what a changed call would do. lines: the tenants' own, which say what is
    stopped; without them nothing is.
    """

    async def answer(body: Json) -> Json:
        try:
            asked = AskDecide.model_validate(body)
            principal = await _who(verifier, asked.token)
            key = RunKey(principal.tenant, asked.run)
            structlog.contextvars.bind_contextvars(tenant=key.tenant, run=key.run, turn=asked.turn)
        except ValidationError as error:
            return No(422, "Not a decision", explain(error)).on_the_wire()
        except InvalidToken as error:
            return No(403, "Not signed in", str(error)).on_the_wire()
        except BadToken:
            return no_such("run").on_the_wire()
        if not principal.may("decide"):
            why = f"The role {principal.role} decides nothing. Ask an approver."
            return No(403, "Not yours to decide", why).on_the_wire()
        answer = on_the_wire(await _settle(log, key, asked, principal, clock, ask, lines))
        stop("approvals.before-answer")
        return answer

    return answer


def answering_for_tenants(log: Log, verifier: Verifier, ask: Ask) -> Answer:
    """Answers `ask.approvals.tenant` with the fact that a person's word came to, or why it changes nothing.

    log: the tenants' own lines. ask: another service's answer, here what policy reads in a pack.
    """

    async def answer(body: Json) -> Json:
        try:
            asked = SAY_OF_TENANT.validate_python(body)
            principal = await _who(verifier, asked.token)
        except ValidationError as error:
            return No(422, "Not a request", explain(error)).on_the_wire()
        except InvalidToken as error:
            return No(403, "Not signed in", str(error)).on_the_wire()
        structlog.contextvars.bind_contextvars(tenant=principal.tenant)
        if (no := tenants.barred(asked, principal)) is not None:
            return no.on_the_wire()
        answer = on_the_wire(await _say_of_tenant(log, asked, principal, ask))
        stop("approvals.before-answer")
        return answer

    return answer


async def _say_of_tenant(log: Log, asked: SayOfTenant, principal: Principal, ask: Ask) -> Recorded | No:
    async def decide(history: History) -> Draft | Recorded | No:
        if (before := tenants.said_before(history, asked, principal)) is not None:
            return before
        if not isinstance(asked, AskPromote):
            return tenants.decide(history, asked, principal)
        read = await _read(asked.text, principal.tenant, ask)
        return read if isinstance(read, No) else tenants.decide(history, asked, principal, *read)

    said: Event | Recorded | No = await say(log, TenantKey(principal.tenant), decide)
    return Recorded(said) if isinstance(said, Event) else said


async def _read(text: str, tenant: str, ask: Ask) -> tuple[Pack, list[str]] | No:
    """Which pack policy reads in the text, and what it warns of; or why it is none."""
    answer = await ask(asks.CHECK_PACK, asks.AskCheckPack(tenant=tenant, text=text).model_dump(mode="json"))
    if (no := No.in_answer(answer)) is not None:
        return replace(no, detail=f"{no.detail} Nothing was promoted.")
    return Pack.model_validate(answer["pack"], extra="ignore"), list(answer.get("warnings", ()))


async def _who(verifier: Verifier, token: SecretStr) -> Principal:
    return await asyncio.to_thread(verifier.verify, token.get_secret_value())


async def _settle(
    log: Log, key: RunKey, asked: AskDecide, principal: Principal, clock: Clock, ask: Ask, lines: Log | None
) -> Recorded | No:
    refused: No | None = None
    seen = History(key)

    async def decide(history: History) -> Draft | Recorded | No:
        nonlocal refused, seen
        refused, seen = None, history
        # Read anew each time: a stop that was set before this approval is known to it.
        line = await lines.read(TenantKey(key.tenant)) if lines and asked.decision == "approve" else None
        stops = standing(line.events) if line else ()
        outcome = domain.decide(history, asked, principal, clock(), stops)
        if isinstance(outcome, MayChange):
            quoted = await _quoted(asked, ask)
            if isinstance(quoted, No):
                return quoted
            outcome = domain.decide_changed(history, asked, principal, clock(), outcome, quoted, stops)
        elif isinstance(outcome, Draft) and (shown := domain.paid_meanwhile(history, asked, stops)) is not None:
            quoted = await _quoted(asked.model_copy(update={"edited": shown.arguments}), ask)
            if isinstance(quoted, No):
                return quoted
            outcome = domain.stopped_by_now(history, asked, principal, clock(), quoted) or outcome
        if isinstance(outcome, NoOnRecord):
            refused = outcome.no
            return outcome.draft
        return outcome

    said: Event | Recorded | No = await say(log, key, decide)
    return (refused or domain.recorded(seen, said)) if isinstance(said, Event) else said


async def _quoted(asked: AskDecide, ask: Ask) -> CallQuote | No:
    """What the call would do as its approver changed it, or why the shop does not say."""
    question = AskQuote(
        token=asked.token, run=asked.run, turn=asked.turn, call_id=asked.call_id, edited=asked.edited or {}
    )
    answer = await ask(asks.QUOTE, question.model_dump(mode="json"))
    if (no := No.in_answer(answer)) is not None:
        return replace(no, detail=f"{no.detail} Nothing was decided.")
    return CallQuote.model_validate(answer["quote"], extra="ignore")


def holding(bus: Bus) -> Handler:
    """Hears `policy.turn-held`: sets the hold's timers. Their names make a repetition harmless."""

    async def hold(event: Event) -> None:
        if isinstance(event.fact, TurnHeld):
            for at in waiting.due_at(event.fact):
                await _set_timer(bus, event.key, event.ordinal, at)

    return hold


def looking(bus: Bus, log: Log, clock: Clock) -> TimerHandler:
    """Hears a timer: says what the log shows to be owed. A repeated one finds nothing, an early one is set anew."""

    async def look(body: Json) -> None:
        key = RunKey(body["tenant"], body["run"])
        if await say(log, key, lambda history: waiting.owed(history, clock())) is None:
            at = waiting.next_look(await log.read(key), clock())
            if at is not None:
                await _set_timer(bus, key, body["hold"], at)

    return look


async def _set_timer(bus: Bus, key: RunKey, hold: int, at: datetime) -> None:
    name = f"{key.tenant}.{key.run}.{hold}.{int(at.timestamp() * 1000)}"
    await bus.set_timer(name, at, {"tenant": key.tenant, "run": key.run, "hold": hold})
