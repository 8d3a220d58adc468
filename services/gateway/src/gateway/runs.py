"""What people do with runs: start, write, stop, take over, decide. The API and the console both come through here."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import structlog
from contracts import asks
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Event, event_id
from contracts.facts import RunStarted
from contracts.handler import say
from contracts.history import History
from contracts.identity import Principal
from contracts.log import JetStreamLog
from contracts.models import DEFAULT_MODEL
from contracts.parts import CallQuote, Customer, Json, Limits, Ticket
from contracts.stops import stop
from contracts.subjects import TOKEN, RunKey
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from gateway import domain, tickets
from gateway.asking import ask
from gateway.database import Connection
from gateway.desk import Desk
from gateway.domain import Decision, Edited, Refusal, Said
from gateway.folding import fold
from gateway.held import HeldCall
from gateway.obstacles import Circumstances
from gateway.problems import Problem, not_found
from gateway.profiles import Tenant
from gateway.tickets import TicketView
from gateway.views import RunView

LONGEST_TICKET = 56  # so that `-<n>` still fits into a run's id


class StartRun(BaseModel):
    """Which agent shall work the ticket; limits other than its profile's, where they are given."""

    model_config = ConfigDict(extra="forbid")

    profile: str | None = None
    max_steps: int | None = Field(None, ge=1, le=200)
    max_cost_micro_usd: int | None = Field(None, ge=0, le=1_000_000_000)


@dataclass(frozen=True, slots=True)
class Started:
    run: str
    new: bool
    view: RunView


@dataclass(frozen=True, slots=True)
class Decided:
    """The recorded fact, as a CloudEvent. repeated: it had been recorded before; detail: what that is worth by now."""

    fact: Json
    repeated: bool
    detail: str | None


class Runs:
    def __init__(self, log: JetStreamLog, bus: Bus, desk: Desk, model: str | None) -> None:
        self._log = log
        self._bus = bus
        self._desk = desk
        self._model = model or DEFAULT_MODEL
        self.written = 0  # the last sequence that this process has appended: lists wait for it
        self.shown = 0  # the last sequence that it has read for somebody: who asks next may know of it

    async def read(self, tenant: str, run: str) -> RunView:
        """The run as its log has it now. Raises a 404."""
        view = fold((await self.history(tenant, run)).events)
        if view is None:
            raise not_found("run")
        return view

    async def history(self, tenant: str, run: str) -> History:
        """The run's facts. Raises a 404 for a run that is not there, or is another tenant's."""
        if not TOKEN.match(run):
            raise not_found("run")
        history = await self._log.read(RunKey(tenant, run))
        if history.head is None:
            raise not_found("run")
        self.shown = max(self.shown, history.head.sequence)
        return history

    async def start(
        self, ticket: TicketView, tenant: Tenant, asker: Principal, asked: StartRun, key: str, seen: int
    ) -> Started:
        """The ticket's next run; the one that is running, or that the same request started, if there is one.

        `seen` is the log's last sequence that was known here when the request came: a run that has ended behind it was
        still running then. Many who start a ticket in the same moment all get the one run, however short it is.
        """
        _is_somebodys(ticket)
        if len(ticket.ticket) > LONGEST_TICKET:
            raise Problem(422, "Name too long", f"A ticket's name has at most {LONGEST_TICKET} characters.")
        fact = self._first_fact(ticket, tenant, asker, asked)
        n = max(1, await self._desk.runs_so_far(asker.tenant, ticket.ticket))
        if (again := await self._started_before(asker.tenant, ticket.ticket, n, key)) is not None:
            return Started(again, False, _of_same_request(await self.read(asker.tenant, again), fact))
        while True:
            run = RunKey(asker.tenant, f"{ticket.ticket}-{n}")
            # What the ticket says goes into the log while nobody is erased from it: an erasure either finds the run
            # there, or was before it.
            async with self._desk.of(asker.tenant) as connection:
                fact = self._first_fact(await _kept(connection, ticket.ticket), tenant, asker, asked)
                outcome = await self._append(run, partial(domain.start, fact=fact, key=key))
            if isinstance(outcome, Event):
                return Started(run.run, True, await self.read(asker.tenant, run.run))
            history = await self.history(asker.tenant, run.run)
            mine = history.events[0].id == event_id(run, None, RunStarted.kind, key)
            if mine or history.end is None or history.end.sequence > seen:
                view = await self.read(asker.tenant, run.run)
                return Started(run.run, mine, _of_same_request(view, fact) if mine else view)
            n += 1

    async def _started_before(self, tenant: str, ticket: str, so_far: int, key: str) -> str | None:
        ids = [event_id(RunKey(tenant, f"{ticket}-{n}"), None, RunStarted.kind, key) for n in range(1, so_far + 1)]
        return await self._desk.run_started_by(tenant, ids)

    def _first_fact(self, ticket: TicketView, tenant: Tenant, asker: Principal, asked: StartRun) -> RunStarted:
        name = asked.profile or tenant.default_profile
        profile = tenant.profiles.get(name)
        if profile is None:
            known = ", ".join(tenant.profiles)
            raise Problem(
                422, "No such profile", f"There is no profile {name!r} here. Nothing was started. Use one of: {known}."
            )
        limits = profile.limits
        wanted = Limits(
            max_steps=asked.max_steps or limits.max_steps,
            max_cost_micro_usd=limits.max_cost_micro_usd
            if asked.max_cost_micro_usd is None
            else asked.max_cost_micro_usd,
        )
        raised = wanted.max_steps > limits.max_steps or wanted.max_cost_micro_usd > limits.max_cost_micro_usd
        if raised and not asker.may("limits"):
            raise Problem(403, "Above the profile's limits", "Only a lead may raise them. Nothing was started.")
        return RunStarted(
            ticket=Ticket(
                reference=ticket.ticket,
                channel="chat" if ticket.channel == "chat" else "ticket",
                customer=Customer(**ticket.customer.model_dump()),
                subject=ticket.subject,
                body=ticket.body,
                opened_at=ticket.opened_at,
            ),
            profile=name,
            requested_by=asker.person(),
            limits=wanted,
            model=profile.model or self._model,
            prompt_version=profile.prompt_version,
            policy_pack=tenant.policy_pack,
            toolset=profile.toolset,
            locale=tenant.locale or None,
            currency=tenant.currency or None,
        )

    async def say(self, run: str, asker: Principal, text: str, key: str) -> Event:
        return await self._said(run, asker, lambda history: domain.say(history, asker, text, key))

    async def cancel(self, run: str, asker: Principal, reason: str, key: str) -> Event:
        return await self._said(run, asker, lambda history: domain.cancel(history, asker, reason, key))

    async def take_over(self, run: str, asker: Principal, reason: str, key: str) -> Event:
        return await self._said(run, asker, lambda history: domain.take_over(history, asker, reason, key))

    async def decide(self, run: str, asker: Principal, token: str, decide: asks.Decide) -> Decided:
        """What the decision came to. Raises what approvals answers instead."""
        history = await self.history(asker.tenant, run)
        structlog.contextvars.bind_contextvars(tenant=asker.tenant, run=run, turn=decide.turn)
        stop("gateway.before-ask")
        asked = asks.AskDecide(token=SecretStr(token), run=run, **dict(decide))
        answer = await ask(self._bus, asks.DECIDE, asked, about=history.head)
        stop("gateway.after-ask")
        # The lists are asked to have seen this decision before they are shown again.
        head = await self._log.head(RunKey(asker.tenant, run))
        self.written = max(self.written, head.sequence if head else 0)
        return Decided(answer["event"], bool(answer.get("repeated")), answer.get("detail"))

    async def held(self, tenant: str, run: str, turn: int, call_id: str) -> tuple[RunView, HeldCall]:
        """The run and its call that waits for a decision. Raises a 404 for no such run, a 409 for no such call."""
        view = await self.read(tenant, run)
        for call in view.holds:
            if (call.turn, call.call_id) == (turn, call_id):
                return view, call
        raise Problem(
            409, "It does not wait", f"Turn {turn} of {run} has no call {call_id} that waits. Nothing was done; reload."
        )

    async def quote(
        self, run: str, asker: Principal, token: str, wanted: asks.Requote, circumstances: Circumstances
    ) -> Edited:
        """What a held call would do with other arguments. Raises what the tools service answers instead."""
        view, call = await self.held(asker.tenant, run, wanted.turn, wanted.call_id)
        asked = asks.AskQuote(token=SecretStr(token), run=run, **dict(wanted))
        answer = await ask(self._bus, asks.QUOTE, asked)
        was, now = (CallQuote.model_validate(answer[name], extra="ignore") for name in ("was", "quote"))
        return domain.edited(view, call, was, now, asker, circumstances.stops)

    async def fail(self, key: RunKey, letter_id: str) -> None:
        """Ends a run that its runner gave up on."""
        await say(self._log, key, lambda history: domain.fail(history, letter_id))

    async def _said(self, run: str, asker: Principal, decide: Callable[[History], Decision]) -> Event:
        await self.history(asker.tenant, run)
        outcome = await self._append(RunKey(asker.tenant, run), decide)
        if isinstance(outcome, Refusal):
            raise Problem(outcome.status, outcome.title, outcome.detail)
        return outcome.event if isinstance(outcome, Said) else outcome

    async def _append(self, key: RunKey, decide: Callable[[History], Decision]) -> Event | Said | Refusal:
        """Decides over what the log holds and appends it; decides again whenever the run has grown meanwhile."""
        structlog.contextvars.bind_contextvars(tenant=key.tenant, run=key.run)
        outcome: Event | Said | Refusal
        try:
            outcome = await say(self._log, key, decide)
        except Outage:
            outcome = await say(self._log, key, decide)  # taken or not, the run itself will tell
        if isinstance(outcome, Event):
            self.written = max(self.written, outcome.sequence)
        return outcome


async def _kept(connection: Connection, reference: str) -> TicketView:
    ticket = await tickets.kept(connection, reference)
    if ticket is None:
        raise not_found("ticket")
    return _is_somebodys(ticket)


def _is_somebodys(ticket: TicketView) -> TicketView:
    """The ticket. Raises a 409 where its customer was erased."""
    if ticket.erased:
        raise Problem(domain.NOBODY_LEFT.status, domain.NOBODY_LEFT.title, domain.NOBODY_LEFT.detail)
    return ticket


def _of_same_request(view: RunView, fact: RunStarted) -> RunView:
    """The run that a key started. Raises a 422 where it was asked for otherwise then."""
    if (view.profile, view.limits) != (fact.profile, fact.limits):
        raise Problem(domain.KEY_TAKEN.status, domain.KEY_TAKEN.title, domain.KEY_TAKEN.detail)
    return view
