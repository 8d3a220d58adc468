"""What people are told of a hold: what waits, how much it moves, by which rule, until when, and where to decide it."""

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from contracts.events import Event
from contracts.facts import HoldEscalated, HoldExpired, ReminderSent, TurnHeld
from contracts.history import History
from contracts.money import Money
from contracts.turn import HeldTurn, Part, sums_in_words

from approvals.holds import HeldCall, held_turn, roles_awaited

READS = ("desk.run-started", "tools.turn-quoted", "policy.turn-held", "approvals.call-decided")
TELLS = ("policy.turn-held", "approvals.reminder-sent", "approvals.hold-escalated", "approvals.hold-expired")
# Characters of what an argument or an order may bring into a message.
LONGEST = 120


@dataclass(frozen=True, slots=True)
class Waiting:
    """One held call, as the queue shows it and no more: nobody's name, no text of the customer's or the model's."""

    call_id: str
    tool: str
    object: str | None
    amount_minor: int | None
    currency: str | None
    rule: str
    role: str
    people: int
    one_of_role: str | None
    count_of_role: int | None
    locale: str = ""

    @property
    def amount(self) -> str | None:
        if self.amount_minor is None or self.currency is None:
            return None
        return Money(self.amount_minor, self.currency).text(self.locale)


@dataclass(frozen=True, slots=True)
class Notice:
    """`id` is the fact's: the same notice told again bears it again. `roles` are who is asked now. `turn_held` is all
    of the turn, which runs whole once its last held call is decided."""

    id: str
    kind: str
    time: datetime
    tenant: str
    run: str
    reference: str
    turn: int
    roles: tuple[str, ...]
    calls: tuple[Waiting, ...]
    turn_held: HeldTurn
    locale: str
    expires_at: datetime
    link: str

    @property
    def total(self) -> str:
        """What the turn moves all together if what waits is released."""
        return sums_in_words(self.turn_held.total, self.locale)

    @property
    def beside(self) -> list[Part]:
        """The turn's other calls that move money with it."""
        told = {call.call_id for call in self.calls}
        return [part for part in self.turn_held.parts if part.money is not None and part.call_id not in told]

    @property
    def headline(self) -> str:
        amounts = [call.amount for call in self.calls if call.amount]
        expired = self.kind == "approvals.hold-expired"
        if not expired and any(not part.held for part in self.beside):
            amounts = [self.total]  # nobody is asked about them, and they are released with it
        what = " and ".join(amounts) if amounts else ("A call" if len(self.calls) == 1 else f"{len(self.calls)} calls")
        waits = "wait" if len(amounts or self.calls) > 1 else "waits"
        rest = self.beside and not self.turn_held.waiting
        done = f"it was not done; the rest of the turn, {self.total}, still is" if rest else "nothing was done"
        whom = f"the {' and '.join(self.roles)} role{'s' if len(self.roles) > 1 else ''}"
        return {
            "policy.turn-held": f"{what} on {self.reference} {waits} for {whom}",
            "approvals.reminder-sent": f"{what} on {self.reference} still {waits} for {whom}",
            "approvals.hold-escalated": f"{what} on {self.reference} {waits} for {whom} now",
            "approvals.hold-expired": f"{what} on {self.reference} expired: nobody decided, {done}",
        }[self.kind]


def notice(history: History, event: Event, console_url: str) -> Notice | None:
    """What people are told of this event; None for what they are not told of."""
    fact = event.fact
    if not isinstance(fact, TurnHeld | ReminderSent | HoldEscalated | HoldExpired) or history.started is None:
        return None
    if history.end is not None and not isinstance(fact, HoldExpired):
        return None  # it waits for nobody any more
    held = held_turn(history.behind(event), fact.turn)
    if held is None:
        return None
    concerned = None if isinstance(fact, TurnHeld) else set(fact.call_ids)
    calls = [call for call in held.calls.values() if concerned is None or call.hold.call_id in concerned]
    reference = history.started.ticket.reference
    return Notice(
        id=event.id,
        kind=event.kind,
        time=event.time,
        tenant=event.key.tenant,
        run=event.key.run,
        reference=reference,
        turn=fact.turn,
        roles=(fact.role,) if isinstance(fact, HoldEscalated) else roles_awaited(calls),
        calls=tuple(_waiting(call, history.started.locale or "") for call in calls),
        turn_held=held.whole,
        locale=history.started.locale or "",
        expires_at=held.fact.expires_at,
        link=f"{console_url.rstrip('/')}/tickets/{quote(reference, safe='')}",
    )


def _waiting(call: HeldCall, locale: str) -> Waiting:
    hold, quoted = call.hold, call.quote
    effect = quoted.effect if quoted else None
    return Waiting(
        call_id=hold.call_id,
        tool=quoted.tool[:LONGEST] if quoted else "a call",
        object=effect.object[:LONGEST] if effect else None,
        amount_minor=effect.amount_minor if effect else None,
        currency=effect.currency if effect else None,
        rule=hold.rule[:LONGEST],
        role=hold.needs.role,
        people=hold.needs.people,
        one_of_role=hold.needs.one_of_role,
        count_of_role=hold.needs.count_of_role,
        locale=locale,
    )
