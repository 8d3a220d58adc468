"""What a run looks like from outside: one fold of its facts, read by lists, details and the console alike."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from contracts.edits import carries_over
from contracts.events import Event
from contracts.facts import (
    TERMINAL_STATUSES,
    AnswerUnfinished,
    CallDecided,
    CustomerSaid,
    HandedOver,
    HoldEscalated,
    HoldExpired,
    OutcomeUnknown,
    PersonSaid,
    ReminderSent,
    ReplyGiven,
    RunCancelled,
    RunEnded,
    RunErased,
    RunFailed,
    RunStarted,
    RunTakenOver,
    Status,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import CallQuote, Customer, Hold, Limits, Person, Text, Usage
from contracts.people import enough
from contracts.personal import ERASED, erased
from pydantic import BaseModel, ConfigDict

Spent = TurnProposed | ReplyGiven | AnswerUnfinished

# What a ticket becomes when its run ends so.
TICKET_STATUS: dict[str, str] = {
    "running": "in_progress",
    "awaiting_approval": "awaiting_approval",
    "awaiting_customer": "awaiting_customer",
    "resolved": "resolved",
    "escalated": "escalated",
    "budget_exhausted": "escalated",
    "failed": "escalated",
    "cancelled": "open",
    "taken_over": "in_progress",
}


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Seat(Part):
    """One person's decision on a held call. `carried`: given at an earlier attempt, and it stands for this one."""

    by: Person
    decision: Literal["approve", "decline"]
    note: str
    edited: bool
    at: datetime
    carried: bool = False


class HeldCall(Part):
    """A call that waits, or waited, for people: what it would do, why it is held, and who has decided so far.

    was: what was shown before, where the call has been quoted again since and would do something else now.
    lapsed: the approvals of that, which do not stand for this.
    """

    turn: int
    attempt: int
    call_id: str
    quote: CallQuote
    hold: Hold
    held_at: datetime
    expires_at: datetime
    seats: tuple[Seat, ...] = ()
    expired: bool = False
    was: CallQuote | None = None
    lapsed: tuple[Seat, ...] = ()
    escalate_at: datetime | None = None
    reminded_at: datetime | None = None
    escalated_to: str | None = None

    @property
    def approvals(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.decision == "approve"]

    @property
    def pending(self) -> bool:
        """Whether a decision is still missing. What counts in the end is the word of approvals and policy."""
        if self.expired or any(seat.decision == "decline" for seat in self.seats):
            return False
        if any(seat.edited and not seat.carried for seat in self.seats):
            return False  # it is being quoted with the changes
        return not enough(self.hold.needs, [seat.by for seat in self.approvals])


class Moved(Part):
    """Money that this run has moved to its customer, in minor units."""

    currency: str
    amount_minor: int


class RunView(Part):
    """One run, as far as it has come. `sequence` is that of the last fact in it, `held` are the calls last held.

    written, read: the ordinals of the customer's last message, and of the fact up to which the agent's next answer
    takes messages into account.
    """

    tenant: str
    run: str
    ticket: str
    channel: str
    subject: Text
    body: Text
    customer: Customer
    profile: str
    model: str
    prompt_version: str
    policy_pack: str
    toolset: str
    limits: Limits
    requested_by: Person
    started_at: datetime
    started_event: str
    updated_at: datetime
    sequence: int
    ordinal: int
    status: Status = "running"
    reason: str = ""
    handover: str | None = None
    ended_at: datetime | None = None
    steps: int = 0
    cost_micro_usd: int = 0
    usage: Usage = Usage()
    turn: int = 0
    quotes: tuple[CallQuote, ...] = ()
    quotes_before: tuple[CallQuote, ...] = ()
    held: tuple[HeldCall, ...] = ()
    moved: tuple[Moved, ...] = ()
    reply: Text | None = None
    last_step: str = ""
    agent: str = ""
    written: int = 0
    read: int = 0

    @property
    def erased(self) -> bool:
        """Whether its customer was erased: who it was about is not known any more."""
        return self.customer.email == ERASED

    @property
    def ended(self) -> bool:
        return self.status in TERMINAL_STATUSES

    @property
    def holds(self) -> tuple[HeldCall, ...]:
        """The held calls that still wait for a decision."""
        return tuple(held for held in self.held if held.pending) if self.status == "awaiting_approval" else ()

    @property
    def others(self) -> tuple[CallQuote, ...]:
        """The turn's other calls, which wait along."""
        held = {call.call_id for call in self.holds}
        return tuple(quote for quote in self.quotes if quote.call_id not in held)

    @property
    def at_stake(self) -> tuple[Moved, ...]:
        """What the waiting turn would move: its held calls, and those that wait along."""
        if not self.holds:
            return ()
        declined = {call.call_id for call in self.held if any(seat.decision == "decline" for seat in call.seats)}
        waiting = [quote for quote in self.quotes if quote.call_id not in declined]
        return total(money for quote in waiting if (money := moves(quote)) is not None)


def moves(quote: CallQuote) -> Moved | None:
    """The money that a call would move, None for none: reads, and what will fail or had been made before."""
    effect = quote.effect
    if effect is None or effect.amount_minor is None or effect.currency is None:
        return None
    if quote.will_fail is not None or quote.duplicate_of is not None:
        return None
    return Moved(currency=effect.currency, amount_minor=effect.amount_minor)


def total(sums: Iterable[Moved]) -> tuple[Moved, ...]:
    """One sum a currency: currencies are never added together."""
    by_currency: dict[str, int] = {}
    for one in sums:
        by_currency[one.currency] = by_currency.get(one.currency, 0) + one.amount_minor
    return tuple(Moved(currency=currency, amount_minor=amount) for currency, amount in sorted(by_currency.items()))


def fold(events: Iterable[Event]) -> RunView | None:
    """The view of a run's events, None for none."""
    view: RunView | None = None
    for event in events:
        view = evolve(view, event)
    return view


def evolve(view: RunView | None, event: Event) -> RunView | None:
    """The view with one more event. One that is in it already changes nothing, an unknown kind only its place."""
    if view is None:
        return _started(event, event.fact) if isinstance(event.fact, RunStarted) else None
    if event.ordinal <= view.ordinal:
        return view
    seen = view.model_copy(
        update={
            "sequence": event.sequence,
            "ordinal": event.ordinal,
            "updated_at": event.time,
            **_spent(view, event.fact),
        }
    )
    if isinstance(event.fact, RunErased):
        return blanked(seen, "The customer was erased")
    return seen.model_copy(update=_changes(seen, event))


def blanked(view: RunView, last_step: str) -> RunView:
    """The view without anything that its customer could be known by, but the shop's id."""
    return view.model_copy(
        update={
            "subject": ERASED,
            "body": ERASED,
            "customer": erased(view.customer),
            "reason": view.reason and ERASED,
            "handover": view.handover and ERASED,
            "reply": view.reply and ERASED,
            "last_step": last_step,
            "quotes": tuple(map(erased, view.quotes)),
            "quotes_before": tuple(map(erased, view.quotes_before)),
            "held": tuple(map(_erased_call, view.held)),
        }
    )


def _erased_call(call: HeldCall) -> HeldCall:
    return call.model_copy(
        update={
            "quote": erased(call.quote),
            "was": erased(call.was) if call.was else None,
            "seats": tuple(map(_without_note, call.seats)),
            "lapsed": tuple(map(_without_note, call.lapsed)),
        }
    )


def _without_note(seat: Seat) -> Seat:
    return seat.model_copy(update={"note": seat.note and ERASED})


def _started(event: Event, fact: RunStarted) -> RunView:
    return RunView(
        tenant=event.key.tenant,
        run=event.key.run,
        ticket=fact.ticket.reference,
        channel=fact.ticket.channel,
        subject=fact.ticket.subject,
        body=fact.ticket.body,
        customer=fact.ticket.customer,
        profile=fact.profile,
        model=fact.model,
        prompt_version=fact.prompt_version,
        policy_pack=fact.policy_pack,
        toolset=fact.toolset,
        limits=fact.limits,
        requested_by=fact.requested_by,
        started_at=event.time,
        started_event=event.id,
        updated_at=event.time,
        sequence=event.sequence,
        ordinal=event.ordinal,
        last_step="Reading the ticket",
    )


def _spent(view: RunView, fact: object) -> dict[str, object]:
    """A model call is a step, and its cost and tokens add up."""
    if not isinstance(fact, Spent):
        return {}
    used = {name: getattr(view.usage, name) + getattr(fact.usage, name) for name in Usage.model_fields}
    return {
        "steps": view.steps + 1,
        "cost_micro_usd": view.cost_micro_usd + fact.cost_micro_usd,
        "usage": Usage(**used),
    }


def _changes(view: RunView, event: Event) -> dict[str, object]:
    changes = _of_turn(view, event) or _of_talk(view, event) or _of_end(view, event)
    if view.ended:
        # What had happened is still recorded behind the end, but the end stands.
        changes.pop("status", None)
        changes.pop("last_step", None)
    return changes


def _of_turn(view: RunView, event: Event) -> dict[str, object]:
    match event.fact:
        case TurnProposed() as fact:
            tools = ", ".join(dict.fromkeys(call.tool for call in fact.calls))
            return {
                "turn": fact.turn,
                "agent": fact.agent,
                "quotes": (),
                "quotes_before": (),
                "status": "running",
                "last_step": f"Turn {fact.turn} proposes {tools}",
            }
        case TurnQuoted() as fact:
            effects = [quote.effect.summary for quote in fact.quotes if quote.effect]
            step = effects[0] if effects else f"Turn {fact.turn} is quoted"
            before = view.quotes if fact.attempt > 1 else ()
            return {"quotes": tuple(fact.quotes), "quotes_before": before, "status": "running", "last_step": step}
        case TurnHeld() as fact:
            quotes = {quote.call_id for quote in view.quotes}
            held = tuple(_held(view, event, fact, hold) for hold in fact.holds if hold.call_id in quotes)
            first = held[0].quote.effect if held else None
            step = first.summary if first else f"Turn {fact.turn} waits for a decision"
            return {"held": held, "status": "awaiting_approval", "last_step": step}
        case CallDecided() as fact:
            seat = Seat(
                by=fact.by, decision=fact.decision, note=fact.note, edited=fact.edited is not None, at=event.time
            )
            held = tuple(
                call.model_copy(update={"seats": (*call.seats, seat)})
                if (call.turn, call.call_id) == (fact.turn, fact.call_id)
                else call
                for call in view.held
            )
            said = "Approved" if fact.decision == "approve" else "Declined"
            said += " with changes" if fact.edited is not None else ""
            waits = any(call.pending for call in held)
            return {
                "held": held,
                "status": "awaiting_approval" if waits else "running",
                "last_step": f"{said} by {fact.by.subject}",
            }
        case ReminderSent() as fact:
            return {"held": _of_calls(view, fact.turn, fact.call_ids, reminded_at=event.time)}
        case HoldEscalated() as fact:
            held = _of_calls(view, fact.turn, fact.call_ids, escalated_to=fact.role)
            return {"held": held, "last_step": f"Passed on to {fact.role}s: {view.last_step}"}
        case HoldExpired() as fact:
            held = tuple(
                call.model_copy(update={"expired": True}) if call.call_id in fact.call_ids else call
                for call in view.held
            )
            return {"held": held, "status": "running", "last_step": "Nobody decided in time; nothing was done"}
        case TurnForwarded() as fact:
            return {"status": "running", "last_step": f"Turn {fact.turn} runs"}
        case TurnRefused() as fact:
            return {
                "status": "running",
                "read": event.ordinal,
                "last_step": f"Turn {fact.turn} was refused: {fact.rule}",
            }
        case TurnExecuted() as fact:
            return {
                "status": "running",
                "read": event.ordinal,
                "moved": total((*view.moved, *_moved(view, fact))),
                "last_step": _executed(view, fact),
            }
        case OutcomeUnknown():
            return {"last_step": "A payment may have been made; asking the provider"}
    return {}


def _held(view: RunView, event: Event, fact: TurnHeld, hold: Hold) -> HeldCall:
    """The call as it is held now: of a turn that was quoted again, with what it was before and what of it stands."""
    now = next(quote for quote in view.quotes if quote.call_id == hold.call_id)
    known = next((call for call in view.held if (call.turn, call.call_id) == (fact.turn, hold.call_id)), None)
    shown = known.quote if known else next((q for q in view.quotes_before if q.call_id == hold.call_id), None)
    changed = shown is not None and shown.digest != now.digest
    seats = known.seats if known else ()
    # An approval goes with the digest, not with the attempt; one with changes also with what the changes came to.
    carried = hold.edited_by is None and shown is not None and carries_over(shown, now)
    stands = [seat for seat in seats if not changed or (seat.edited and carried)]
    return HeldCall(
        turn=fact.turn,
        attempt=fact.attempt,
        call_id=hold.call_id,
        quote=now,
        hold=hold,
        held_at=event.time,
        expires_at=fact.expires_at,
        escalate_at=fact.escalate_at,
        seats=tuple(seat.model_copy(update={"carried": True}) for seat in stands),
        was=shown if changed else known.was if known else None,
        lapsed=tuple(seat for seat in seats if seat not in stands and seat.decision == "approve"),
    )


def _of_calls(view: RunView, turn: int, call_ids: list[str], **changes: object) -> tuple[HeldCall, ...]:
    return tuple(
        call.model_copy(update=changes) if call.turn == turn and call.call_id in call_ids else call
        for call in view.held
    )


def _executed(view: RunView, fact: TurnExecuted) -> str:
    done = {result.call_id for result in fact.results if not result.is_error}
    effects = [quote.effect.summary for quote in view.quotes if quote.effect and quote.call_id in done]
    return f"Done: {effects[0]}" if effects else f"Turn {fact.turn} ran"


def _moved(view: RunView, fact: TurnExecuted) -> list[Moved]:
    """The money of the writes that were carried out: not of failed, declined or repeated ones."""
    quotes = {quote.call_id: quote for quote in view.quotes}
    declined = {
        call.call_id
        for call in view.held
        if call.turn == fact.turn and any(seat.decision == "decline" for seat in call.seats)
    }
    return [
        money
        for result in fact.results
        if not result.is_error and not result.duplicate and result.call_id not in declined
        if (quote := quotes.get(result.call_id)) and (money := moves(quote))
    ]


def _of_talk(view: RunView, event: Event) -> dict[str, object]:
    match event.fact:
        case ReplyGiven() as fact:
            # What was written while the agent answered is answered next.
            if view.channel == "chat" and view.written <= view.read:
                return {
                    "reply": fact.text,
                    "status": "awaiting_customer",
                    "last_step": "Replied; waiting for the customer",
                }
            return {"reply": fact.text, "read": event.ordinal, "last_step": "Replied"}
        case AnswerUnfinished():
            return {"read": event.ordinal}
        case CustomerSaid() as fact:
            # A hold stays a hold, whatever the customer adds meanwhile.
            waiting = view.status == "awaiting_approval"
            idle = view.status == "awaiting_customer"
            return {
                "written": event.ordinal,
                "read": event.ordinal if idle else view.read,
                "status": view.status if waiting else "running",
                "last_step": f"{fact.by.subject} wrote as the customer" if fact.by else "The customer wrote",
            }
        case PersonSaid() as fact:
            return {"last_step": f"{fact.by.subject} wrote to the customer"}
        case HandedOver() as fact:
            return {"agent": fact.to_agent, "last_step": f"{fact.from_agent} handed over to {fact.to_agent}"}
    return {}


def _of_end(view: RunView, event: Event) -> dict[str, object]:
    match event.fact:
        case RunEnded() as fact:
            return _end(event, fact.status, fact.reason) | {"handover": fact.handover}
        case RunCancelled() as fact:
            return _end(event, "cancelled", fact.reason or f"Stopped by {fact.by.subject}")
        case RunTakenOver() as fact:
            return _end(event, "taken_over", fact.reason or f"{fact.by.subject} took over")
        case RunFailed() as fact:
            return _end(event, "failed", fact.reason)
    return {}


def _end(event: Event, status: str, reason: str) -> dict[str, object]:
    return {"status": status, "reason": reason, "ended_at": event.time, "last_step": reason}
