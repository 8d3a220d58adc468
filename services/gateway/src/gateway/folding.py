"""The fold of a run's facts into its view."""

from collections.abc import Iterable

from contracts.events import Event
from contracts.facts import (
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
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.money import Money
from contracts.parts import CallQuote, Hold, Usage
from contracts.turn import sums_in_words

from gateway.held import HeldCall, Seat, held_anew
from gateway.views import Moved, RunView, blanked, moves, total

Spent = TurnProposed | ReplyGiven | AnswerUnfinished


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
        locale=fact.locale or "",
    )


def _spent(view: RunView, fact: object) -> dict[str, object]:
    """A model call is a step, and its cost and tokens add up."""
    if not isinstance(fact, Spent):
        return {}
    counts = ("input", "output", "cache_read", "cache_write")
    used = {name: getattr(view.usage, name) + getattr(fact.usage, name) for name in counts}
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
            return {
                "quotes": tuple(fact.quotes),
                "quotes_before": before,
                "held": tuple(_come_to(call, fact) for call in view.held),
                "along": _along(fact.quotes, view.held) if _of_held_turn(view, fact.turn) else view.along,
                "status": "running",
                "last_step": step,
            }
        case TurnHeld() as fact:
            quotes = {quote.call_id for quote in view.quotes}
            held = tuple(_held(view, event, fact, hold) for hold in fact.holds if hold.call_id in quotes)
            turn: dict[str, object] = {
                "held": held,
                "along": _along(view.quotes, held),
                "dropped": view.dropped if _of_held_turn(view, fact.turn) else (),
                "undone": (),
            }
            now = view.model_copy(update=turn).held_turn
            step = now.headline if held else f"Turn {fact.turn} waits for a decision"
            return {**turn, "status": "awaiting_approval", "last_step": step}
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
                "dropped": (*view.dropped, fact.call_id) if fact.decision == "decline" else view.dropped,
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
            return {
                "held": held,
                "dropped": (*view.dropped, *fact.call_ids),
                "status": "running",
                "last_step": "Nobody decided in time; nothing was done",
            }
        case TurnForwarded() as fact:
            return {"status": "running", "last_step": f"Turn {fact.turn} runs"}
        case TurnRefused() as fact:
            return {
                "held": tuple(
                    call.model_copy(update={"refused": fact.rule}) if call.turn == fact.turn else call
                    for call in view.held
                ),
                "status": "running",
                "read": event.ordinal,
                "last_step": f"Turn {fact.turn} was refused: {fact.rule}",
            }
        case TurnExecuted() as fact:
            failed = [result.call_id for result in fact.results if result.is_error]
            undone = tuple(result.call_id for result in fact.results if result.is_error or result.duplicate)
            return {
                "held": _of_calls(view, fact.turn, failed, failed=True),
                "undone": undone if _of_held_turn(view, fact.turn) else view.undone,
                "status": "running",
                "read": event.ordinal,
                "moved": total((*view.moved, *_moved(view, fact))),
                "last_step": _executed(view, fact),
            }
        case OutcomeUnknown():
            return {"last_step": "A payment may have been made; asking the provider"}
    return {}


def _held(view: RunView, event: Event, fact: TurnHeld, hold: Hold) -> HeldCall:
    now = next(quote for quote in view.quotes if quote.call_id == hold.call_id)
    known = next((call for call in view.held if (call.turn, call.call_id) == (fact.turn, hold.call_id)), None)
    before = next((quote for quote in view.quotes_before if quote.call_id == hold.call_id), None)
    return held_anew(event, fact, hold, now, known, before)


def _come_to(call: HeldCall, fact: TurnQuoted) -> HeldCall:
    """The held call with what it was quoted as now, where that is what a person changed it into."""
    if call.turn != fact.turn:
        return call
    now = next((quote for quote in fact.quotes if quote.call_id == call.call_id), None)
    changed = now is not None and now.edited is not None and now.digest != call.quote.digest
    return call.model_copy(update={"came_to": now if changed else None})


def _of_held_turn(view: RunView, turn: int) -> bool:
    return bool(view.held) and view.held[0].turn == turn


def _along(quotes: Iterable[CallQuote], held: tuple[HeldCall, ...]) -> tuple[CallQuote, ...]:
    """The turn's writes that nobody was asked about."""
    asked = {call.call_id for call in held}
    return tuple(quote for quote in quotes if quote.kind == "write" and quote.call_id not in asked)


def _of_calls(view: RunView, turn: int, call_ids: list[str], **changes: object) -> tuple[HeldCall, ...]:
    return tuple(
        call.model_copy(update=changes) if call.turn == turn and call.call_id in call_ids else call
        for call in view.held
    )


def _executed(view: RunView, fact: TurnExecuted) -> str:
    done = {result.call_id for result in fact.results if not result.is_error}
    effects = [quote.effect.summary for quote in view.quotes if quote.effect and quote.call_id in done]
    paid = total(_moved(view, fact))
    if len(effects) > 1 and paid:
        amounts = sums_in_words((Money(one.amount_minor, one.currency) for one in paid), view.locale)
        return f"Done: {amounts}: {'; '.join(effects)}"
    return f"Done: {effects[0]}" if effects else f"Turn {fact.turn} ran"


def _moved(view: RunView, fact: TurnExecuted) -> list[Moved]:
    """The money of the writes that were carried out: not of failed, declined or repeated ones."""
    quotes = {quote.call_id: quote for quote in view.quotes}
    declined = {call.call_id for call in view.held if call.turn == fact.turn and call.declined}
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
            return _end(event, fact.status, fact.reason) | {
                "handover": fact.handover,
                "uncertain_micro_usd": fact.uncertain_micro_usd or 0,
            }
        case RunCancelled() as fact:
            return _end(event, "cancelled", fact.reason or f"Stopped by {fact.by.subject}")
        case RunTakenOver() as fact:
            return _end(event, "taken_over", fact.reason or f"{fact.by.subject} took over")
        case RunFailed() as fact:
            return _end(event, "failed", fact.reason)
    return {}


def _end(event: Event, status: str, reason: str) -> dict[str, object]:
    return {"status": status, "reason": reason, "ended_at": event.time, "last_step": reason}
