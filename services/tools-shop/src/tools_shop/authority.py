"""Does the log authorise what was forwarded? Asked by the service that holds the money."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from contracts.edits import carries_over
from contracts.events import Event
from contracts.facts import CallDecided, Fact, RunStarted, TurnHeld, TurnQuoted
from contracts.money import Money
from contracts.parts import CallQuote, Hold, Needs, Person
from contracts.people import enough, may_decline, may_release, who

from tools_shop.outcomes import Refusal


@dataclass(frozen=True, slots=True)
class Record:
    """What was said of one turn: its holds and the decisions on them with their times, in the log's order.

    And its quotes, where a person changed one of its calls.
    """

    started: RunStarted
    said: Sequence[tuple[Fact, datetime]] = ()

    @classmethod
    def of(cls, started: RunStarted, turn: int, events: Iterable[Event]) -> "Record":
        """Of events that were read from the log by their exact subjects."""
        ordered = sorted(events, key=lambda event: event.sequence)
        kinds = TurnQuoted | TurnHeld | CallDecided
        kept = [(e.fact, e.time) for e in ordered if isinstance(e.fact, kinds) and e.fact.turn == turn]
        return cls(started, kept)


def released_by(record: Record, quotes: Iterable[CallQuote]) -> dict[str, list[Person]]:
    """The people who released each call, by call id, where people did."""
    released = {quote.call_id: _approvers(record, quote) for quote in quotes}
    return {call_id: people for call_id, people in released.items() if people}


def lacking(record: Record, quotes: Sequence[CallQuote], floor_minor: int) -> dict[str, Refusal]:
    """Why a call may not run after all, by call id; empty where the log authorises the turn.

    A call that was held for its digest, or before a person changed it, needs the decisions that its hold asked for. One
    that moves more than the floor needs a decision in any case, whatever policy said.
    """
    missing, locale = {}, record.started.locale or ""
    released = released_by(record, quotes)
    for quote in quotes:
        hold = _hold(record, quote)
        people, moved = released.get(quote.call_id, ()), _moved(quote)
        if hold and not enough(hold.needs, people):
            missing[quote.call_id] = Refusal(
                "not-released", "This was not done: it was held, and the decisions that it needs are not in the log."
            )
        elif moved and moved.amount_minor > floor_minor and not people:
            floor = Money(floor_minor, moved.currency).text(locale)
            missing[quote.call_id] = Refusal(
                "above-floor",
                f"This was not done: {moved.text(locale)} is above {floor}, and above that the shop pays only what a "
                "person has approved. Pass it to a person with escalate_to_human.",
            )
    return missing


def _moved(quote: CallQuote) -> Money | None:
    if quote.effect is None or quote.effect.amount_minor is None:
        return None
    return Money(quote.effect.amount_minor, quote.effect.currency or "")


def _hold(record: Record, quote: CallQuote) -> Hold | None:
    """The last hold of this call for this digest; of one that was changed and not held anew, the one before."""
    held = [hold for fact, _ in record.said if isinstance(fact, TurnHeld) for hold in fact.holds]
    of_call = {hold.digest: hold for hold in held if hold.call_id == quote.call_id}
    return of_call.get(quote.digest) or of_call.get(quote.edited or "")


def _needs(hold: Hold | None, quote: CallQuote) -> Needs:
    """What the hold asks for. Nobody releases more than their own limit, whatever amount the hold names."""
    needs, moved = hold.needs if hold else Needs(), _moved(quote)
    held_as_it_is = hold is not None and hold.digest == quote.digest
    amounts = [needs.amount_minor if held_as_it_is else None, moved.amount_minor if moved else None]
    return needs.model_copy(update={"amount_minor": max((a for a in amounts if a is not None), default=None)})


def _approvers(record: Record, quote: CallQuote) -> list[Person]:
    """Different people who may release this and approved exactly this, or changed the call into it and their word
    carries over, each before the hold that stood then expired.

    None if one who may decline did so before there were enough, however much they may release.
    """
    hold = _hold(record, quote)
    needs, requesters = _needs(hold, quote), _requesters(record, quote)
    edited_by = hold.edited_by if hold else None
    people: dict[tuple[str, str], Person] = {}
    for decided in _in_time(record, quote.call_id):
        if who(decided.by) in requesters or enough(needs, people.values()):
            continue
        if decided.decision == "decline":
            if may_decline(decided.by, needs, record.started, edited_by, quote.subject):
                return []
            continue
        if not may_release(decided.by, needs, record.started, edited_by, quote.subject):
            continue
        if _carries_over(record, decided, quote) if decided.edited is not None else decided.digest == quote.digest:
            people.setdefault(who(decided.by), decided.by)
    return list(people.values())


def _requesters(record: Record, quote: CallQuote) -> set[tuple[str, str]]:
    """Who changed this call, unless into what it is now with an approval that carries over."""
    edits = [decided for decided in _in_time(record, quote.call_id) if decided.edited is not None]
    carried = {who(decided.by) for decided in edits if _carries_over(record, decided, quote)}
    return {who(decided.by) for decided in edits} - carried


def _carries_over(record: Record, decided: CallDecided, now: CallQuote) -> bool:
    """Whether a decision that changed a call approves what it is now: what it was quoted as right after it."""
    if decided.edited != now.arguments:
        return False
    quoted = [quote for fact, _ in record.said if isinstance(fact, TurnQuoted) for quote in fact.quotes]
    of_call = [quote for quote in quoted if quote.call_id == decided.call_id]
    was = next((quote for quote in of_call if quote.digest == decided.digest), None)
    came_to = next((quote for quote in of_call if quote.edited == decided.digest), None)
    return was is not None and came_to is not None and came_to.digest == now.digest and carries_over(was, now)


def _in_time(record: Record, call_id: str) -> Iterator[CallDecided]:
    """The decisions on a call that came before the hold that stood then expired."""
    expires_at: datetime | None = None
    for fact, time in record.said:
        if isinstance(fact, TurnHeld) and any(hold.call_id == call_id for hold in fact.holds):
            expires_at = fact.expires_at
        if isinstance(fact, CallDecided) and fact.call_id == call_id and (expires_at is None or time < expires_at):
            yield fact
