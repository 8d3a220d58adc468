"""The rows of facts that stand for themselves."""

import json
from typing import Any

from contracts.events import Event
from contracts.facts import (
    AnswerUnfinished,
    CustomerSaid,
    DecisionRefused,
    HandedOver,
    HoldEscalated,
    HoldExpired,
    OutcomeSettled,
    OutcomeUnknown,
    PersonSaid,
    ReminderSent,
    RunCancelled,
    RunEnded,
    RunErased,
    RunFailed,
    RunTakenOver,
)

from gateway.console.rows import Row, row
from gateway.console.words import ICON, STATUS, TONE, plural, spend


def told(event: Event) -> Row:
    """The row of a fact that stands for itself. A kind that is not known here is shown as it is, never dropped."""
    match event.fact:
        case CustomerSaid() as fact:
            typed_by = f"typed by {fact.by.subject}" if fact.by else ""
            return row(event, "chat", "Customer", detail=typed_by, says=fact.text)
        case PersonSaid() as fact:
            return row(event, "reply", f"{fact.by.subject} replied", says=fact.text)
        case RunErased() as fact:
            return row(event, "no", "Erased", detail=f"{fact.by.subject} had the customer erased")
        case HandedOver() as fact:
            return row(event, "fwd", f"{fact.from_agent} handed over to {fact.to_agent}", detail=_note(fact.note))
        case AnswerUnfinished() as fact:
            after = {"continue": "it goes on", "retry": "it is asked again", "end": "the run ends"}[fact.next]
            return row(event, "clock", "Answer unfinished", detail=f"{fact.stop_reason}; {after}")
        case DecisionRefused() as fact:
            title = f"{fact.by.subject} could not {fact.decision}"
            return row(event, "no", title, detail=fact.reason)
        case ReminderSent() as fact:
            return row(event, "clock", "Reminder sent", detail=f"to {fact.role}s; nobody has decided yet")
        case HoldEscalated() as fact:
            return row(event, "person", "Passed on", detail=f"a {fact.role} may decide now", tone="hold")
        case HoldExpired():
            return row(event, "clock", "Expired", detail="nobody decided in time; nothing was done", tone="hold")
        case OutcomeUnknown():
            return row(
                event,
                "clock",
                "Payment may have been made",
                detail="asking the provider with the same key",
                tone="hold",
            )
        case OutcomeSettled() as fact:
            outcome = "the payment was made" if fact.outcome == "done" else "the payment was not made"
            return row(event, "check", "Outcome known", detail=f"{outcome}, said {fact.by}")
        case RunEnded() as fact:
            return row(
                event,
                ICON[fact.status],
                f"Run ended: {STATUS[fact.status].lower()}",
                detail=fact.reason,
                says=fact.handover or "",
                meta=f"{plural(fact.steps, 'step')} · {spend(fact.cost_micro_usd)}",
                tone=TONE.get(fact.status, ""),
            )
        case RunCancelled() as fact:
            return row(
                event, "flag", f"Stopped by {fact.by.subject}", detail="what was done stays done", quoted=fact.reason
            )
        case RunTakenOver() as fact:
            return row(
                event, "person", f"{fact.by.subject} took over", detail="the agent has stopped", quoted=fact.reason
            )
        case RunFailed() as fact:
            return row(event, "x", "Run failed", detail=fact.reason, tone="bad")
    return row(event, "dot", event.kind, says=json.dumps(event.opened_document().get("data"), ensure_ascii=False))


def _note(note: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {item}" for name, item in note.items() if isinstance(item, str | int))
