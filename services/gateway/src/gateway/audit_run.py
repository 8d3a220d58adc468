"""The rows of a run, fact by fact."""

from collections.abc import Iterable
from typing import Any

from contracts import facts as f
from contracts.events import Event
from contracts.parts import CallQuote, CallResult, Customer, Hold, Person, Verdict
from contracts.people import is_the_customer
from contracts.refused_decisions import attempt

from gateway.audit import Actor, Row, line, named, place
from gateway.edits import in_words
from gateway.folding import evolve
from gateway.views import RunView, moves


def of_run(events: Iterable[Event]) -> tuple[list[Row], Customer | None]:
    """The rows of a run's facts in order, and whose case it is."""
    events, case = tuple(events), Case()
    rows = [row for event in events for row in case.see(event, came_to(events, event))]
    return rows, case.customer


def changes_something(event: Event) -> bool:
    return isinstance(event.fact, f.CallDecided) and event.fact.edited is not None


def came_to(events: Iterable[Event], event: Event) -> CallQuote | None:
    """What a decision with changes was quoted as behind it; None for other facts, and as long as it is not quoted."""
    decided = event.fact
    if not isinstance(decided, f.CallDecided) or decided.edited is None:
        return None
    for later in events:
        if later.ordinal > event.ordinal and isinstance(later.fact, f.TurnQuoted) and later.fact.turn == decided.turn:
            for quote in later.fact.quotes:
                if (quote.call_id, quote.edited) == (decided.call_id, decided.digest):
                    return quote
    return None


class Case:
    """A run as far as its rows have come, and what the next ones need to know of the facts before."""

    def __init__(self) -> None:
        self._started: f.RunStarted | None = None
        self._quotes: dict[str, CallQuote] = {}
        self._reasons: dict[str, str] = {}
        self._declined: set[str] = set()
        self._approved: set[str] = set()
        self._policy: str | None = None
        self._view: RunView | None = None

    @property
    def customer(self) -> Customer | None:
        return self._started.ticket.customer if self._started else None

    def see(self, event: Event, came_to: CallQuote | None = None) -> list[Row]:
        """The rows of the run's next fact; `came_to` is what a decision with changes was quoted as later."""
        before, self._view = self._view, _without_texts(evolve(self._view, event))
        if isinstance(event.fact, f.CallDecided):
            return [self._decided(event, event.fact, came_to, before)]
        return self._of_people(event) or self._of_agent(event) or self._of_policy(event) or self._of_shop(event)

    def _of_people(self, event: Event) -> list[Row]:
        match event.fact:
            case f.RunStarted() as fact:
                self._started = fact
                why = f"ticket {fact.ticket.reference}, {fact.profile} agent"
                return [self._by(event, fact.requested_by, "started a run", why)]
            case f.CustomerSaid() as fact if fact.by is not None:
                return [self._by(event, fact.by, "wrote as the customer", fact.text)]
            case f.CustomerSaid() as fact:
                return [self._row(event, "customer", self._name, "wrote", fact.text)]
            case f.PersonSaid() as fact:
                return [self._by(event, fact.by, "wrote to the customer", fact.text)]
            case f.RunCancelled() as fact:
                return [self._by(event, fact.by, "stopped the run", fact.reason)]
            case f.RunTakenOver() as fact:
                return [self._by(event, fact.by, "took the run over", fact.reason)]
            case f.DecisionRefused() as fact:
                row = self._by(event, fact.by, attempt(fact, "it"), fact.reason)
                return [self._about(row, fact.call_id)]
        return []

    def _decided(self, event: Event, fact: f.CallDecided, came_to: CallQuote | None, before: RunView | None) -> Row:
        """before: the run as this decision found it."""
        row = self._said(event, fact, came_to)
        if before is None or (fact.edited is not None and came_to is None):
            return row  # what it releases is known once the shop has quoted it
        turn = before.held_turn if came_to is None else before.held_turn.with_quote(came_to)
        release = turn.release(fact.call_id, fact.decision)
        same = [money.amount_minor for money in release.total if money.currency == row.currency]
        released = sum(same) if len(release.total) == len(same) else None
        return row.model_copy(update={"releases": line(release.text), "released_minor": released if release.now else 0})

    def _said(self, event: Event, fact: f.CallDecided, came_to: CallQuote | None) -> Row:
        did = "approved it" if fact.decision == "approve" else "declined it"
        if fact.decision == "approve":
            self._approved.add(fact.call_id)
        if fact.edited is None:
            return self._about(self._by(event, fact.by, did, fact.note), fact.call_id)
        quote = self._quotes.get(fact.call_id)
        locale = (self._started.locale if self._started else None) or ""
        changes = in_words(quote, fact.edited, locale) if quote is not None else ""
        row = self._about(
            self._by(event, fact.by, f"{did} with changes: {changes}" if changes else f"{did} with changes", fact.note),
            fact.call_id,
        )
        amount = came_to.effect.amount_minor if came_to is not None and came_to.effect else None
        return row.model_copy(update={"amount_minor": amount, "asked_minor": row.amount_minor})

    def _of_agent(self, event: Event) -> list[Row]:
        match event.fact:
            case f.ReplyGiven() as fact:
                return [self._row(event, "agent", "agent", "wrote to the customer", fact.text)]
            case f.RunEnded() as fact:
                return [self._row(event, "agent", "agent", f"ended the run as {fact.status}", fact.reason)]
            case f.RunFailed() as fact:
                return [self._row(event, "system", "desk", "ended the run as failed", fact.reason)]
            case f.ReminderSent() as fact:
                return [self._row(event, "system", "approvals", f"reminded {fact.role}s", "nobody has decided yet")]
            case f.HoldEscalated() as fact:
                return [self._row(event, "system", "approvals", f"passed it on to {fact.role}s", "nobody has decided")]
            case f.HoldExpired() as fact:
                row = self._row(event, "system", "approvals", "let it expire: it was not done")
                return [self._about(row, call_id) for call_id in fact.call_ids]
        return []

    def _of_policy(self, event: Event) -> list[Row]:
        match event.fact:
            case f.TurnForwarded() as fact:
                self._policy = named(fact.pack)
                self._declined = {one.call_id for one in fact.verdicts if one.verdict == "declined"}
                self._reasons |= {one.call_id: one.reason or one.rule for one in fact.verdicts}
                run = [one for one in fact.verdicts if one.verdict == "run" and self._writes(one.call_id)]
                return [self._judged(event, "let it run", one, fact.would_have) for one in run]
            case f.TurnHeld() as fact:
                self._policy = named(fact.pack)
                return [self._judged(event, "held it for a person", one, fact.would_have or []) for one in fact.holds]
            case f.TurnRefused() as fact:
                self._policy = named(fact.pack)
                row = self._row(event, "policy", "policy", f"refused turn {fact.turn}", fact.rule, policy=self._policy)
                writes = [result.call_id for result in fact.results if self._writes(result.call_id)]
                return [self._refused(row, call_id) for call_id in writes] or [row]
        return []

    def _judged(self, event: Event, did: str, judged: Verdict | Hold, would_have: list[str]) -> Row:
        """would_have: what a pack in audit mode lets pass, each behind the id of its call."""
        why = f"{judged.rule}: {judged.reason}" if judged.reason else judged.rule
        passed = [text.removeprefix(judged.call_id) for text in would_have if text.startswith(f"{judged.call_id} ")]
        return self._about(self._row(event, "policy", "policy", did, ";".join([why, *passed])), judged.call_id)

    def _refused(self, row: Row, call_id: str) -> Row:
        did = "refused it after it was approved" if call_id in self._approved else "refused it"
        return self._about(row, call_id).model_copy(update={"did": did})

    def _of_shop(self, event: Event) -> list[Row]:
        match event.fact:
            case f.TurnQuoted() as fact:
                self._quotes, self._reasons = {quote.call_id: quote for quote in fact.quotes}, {}
            case f.TurnExecuted() as fact:
                return [
                    self._carried_out(event, result, fact.approved_by.get(result.call_id, []))
                    for result in fact.results
                    if self._writes(result.call_id)
                ]
            case f.OutcomeUnknown() as fact:
                row = self._row(event, "shop", "shop", "asked the provider, which did not answer")
                return [self._about(row, fact.call_id)]
            case f.OutcomeSettled() as fact:
                did = f"found out that it was {'made' if fact.outcome == 'done' else 'not made'}"
                return [self._about(self._row(event, "shop", fact.by, did), fact.call_id)]
        return []

    def _carried_out(self, event: Event, result: CallResult, released_by: list[str]) -> Row:
        done = not result.is_error and result.call_id not in self._declined
        did = "did not do it" if not done else "had done it before" if result.duplicate else "carried it out"
        row = self._row(event, "shop", "shop", did, self._reasons.get(result.call_id, ""), released_by=released_by)
        money = moves(self._quotes[result.call_id]) if done and not result.duplicate else None
        return self._about(row, result.call_id).model_copy(
            update={"moved_minor": money.amount_minor if money is not None else None}
        )

    def _row(self, event: Event, actor: Actor, who: str, did: str, why: str = "", **more: Any) -> Row:
        started = self._started
        return Row(
            **place(event),
            run=event.key.run,
            ticket=started.ticket.reference if started else None,
            actor=actor,
            who=who,
            did=did,
            customer=self._name if started else None,
            on_behalf_of=started.requested_by.subject if started and actor in ("agent", "policy", "shop") else None,
            why=line(why),
            **more,
        )

    def _by(self, event: Event, by: Person, did: str, why: str = "") -> Row:
        customer = self.customer
        theirs = by.role == "customer" or (customer is not None and is_the_customer(by, customer))
        actor: Actor = "customer" if theirs else "person"
        return self._row(event, actor, by.subject, did, why, role=by.role, who_issuer=by.issuer)

    def _about(self, row: Row, call_id: str) -> Row:
        """The row with what a call would do, and the pack that judged it last."""
        quote = self._quotes.get(call_id)
        effect = quote.effect if quote else None
        what = quote.tool if quote else call_id
        about: dict[str, Any] = {}
        if effect is not None:
            what = effect.summary if effect.object in effect.summary else f"{effect.summary} ({effect.object})"
            about = {"object": effect.object, "amount_minor": effect.amount_minor, "currency": effect.currency}
        return row.model_copy(update={"what": line(what), "policy": self._policy, **about})

    @property
    def _name(self) -> str:
        customer = self.customer
        return (customer.name or customer.email) if customer else ""

    def _writes(self, call_id: str) -> bool:
        quote = self._quotes.get(call_id)
        return quote is not None and quote.kind == "write"


def _without_texts(view: RunView | None) -> RunView | None:
    """What the rows need of a run that is kept for its next fact."""
    return view and view.model_copy(update={"body": "", "reply": None})
