"""What people are told of a hold: what waits, how much it moves, by which rule, until when, and where to decide it."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from contracts.events import Event
from contracts.facts import HoldEscalated, HoldExpired, ReminderSent, TurnHeld, TurnQuoted
from contracts.history import History
from contracts.money import Money
from contracts.parts import CallQuote, Hold

READS = ("desk.run-started", "tools.turn-quoted", "policy.turn-held")
TELLS = ("policy.turn-held", "approvals.reminder-sent", "approvals.hold-escalated", "approvals.hold-expired")
# Characters of what an argument or an order may bring into a message.
LONGEST = 120


@dataclass(frozen=True, slots=True)
class Waiting:
    """One held call, as the queue shows it and no more: nobody's name, no text of the customer's or the model's."""

    tool: str
    object: str | None
    amount_minor: int | None
    currency: str | None
    rule: str
    role: str
    people: int

    @property
    def amount(self) -> str | None:
        if self.amount_minor is None or self.currency is None:
            return None
        return Money(self.amount_minor, self.currency).text()


@dataclass(frozen=True, slots=True)
class Notice:
    """`id` is the fact's: the same notice told again bears it again. `role` is who is asked now."""

    id: str
    kind: str
    time: datetime
    tenant: str
    run: str
    reference: str
    turn: int
    role: str
    calls: tuple[Waiting, ...]
    expires_at: datetime
    link: str

    @property
    def headline(self) -> str:
        amounts = [call.amount for call in self.calls if call.amount]
        what = " and ".join(amounts) if amounts else ("A call" if len(self.calls) == 1 else f"{len(self.calls)} calls")
        waits = "wait" if len(self.calls) > 1 else "waits"
        return {
            "policy.turn-held": f"{what} on {self.reference} {waits} for the {self.role} role",
            "approvals.reminder-sent": f"{what} on {self.reference} still {waits} for the {self.role} role",
            "approvals.hold-escalated": f"{what} on {self.reference} {waits} for the {self.role} role now",
            "approvals.hold-expired": f"{what} on {self.reference} expired: nobody decided, nothing was done",
        }[self.kind]


def notice(history: History, event: Event, console_url: str) -> Notice | None:
    """What people are told of this event; None for what they are not told of."""
    fact = event.fact
    if not isinstance(fact, TurnHeld | ReminderSent | HoldEscalated | HoldExpired) or history.started is None:
        return None
    before = history.behind(event)
    held = next((f for f in reversed(before.all(TurnHeld)) if f.turn == fact.turn), None)
    if held is None:
        return None
    concerned = None if isinstance(fact, TurnHeld) else set(fact.call_ids)
    holds = [hold for hold in held.holds if concerned is None or hold.call_id in concerned]
    quotes = {quote.call_id: quote for f in before.all(TurnQuoted) if f.turn == fact.turn for quote in f.quotes}
    reference = history.started.ticket.reference
    return Notice(
        id=event.id,
        kind=event.kind,
        time=event.time,
        tenant=event.key.tenant,
        run=event.key.run,
        reference=reference,
        turn=fact.turn,
        role=fact.role if isinstance(fact, ReminderSent | HoldEscalated) else _role(holds),
        calls=tuple(_waiting(hold, quotes.get(hold.call_id)) for hold in holds),
        expires_at=held.expires_at,
        link=f"{console_url.rstrip('/')}/tickets/{quote(reference, safe='')}",
    )


def _waiting(hold: Hold, quoted: CallQuote | None) -> Waiting:
    effect = quoted.effect if quoted else None
    return Waiting(
        tool=quoted.tool[:LONGEST] if quoted else "a call",
        object=effect.object[:LONGEST] if effect else None,
        amount_minor=effect.amount_minor if effect else None,
        currency=effect.currency if effect else None,
        rule=hold.rule[:LONGEST],
        role=hold.needs.role,
        people=hold.needs.people,
    )


def _role(holds: list[Hold]) -> str:
    return "approver" if any(hold.needs.role == "approver" for hold in holds) else "lead"
