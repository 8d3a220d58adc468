"""The rows of what was set for a whole tenant."""

from collections.abc import Iterable
from typing import Any

from contracts.events import Event
from contracts.parts import Person
from contracts.tenant_facts import (
    BudgetSet,
    CustomerErased,
    PolicyPromoted,
    StopLifted,
    StopSet,
    SubscriberAdded,
    SubscriberRemoved,
)

from gateway.audit import Row, line, named, place


def of_tenant(events: Iterable[Event]) -> list[Row]:
    """The rows of the facts of a tenant's own line, in order."""
    return [row for event in events if (row := _row(event))]


def _row(event: Event) -> Row | None:
    match event.fact:
        case StopSet() as fact:
            what = fact.tool or "everything that changes something"
            return _by(event, fact.by, "set a stop", what, amount_minor=fact.above_minor, why=line(fact.reason))
        case StopLifted() as fact:
            return _by(event, fact.by, "lifted a stop", fact.stop_id, why=line(fact.reason))
        case PolicyPromoted() as fact:
            warned = line(" ".join(fact.warnings or ()))
            return _by(event, fact.by, "put a policy in force", named(fact.pack), policy=named(fact.pack), why=warned)
        case BudgetSet() as fact:
            what = "no limit" if fact.day_micro_usd is None else f"{fact.day_micro_usd} micro-dollars a day"
            return _by(event, fact.by, "set the budget of model calls", what)
        case CustomerErased() as fact:
            return _by(event, fact.by, "erased a customer", fact.customer)
        case SubscriberAdded() as fact:
            return _by(event, fact.by, "let a subscriber hear the facts", fact.subscriber)
        case SubscriberRemoved() as fact:
            return _by(event, fact.by, "shut a subscriber out", fact.subscriber)
    return None


def _by(event: Event, by: Person, did: str, what: str, **more: Any) -> Row:
    return Row(
        **place(event),
        actor="person",
        who=by.subject,
        who_issuer=by.issuer,
        role=by.role,
        did=did,
        what=line(what),
        **more,
    )
