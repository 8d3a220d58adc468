"""Facts, runs and tickets as one person may see them: whole, or with a pseudonym for their customer."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from contracts.canonical import canonical
from contracts.events import Event
from contracts.facts import RunStarted
from contracts.identity import Principal
from contracts.parts import Customer, Json
from contracts.personal import plan_of, rewritten, take_out

from gateway.held import HeldCall, Seat
from gateway.redaction import Redaction
from gateway.tickets import TicketView
from gateway.views import RunView, blanked

if TYPE_CHECKING:
    from gateway.ports import Gateway

# Characters of one text for who is shown it without personal data: looking for that takes its time.
LONGEST = 1000
T = TypeVar("T")


def sees_customers(asker: Principal) -> bool:
    """Whoever works tickets has their customers before them; who audits only needs to know that it is the same one."""
    return asker.may("personal")


def shown(event: Event, asker: Principal) -> Json:
    """The CloudEvent with what was sealed in it, or with `[erased]` where that is lost. For who may not see customers
    it is as the log has it, sealed; what was never sealed is taken out.

    The sealed form stays in it, so that who gets it can check the chain without a key.
    """
    if sees_customers(asker) or event.personal == "erased":
        return event.opened_document()
    document = event.document()
    if event.personal == "clear":
        take_out(plan_of(event.kind), document["data"])
    return document


def text(event: Event, asker: Principal) -> str:
    """The same on one line."""
    if event.personal == "clear" and sees_customers(asker):
        return event.payload.decode()
    return canonical(shown(event, asker)).decode()


async def sight(ports: "Gateway", asker: Principal) -> "Sight":
    """How this person sees customers."""
    if sees_customers(asker):
        return Sight(None)
    key = await ports.desk.pseudonym_key(asker.tenant)
    return Sight(Redaction(key, ports.tenants.of(asker.tenant).currency))


class Sight:
    """Everything as it is, or with pseudonyms for customers and what is found of them taken out of texts."""

    def __init__(self, redaction: Redaction | None) -> None:
        self._redaction = redaction

    @property
    def whole(self) -> bool:
        return self._redaction is None

    async def facts(self, events: Iterable[Event], customer: Customer | None) -> tuple[Event, ...]:
        """Facts of one run, whose case is that customer's."""
        redaction = self._redaction
        if redaction is None:
            return tuple(events)
        return await _each(events, lambda event: _event(event, redaction, customer))

    async def runs(self, views: Iterable[RunView]) -> list[RunView]:
        redaction = self._redaction
        return list(views) if redaction is None else list(await _each(views, lambda view: _run(view, redaction)))

    async def run(self, view: RunView) -> RunView:
        return (await self.runs([view]))[0]

    async def tickets(self, tickets: Iterable[TicketView]) -> list[TicketView]:
        redaction = self._redaction
        if redaction is None:
            return list(tickets)
        return list(await _each(tickets, lambda ticket: _ticket(ticket, redaction)))

    async def ticket(self, ticket: TicketView) -> TicketView:
        return (await self.tickets([ticket]))[0]


async def _each(items: Iterable[T], change: Callable[[T], T]) -> tuple[T, ...]:
    """Not on the event loop: patterns take their time."""
    return await asyncio.to_thread(lambda: tuple(change(item) for item in items))


def _texts(redaction: Redaction, customer: Customer | None) -> Callable[[str], str]:
    def without(text: str) -> str:
        return redaction.text(text, customer, most=LONGEST)

    return without


def _alias(redaction: Redaction, customer: Customer) -> Customer:
    return Customer(email=redaction.pseudonym(customer))


def _event(event: Event, redaction: Redaction, customer: Customer | None) -> Event:
    if event.fact is None or event.personal == "erased":
        return event
    fact = rewritten(event.fact, _texts(redaction, customer))
    if isinstance(fact, RunStarted) and customer is not None:
        ticket = fact.ticket.model_copy(update={"customer": _alias(redaction, customer)})
        fact = fact.model_copy(update={"ticket": ticket})
    return replace(event, fact=fact)


def _run(view: RunView, redaction: Redaction) -> RunView:
    text = _texts(redaction, view.customer)
    return view.model_copy(
        update={
            "subject": text(view.subject),
            "body": text(view.body),
            "customer": _alias(redaction, view.customer),
            "reason": text(view.reason),
            "handover": view.handover and text(view.handover),
            "reply": view.reply and text(view.reply),
            "last_step": text(view.last_step),
            "quotes": tuple(rewritten(quote, text) for quote in view.quotes),
            "quotes_before": tuple(rewritten(quote, text) for quote in view.quotes_before),
            "held": tuple(_call(call, text) for call in view.held),
            "along": tuple(rewritten(quote, text) for quote in view.along),
        }
    )


def _call(call: HeldCall, text: Callable[[str], str]) -> HeldCall:
    def seats(taken: tuple[Seat, ...]) -> tuple[Seat, ...]:
        return tuple(seat.model_copy(update={"note": text(seat.note)}) for seat in taken)

    return call.model_copy(
        update={
            "quote": rewritten(call.quote, text),
            "was": rewritten(call.was, text) if call.was else None,
            "came_to": rewritten(call.came_to, text) if call.came_to else None,
            "seats": seats(call.seats),
            "lapsed": seats(call.lapsed),
        }
    )


def _ticket(ticket: TicketView, redaction: Redaction) -> TicketView:
    """With its latest run as a list has it: what it does, not what it quotes."""
    text = _texts(redaction, ticket.customer)
    latest = ticket.latest and blanked(ticket.latest, text(ticket.latest.last_step))
    return ticket.model_copy(
        update={
            "subject": text(ticket.subject),
            "body": text(ticket.body),
            "customer": _alias(redaction, ticket.customer),
            "latest": latest,
        }
    )
