"""What the API answers with: the run, ticket and approval of OpenAPI, made from the views."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from contracts.identity import Principal
from contracts.model_wait import ModelWait
from contracts.money import Money
from contracts.parts import CallQuote, Customer, Effect, Json, Needs, Pack, Person
from contracts.turn import State
from pydantic import BaseModel

from gateway.audit import Row
from gateway.domain import Edited, may_decide
from gateway.held import HeldCall, Seat
from gateway.histories import History
from gateway.obstacles import Circumstances, Obstacle, obstacles, refusing
from gateway.tenant_facts import Promoted, Stop
from gateway.tickets import TicketView
from gateway.views import Moved, RunView, moved


class TurnPart(BaseModel):
    """One call of a held turn. state: it `waits`, was `approved`, `declined` or `expired`, runs `along` without anybody
    being asked, `fails`, or was made before (`repeated`). The amount is what it moves if the turn runs."""

    call_id: str
    tool: str
    summary: str
    state: State
    held: bool
    changed: bool
    amount_minor: int | None
    currency: str | None


class HeldTurn(BaseModel):
    """The turn that people were asked about last: what it moves all together, one sum a currency, and its calls. A turn
    runs whole, without what was declined, once its last held call is decided. came_to: what became of that sum."""

    turn: int
    total: list[Moved]
    came_to: list[Moved]
    parts: list[TurnPart]


class Releases(BaseModel):
    """What an approval of the call releases: the turn's total. now: at once; else these other calls, and so many
    further people for this one, are waited for first. declining: what a decline of it pays all the same."""

    now: bool
    total: list[Moved]
    waits_for: list[str]
    more_people: int
    declining: list[Moved]


class Hold(BaseModel):
    """A call that waits for a decision: its digest goes back with the decision. Where it was quoted again and would do
    something else now, `was` is what it would have done, and `lapsed` are the approvals of that, which do not count."""

    turn: int
    attempt: int
    call_id: str
    tool: str
    arguments: Json
    digest: str
    rule: str
    reason: str
    needs: Needs
    effect: Effect | None
    decisions: list[Seat]
    held_at: datetime
    expires_at: datetime
    was: CallQuote | None = None
    lapsed: list[Seat] = []
    edited_by: Person | None = None
    escalate_at: datetime | None = None
    reminded_at: datetime | None = None
    escalated_to: str | None = None
    releases: Releases | None = None
    obstacles: list[Obstacle] = []


class OtherCall(BaseModel):
    """A call of the same turn that needs no decision and waits along."""

    call_id: str
    tool: str
    kind: str
    effect: Effect | None
    will_fail: str | None


class Run(BaseModel):
    """model_wait: since when it waits for its model, for which request of its step, and, where the model is `away`, how
    the last one went. uncertain_micro_usd: what may have to be paid beside its cost, once it has ended."""

    run: str
    ticket: str
    channel: str
    subject: str
    customer: Customer
    status: str
    reason: str
    handover: str | None
    steps: int
    max_steps: int
    cost_micro_usd: int
    max_cost_micro_usd: int
    turn: int
    profile: str
    model: str
    requested_by: Person
    started_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    last_step: str
    reply: str | None
    holds: list[Hold]
    moved: list[Moved]
    sequence: int
    uncertain_micro_usd: int = 0
    model_wait: ModelWait | None = None
    locale: str = ""
    held_turn: HeldTurn | None = None


class Runs(BaseModel):
    """`total` is how many there are of these statuses, over all pages."""

    runs: list[Run]
    next: str | None
    total: int


class Ticket(BaseModel):
    ticket: str
    status: str
    channel: str
    subject: str
    body: str
    customer: Customer
    opened_at: datetime
    run: str | None
    runs: list[Run] | None = None


class Tickets(BaseModel):
    """`total` is how many there are of these statuses, over all pages."""

    tickets: list[Ticket]
    next: str | None
    total: int


class CustomerHistory(BaseModel):
    """What the desk knows of the customer from earlier runs."""

    runs: int
    moved: list[Moved]
    last: datetime | None


class You(BaseModel):
    """Whether the asker can decide on it, and if not, why."""

    may: bool
    why: str | None


class Quote(BaseModel):
    """What a held call would do with other arguments, beside what it would do now. `you.may`: whether your approval
    would stand for it, because it only lowers the money. `held_anew`: whether it could be sent, but then waits for
    somebody else."""

    was: CallQuote
    quote: CallQuote
    you: You
    held_anew: bool


class PendingHold(Hold):
    you: You


class Approval(BaseModel):
    run: str
    ticket: str
    subject: str
    customer: Customer
    customer_said: str
    requested_by: Person
    held_at: datetime
    expires_at: datetime
    holds: list[PendingHold]
    others: list[OtherCall]
    history: CustomerHistory
    locale: str = ""
    total: list[Moved] = []
    held_turn: HeldTurn | None = None


class Approvals(BaseModel):
    """`total` is how many wait, over all pages, and `at_stake` what they would move."""

    approvals: list[Approval]
    total: int
    at_stake: list[Moved]
    next: str | None


class RunStartedAnswer(BaseModel):
    run: str
    status: str


class Accepted(BaseModel):
    run: str
    event: str


class Events(BaseModel):
    """The facts as CloudEvents, in order."""

    events: list[dict[str, Any]]


class Audit(BaseModel):
    rows: list[Row]
    next: str | None


class StandingStop(Stop):
    """`above` is the amount of `above_minor` as people read it."""

    above: str | None = None


class Stops(BaseModel):
    """The stops that stand, the oldest first."""

    stops: list[StandingStop]


def stops(standing: Iterable[Stop], currency: str, locale: str) -> Stops:
    def above(stop: Stop) -> str | None:
        return None if stop.above_minor is None else Money(stop.above_minor, currency).text(locale)

    return Stops(stops=[StandingStop(**dict(stop), above=above(stop)) for stop in standing])


class Policy(BaseModel):
    text: str
    pack: Pack | None
    by: Person | None
    at: datetime | None


def policy(text: str, promoted: Promoted | None) -> Policy:
    if promoted is None:
        return Policy(text=text, pack=None, by=None, at=None)
    return Policy(text=text, pack=promoted.pack, by=promoted.by, at=promoted.at)


def hold(view: RunView, call: HeldCall, circumstances: Circumstances | None = None) -> Hold:
    return Hold(
        turn=call.turn,
        attempt=call.attempt,
        call_id=call.call_id,
        tool=call.quote.tool,
        arguments=call.quote.arguments,
        digest=call.hold.digest,
        rule=call.hold.rule,
        reason=call.hold.reason,
        needs=call.hold.needs,
        effect=call.quote.effect,
        decisions=list(call.seats),
        held_at=call.held_at,
        expires_at=call.expires_at,
        was=call.was,
        lapsed=list(call.lapsed),
        edited_by=call.hold.edited_by,
        escalate_at=call.escalate_at,
        reminded_at=call.reminded_at,
        escalated_to=call.escalated_to,
        releases=_releases(view, call),
        obstacles=obstacles(view, call, circumstances) if circumstances else [],
    )


def _releases(view: RunView, call: HeldCall) -> Releases:
    turn = view.held_turn
    release, declining = turn.release(call.call_id), turn.release(call.call_id, "decline")
    return Releases(
        now=release.now,
        total=list(moved(release.total)),
        waits_for=list(release.waits_for),
        more_people=release.more_people,
        declining=list(moved(declining.total)),
    )


def held_turn(view: RunView) -> HeldTurn | None:
    if not view.held:
        return None
    turn = view.held_turn
    return HeldTurn(
        turn=view.held[0].turn,
        total=list(moved(turn.total)),
        came_to=list(view.came_to),
        parts=[
            TurnPart(
                call_id=part.call_id,
                tool=part.quote.tool,
                summary=part.summary,
                state=part.state,
                held=part.held,
                changed=part.changed,
                amount_minor=part.money.amount_minor if part.money else None,
                currency=part.money.currency if part.money else None,
            )
            for part in turn.parts
        ],
    )


def run(view: RunView, wait: ModelWait | None = None, circumstances: Circumstances | None = None) -> Run:
    return Run(
        **{
            name: getattr(view, name)
            for name in Run.model_fields
            if hasattr(view, name) and name not in ("holds", "moved", "held_turn")
        },
        model_wait=wait,
        max_steps=view.limits.max_steps,
        max_cost_micro_usd=view.limits.max_cost_micro_usd,
        holds=[hold(view, call, circumstances) for call in view.holds],
        moved=list(view.moved),
        held_turn=held_turn(view),
    )


def ticket(
    view: TicketView, runs: list[RunView] | None = None, waits: Callable[[RunView], ModelWait | None] = lambda _: None
) -> Ticket:
    return Ticket(
        **{name: getattr(view, name) for name in Ticket.model_fields if name != "runs"},
        runs=None if runs is None else [run(one, waits(one)) for one in runs],
    )


def approval(view: RunView, asker: Principal, others: History, circumstances: Circumstances) -> Approval:
    """`others` are the customer's other runs."""
    return Approval(
        run=view.run,
        ticket=view.ticket,
        subject=view.subject,
        customer=view.customer,
        customer_said=view.body,
        locale=view.locale,
        requested_by=view.requested_by,
        held_at=min(call.held_at for call in view.holds),
        expires_at=min(call.expires_at for call in view.holds),
        holds=[
            PendingHold(**hold(view, call, circumstances).model_dump(), you=_you(view, call, asker, circumstances))
            for call in view.holds
        ],
        others=[
            OtherCall(call_id=q.call_id, tool=q.tool, kind=q.kind, effect=q.effect, will_fail=q.will_fail)
            for q in view.others
        ],
        history=history(others),
        total=list(view.at_stake),
        held_turn=held_turn(view),
    )


def _you(view: RunView, call: HeldCall, asker: Principal, circumstances: Circumstances) -> You:
    barred = may_decide(view, call, asker, "approve")
    why = barred.detail if barred else refusing(view, call, circumstances)
    return You(may=why is None, why=why)


def quote(edited: Edited) -> Quote:
    anew = edited.refused is None and not edited.stands
    why = "It is not only less money: it is held anew, and you count as who asked for it." if anew else edited.refused
    return Quote(was=edited.was, quote=edited.now, you=You(may=edited.stands, why=why), held_anew=anew)


def history(others: History) -> CustomerHistory:
    return CustomerHistory(runs=others.runs, moved=list(others.moved), last=others.last)
