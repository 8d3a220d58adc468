"""The ticket queue: one line a ticket, in groups by what it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from contracts.identity import Principal

from gateway.console import words
from gateway.texts import excerpt
from gateway.tickets import TicketView
from gateway.views import Moved, RunView, total

GROUPS = (
    ("decision", "Needs a decision"),
    ("running", "Running now"),
    ("customer", "Waiting for the customer"),
    ("person", "With a person"),
    ("new", "Not started"),
    ("done", "Done"),
)
# What each filter of the page lists, by the tickets' status.
FILTERS = {
    "open": ("Open", ("open", "in_progress", "awaiting_approval", "awaiting_customer", "escalated")),
    "held": ("Held", ("awaiting_approval",)),
    "done": ("Done", ("resolved",)),
    "all": ("All", ("open", "in_progress", "awaiting_approval", "awaiting_customer", "escalated", "resolved")),
}

# The groups that a filter's tickets can be in.
GROUPS_OF = {
    "open": ("decision", "running", "customer", "person", "new"),
    "held": ("decision",),
    "done": ("done",),
    "all": tuple(name for name, _ in GROUPS),
}


@dataclass(frozen=True, slots=True)
class Line:
    ticket: str
    subject: str
    customer: str
    state: str
    group: str
    last_step: str
    owner: str
    can_start: bool
    stake: tuple[Moved, ...]
    opened: datetime
    changed: datetime
    held: datetime | None
    urgent: bool
    waits: str = ""

    @property
    def at_stake(self) -> str:
        return words.sums(self.stake)


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    title: str
    lines: tuple[Line, ...]

    @property
    def at_stake(self) -> str:
        return words.sums(total(one for line in self.lines for one in line.stake))


def line(ticket: TicketView, asker: Principal, now: datetime, waits: str = "") -> Line:
    """waits: that its run waits for its model, in words, where it does."""
    view = ticket.latest
    group = _group(ticket.status, view)
    return Line(
        ticket=ticket.ticket,
        subject=words.subject(ticket.subject),
        customer=ticket.customer.name or ticket.customer.email,
        state=_state(ticket.status, view),
        group=group,
        last_step=_last_step(view) if view else excerpt(ticket.body, 160),
        owner=_owner(ticket.status, view, asker),
        can_start=ticket.status == "open" and not ticket.erased and asker.may("run"),
        stake=view.at_stake if view else (),
        opened=ticket.opened_at,
        changed=view.updated_at if view else ticket.opened_at,
        held=min((call.held_at for call in view.holds), default=None) if view else None,
        waits=waits,
        urgent=view is not None and any(call.expires_at - now < timedelta(minutes=20) for call in view.holds),
    )


def counts(statuses: Mapping[str, int]) -> dict[str, int]:
    """How many tickets each filter lists, given how many stand in each status."""
    return {name: sum(statuses.get(status, 0) for status in those) for name, (_, those) in FILTERS.items()}


def groups(lines: list[Line]) -> list[Group]:
    """In the order of urgency. First in each is what has waited longest: for its decision, else since it was opened. Of
    what is done the latest is first."""
    found = []
    for name, title in GROUPS:
        members = [one for one in lines if one.group == name]
        if members:
            members.sort(key=_waits_since if name != "done" else _changed, reverse=name == "done")
            found.append(Group(name, title, tuple(members)))
    return found


def _waits_since(line: Line) -> tuple[datetime, str]:
    return line.held or line.opened, line.ticket


def _changed(line: Line) -> tuple[datetime, str]:
    return line.changed, line.ticket


def _group(status: str, view: RunView | None) -> str:
    if status == "resolved":
        return "done"
    if status == "awaiting_approval" or (status == "escalated" and view and view.status == "failed"):
        return "decision"
    if status == "awaiting_customer":
        return "customer"
    if status == "open":
        return "new"
    return "person" if view is None or view.ended else "running"


def _state(status: str, view: RunView | None) -> str:
    """The run's status where there is a run that counts; else the ticket's."""
    return status if view is None or status in ("open", "resolved") else view.status


def _last_step(view: RunView) -> str:
    """Where an approval moved nothing the end alone would not tell: it is said before it."""
    refused = [call.refused for call in view.held if call.came_to_nothing and call.refused]
    return f"Approved, then refused: {refused[0]}. {view.last_step}" if view.ended and refused else view.last_step


def _owner(status: str, view: RunView | None, asker: Principal) -> str:
    if view is None or status == "open":
        return ""
    if view.status in ("escalated", "budget_exhausted", "failed", "taken_over"):
        return "A person"
    if view.holds:
        return words.awaited(view.holds[0])
    by = view.requested_by
    return "You, agent" if (by.subject, by.issuer) == (asker.subject, asker.issuer) else "Agent"
