"""What the desk says next of a run, given what its log holds; and who may decide. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from contracts.answers import no_such
from contracts.edits import carries_over, day_total, objection
from contracts.entitlement import Bar, Held, Word, above_own_limit, bar
from contracts.events import Draft, Event, event_id
from contracts.facts import CustomerSaid, Fact, PersonSaid, RunCancelled, RunFailed, RunStarted, RunTakenOver
from contracts.history import History
from contracts.identity import Principal
from contracts.kill_switch import Stop
from contracts.parts import MOST_ATTEMPTS, CallQuote
from contracts.people import is_the_customer
from contracts.turn import HeldTurn

from gateway.folding import fold
from gateway.held import HeldCall
from gateway.views import RunView


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was said, with the HTTP status that fits."""

    status: int
    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Said:
    """It was said already: by the same request, or by someone who was first."""

    event: Event


Decision = Draft | Said | Refusal
WORDS: tuple[Word, ...] = ("approve", "decline", "change")
NOBODY_LEFT = Refusal(
    409,
    "The customer was erased",
    "Nothing was started or sent: nobody is left who could be answered. If they write again, that is a new ticket.",
)
NOT_IN_THEIR_NAME = (
    "Who may release what a customer asks for does not ask in their name; take the run over to write yourself."
)
_NO_SUCH = no_such("run")
NO_RUN = Refusal(_NO_SUCH.status, _NO_SUCH.title, _NO_SUCH.detail)


def start(history: History, fact: RunStarted, key: str) -> Decision:
    """The run's first fact, or the run that is there already."""
    if history.head is None:
        return Draft(fact, None, key)
    return Said(history.events[0])


def say(history: History, asker: Principal, text: str, key: str) -> Decision:
    """The customer's message in a chat; or, once a person has taken over, that person's words to the customer."""
    view = fold(history.events)
    if view is None or (asker.role == "customer" and not is_the_customer(asker, view.customer)):
        return NO_RUN
    if view.erased:
        return NOBODY_LEFT
    if view.status == "taken_over":
        if not asker.may("take_over"):
            return Refusal(
                409, "A person answers", "A person has taken over. Nothing was sent; they will write to you."
            )
        return _once(history, PersonSaid(by=asker.person(), text=text), key)
    customer = asker.role == "customer"
    if not asker.may("chat" if customer else "speak"):
        return Refusal(403, "Not for your role", f"Nothing was sent. {NOT_IN_THEIR_NAME}")
    if view.channel != "chat":
        return Refusal(
            409, "Not a chat", "This run works a ticket, which takes no messages. Take the run over to answer yourself."
        )
    said = _once(history, CustomerSaid(text=text, message_id=key, by=None if customer else asker.person()), key)
    if view.ended and isinstance(said, Draft):
        return Refusal(409, "The run has ended", "Nothing was sent. Start the ticket's next run to go on.")
    return said


def cancel(history: History, asker: Principal, reason: str, key: str) -> Decision:
    return _end(history, RunCancelled(by=asker.person(), reason=reason), key)


def take_over(history: History, asker: Principal, reason: str, key: str) -> Decision:
    return _end(history, RunTakenOver(by=asker.person(), reason=reason), key)


def fail(history: History, letter_id: str) -> Draft | None:
    """The end of a run that its runner cannot bring to one."""
    if history.head is None or history.end is not None:
        return None
    reason = "The agent could not go on. What was done stays done; a person has to take the ticket from here."
    return Draft(RunFailed(reason=reason), None, letter_id)


def _end(history: History, fact: RunCancelled | RunTakenOver, key: str) -> Decision:
    if history.head is None:
        return NO_RUN
    said = _once(history, fact, key)
    if history.end is not None and isinstance(said, Draft):
        return Refusal(409, "The run has ended", f"It ended before ({history.end.kind}). Nothing was changed.")
    return said


def _once(history: History, fact: Fact, key: str) -> Decision:
    """The same request again gets what it said the first time; its key for something else is refused."""
    known = event_id(history.key, None, fact.kind, key)
    for event in history.events:
        if event.id == known:
            return Said(event) if _same(event.fact, fact) else KEY_TAKEN
    return Draft(fact, None, key)


KEY_TAKEN = Refusal(
    422, "Idempotency-Key used before", "This key belongs to another request. Nothing was done; use a new key."
)


def _same(one: Fact | None, other: Fact) -> bool:
    """Whether two facts say the same; the token that a person showed may have been renewed in between."""

    def bare(fact: Fact | None) -> object:
        return fact.model_copy(update={"by": by.subject}) if fact and (by := getattr(fact, "by", None)) else fact

    return bare(one) == bare(other)


def may_decide(view: RunView, call: HeldCall, asker: Principal, word: Word) -> Bar | None:
    """Why this person may not say this on a held call, None if they may. A hint for pages: approvals has the say."""
    if not asker.may("decide"):
        return Bar("Read only", f"Decided by {call.hold.needs.role}s; your role ({asker.role}) decides nothing.")
    held = Held(view.requested_by, view.customer, call.hold, call.quote, call.changed_by, call.approved_by, view.locale)
    if (barred := bar(held, asker, word)) is not None or word != "change" or call.attempt < MOST_ATTEMPTS:
        return barred
    return Bar("Not to be changed again", f"It was quoted {MOST_ATTEMPTS} times. Approve or decline it as it is.")


def may_say(view: RunView, call: HeldCall, asker: Principal) -> bool:
    """Whether there is anything that this person may say on it."""
    return any(may_decide(view, call, asker, word) is None for word in WORDS)


@dataclass(frozen=True, slots=True)
class Edited:
    """What a held call would do with changed arguments, and what an approval of that would come to.

    turn: the whole of it as it is held. refused: why it cannot be approved so. stands: whether the asker's approval
    would count for it; if not, and it is not refused, it is held anew for somebody else.
    """

    was: CallQuote
    now: CallQuote
    refused: str | None
    stands: bool
    turn: HeldTurn


def edited(
    view: RunView,
    call: HeldCall,
    was: CallQuote,
    now: CallQuote,
    asker: Principal,
    stops: Sequence[Stop] = (),
) -> Edited:
    today = day_total(call.hold.needs.amount_minor, was, now)
    barred = may_decide(view, call, asker, "change") or above_own_limit(today, now, asker, view.locale)
    turn = view.held_turn
    stopped = turn.with_quote(now).stopped(call.call_id, stops)
    refused = objection(was, now, view.locale) or (barred.detail if barred else stopped.detail if stopped else None)
    return Edited(was, now, refused, refused is None and carries_over(was, now), turn)
