"""What a run looks like from outside: the view that lists, details and the console read alike."""

from collections.abc import Iterable
from datetime import datetime

from contracts.facts import TERMINAL_STATUSES, Status
from contracts.money import Money
from contracts.parts import CallQuote, Customer, Limits, Person, Text, Usage
from contracts.personal import ERASED, erased
from contracts.turn import Held, HeldTurn, moved_by, totals

from gateway.held import HeldCall, Part, Seat

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


class Moved(Part):
    """Money that this run has moved to its customer, in minor units."""

    currency: str
    amount_minor: int


class RunView(Part):
    """One run, as far as it has come. `sequence` is that of the last fact in it, `held` are the calls last held.

    along: the writes that the held turn had beside, as they were quoted last. dropped: the calls of that turn that were
    declined, or expired, at whichever attempt; undone: those that were not carried out, though the turn ran.
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
    uncertain_micro_usd: int = 0
    usage: Usage = Usage()
    turn: int = 0
    quotes: tuple[CallQuote, ...] = ()
    quotes_before: tuple[CallQuote, ...] = ()
    held: tuple[HeldCall, ...] = ()
    along: tuple[CallQuote, ...] = ()
    dropped: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    reply: Text | None = None
    last_step: str = ""
    agent: str = ""
    locale: str = ""
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
    def held_turn(self) -> HeldTurn:
        """The turn that people were asked about last, as it is quoted now; one without calls if they never were."""
        held = {call_id: Held("declined") for call_id in self.dropped} | {c.call_id: c.stands for c in self.held}
        if self.quotes and self.held and self.held[0].turn == self.turn:
            return HeldTurn.of(self.quotes, held, self.locale)
        return HeldTurn.of([*(call.latest for call in self.held), *self.along], held, self.locale)

    @property
    def others(self) -> tuple[CallQuote, ...]:
        """The turn's other calls, which wait along."""
        held = {call.call_id for call in self.holds}
        return tuple(quote for quote in self.quotes if quote.call_id not in held)

    @property
    def at_stake(self) -> tuple[Moved, ...]:
        """What the waiting turn would move: its held calls, and those that wait along."""
        return moved(self.held_turn.total) if self.holds else ()

    @property
    def asked_for(self) -> tuple[Moved, ...]:
        """What the held turn was to move as the agent asked for it."""
        return moved(totals(moved_by(quote) for quote in (*(call.asked for call in self.held), *self.along)))

    @property
    def came_to(self) -> tuple[Moved, ...]:
        """What the held turn came to, as far as it has come: without what was declined, refused or not carried out."""
        if any(call.refused is not None for call in self.held):
            return ()
        undone = {*self.undone, *(call.call_id for call in self.held if call.came_to_nothing)}
        return moved(totals(part.money for part in self.held_turn.parts if part.call_id not in undone))


def waits_since(view: RunView) -> tuple[datetime, str]:
    """Orders the runs that wait for a person: the longest wait first."""
    return min(call.held_at for call in view.holds), view.run


def holds_something(view: RunView) -> bool:
    return bool(view.holds)


def without_texts(view: RunView) -> RunView:
    """What sums over many runs are made of: the view without what only its own page shows."""
    return view.model_copy(update={"body": "", "reply": None, "handover": None})


def moves(quote: CallQuote) -> Moved | None:
    """The money that a call would move, None for none: reads, and what will fail or had been made before."""
    money = moved_by(quote)
    return Moved(currency=money.currency, amount_minor=money.amount_minor) if money else None


def moved(amounts: Iterable[Money]) -> tuple[Moved, ...]:
    return tuple(Moved(currency=money.currency, amount_minor=money.amount_minor) for money in amounts)


def total(sums: Iterable[Moved]) -> tuple[Moved, ...]:
    """One sum a currency: currencies are never added together."""
    return moved(totals(Money(one.amount_minor, one.currency) for one in sums))


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
            "along": tuple(map(erased, view.along)),
        }
    )


def _erased_call(call: HeldCall) -> HeldCall:
    return call.model_copy(
        update={
            "quote": erased(call.quote),
            "was": erased(call.was) if call.was else None,
            "came_to": erased(call.came_to) if call.came_to else None,
            "seats": tuple(map(_without_note, call.seats)),
            "lapsed": tuple(map(_without_note, call.lapsed)),
        }
    )


def _without_note(seat: Seat) -> Seat:
    return seat.model_copy(update={"note": seat.note and ERASED})
