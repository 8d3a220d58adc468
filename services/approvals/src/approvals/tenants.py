"""May this person say this of their tenant now? Stops, the policy in force, the budget of its model calls, who else
hears its facts."""

from collections.abc import Sequence

from contracts.answers import No
from contracts.asks import (
    AskAddSubscriber,
    AskEraseCustomer,
    AskLiftStop,
    AskPromote,
    AskRemoveSubscriber,
    AskSetBudget,
    AskSetStop,
    SayOfTenant,
)
from contracts.events import Draft, event_id
from contracts.facts import Fact
from contracts.history import History
from contracts.identity import Principal
from contracts.parts import Pack, Person
from contracts.people import same
from contracts.tenant_facts import (
    BudgetSet,
    CustomerErased,
    PolicyPromoted,
    StopLifted,
    StopSet,
    SubscriberAdded,
    SubscriberRemoved,
)

from approvals.answers import Recorded

READS = (
    "approvals.stop-set",
    "approvals.stop-lifted",
    "approvals.policy-promoted",
    "approvals.budget-set",
    "approvals.customer-erased",
    "approvals.subscriber-added",
    "approvals.subscriber-removed",
)
# The scope that each needs.
SCOPES = {
    "stop-set": "stop",
    "stop-lifted": "stop",
    "policy-promoted": "policy",
    "budget-set": "stop",
    "customer-erased": "erase",
    "subscriber-added": "subscribers",
    "subscriber-removed": "subscribers",
}


def barred(asked: SayOfTenant, by: Principal) -> No | None:
    if by.may(SCOPES[asked.say]):
        return None
    return No(403, "Not yours to say", f"The role {by.role} may not do this: it needs the scope {SCOPES[asked.say]}.")


def said_before(history: History, asked: SayOfTenant, by: Principal) -> Recorded | No | None:
    """What the same request has come to already; None if it is a new one."""
    if asked.request is None:
        return _named(history, asked, by) if isinstance(asked, AskSetStop) else None
    wanted = event_id(history.key, None, f"approvals.{asked.say}", _key(asked, by))
    event = next((event for event in history.events if event.id == wanted), None)
    if event is None or event.fact is None:
        return None
    if _says(event.fact, asked):
        return Recorded(event, repeated=True)
    return No(409, "Another request", "This request key was used for something else. Nothing was done; use a new one.")


def _named(history: History, asked: AskSetStop, by: Principal) -> Recorded | None:
    """A stop is known by its name, too."""
    stops = [event for event, fact in history.of(StopSet) if fact.stop_id == asked.stop_id and same(fact.by, by)]
    if not stops or stops[0].fact is None or not _says(stops[0].fact, asked):
        return None
    return Recorded(stops[0], repeated=True)


def decide(
    history: History, asked: SayOfTenant, by: Principal, pack: Pack | None = None, warnings: Sequence[str] = ()
) -> Draft | Recorded | No:
    """What becomes of it. `pack` is what policy read in the text of a promotion, and `warnings` what it said of it."""
    if (before := said_before(history, asked, by)) is not None:
        return before
    person = by.person()
    outcome: Fact | No
    match asked:
        case AskSetStop():
            outcome = _stop(history, asked, person)
        case AskLiftStop():
            outcome = _lift(history, asked, person)
        case AskPromote():
            outcome = _promote(history, asked, person, pack, warnings)
        case AskSetBudget():
            outcome = BudgetSet(day_micro_usd=asked.day_micro_usd, by=person)
        case AskEraseCustomer():
            outcome = CustomerErased(customer=asked.customer, by=person)
        case AskAddSubscriber():
            outcome = _add(history, asked, person)
        case AskRemoveSubscriber():
            outcome = _remove(history, asked, person)
    return outcome if isinstance(outcome, No) else Draft(outcome, None, _key(asked, by, len(history.events)))


def _stop(history: History, asked: AskSetStop, by: Person) -> StopSet | No:
    stops = history.all(StopSet)
    stop_id = asked.stop_id or f"stop-{len(stops) + 1}"
    if any(fact.stop_id == stop_id for fact in stops):
        return No(409, "Set already", f"There is a stop {stop_id} already. Give another name, or lift that one first.")
    return StopSet(stop_id=stop_id, tool=asked.tool, above_minor=asked.above_minor, reason=asked.reason, by=by)


def _lift(history: History, asked: AskLiftStop, by: Person) -> StopLifted | No:
    if all(stop.stop_id != asked.stop_id for stop in history.all(StopSet)):
        return No(404, "No such stop", f"There is no stop {asked.stop_id}. Nothing was lifted.")
    lifted = next((fact for fact in history.all(StopLifted) if fact.stop_id == asked.stop_id), None)
    if lifted is not None:
        return No(409, "Lifted already", f"{lifted.by.subject} lifted the stop {asked.stop_id}. Nothing was changed.")
    return StopLifted(stop_id=asked.stop_id, reason=asked.reason, by=by)


def _promote(
    history: History, asked: AskPromote, by: Person, pack: Pack | None, warnings: Sequence[str]
) -> PolicyPromoted | No:
    if pack is None:
        return No(422, "Not a pack", "Policy has not looked at this text. Nothing was promoted.")
    current = history.last(PolicyPromoted)
    if current is not None and current.pack.digest == pack.digest:
        return No(409, "In force already", f"{pack.name} version {pack.version} is in force. Nothing was changed.")
    taken = next((fact for fact in history.all(PolicyPromoted) if _names_it_differently(fact.pack, pack)), None)
    if taken is not None:
        return No(
            409,
            "Version taken",
            f"Another text was promoted as {pack.name} version {pack.version}. Give this one a version of its own.",
        )
    return PolicyPromoted(pack=pack, text=asked.text, report=asked.report, by=by, warnings=list(warnings) or None)


def _names_it_differently(one: Pack, other: Pack) -> bool:
    """Whether two texts bear the same name and version: then nobody could tell which of them judged."""
    return (one.name, one.version) == (other.name, other.version) and one.digest != other.digest


def _add(history: History, asked: AskAddSubscriber, by: Person) -> SubscriberAdded | No:
    if (added := _added(history, asked.subscriber)) is not None:
        detail = f"{added.by.subject} added {asked.subscriber}. Remove it first to add it anew; nothing was changed."
        return No(409, "Added already", detail)
    return SubscriberAdded(subscriber=asked.subscriber, by=by)


def _remove(history: History, asked: AskRemoveSubscriber, by: Person) -> SubscriberRemoved | No:
    if _added(history, asked.subscriber) is None:
        detail = f"There is no subscriber {asked.subscriber} of this tenant. Nothing was changed."
        return No(409, "No such subscriber", detail)
    return SubscriberRemoved(subscriber=asked.subscriber, by=by)


def _added(history: History, name: str) -> SubscriberAdded | None:
    """How a subscriber that there is now was added."""
    last = None
    for event in history.events:
        if isinstance(event.fact, SubscriberAdded | SubscriberRemoved) and event.fact.subscriber == name:
            last = event.fact
    return last if isinstance(last, SubscriberAdded) else None


def _says(fact: Fact, asked: SayOfTenant) -> bool:
    """Whether a fact says what is asked now, but for what was filled in."""
    said = asked.model_dump(exclude={"token", "request", "say"})
    if isinstance(asked, AskSetStop) and asked.stop_id is None:
        del said["stop_id"]
    return all(getattr(fact, name) == value for name, value in said.items())


def _key(asked: SayOfTenant, by: Principal, number: int = 0) -> str:
    """The request's own key, or else its place in the tenant's line."""
    return f"{by.issuer} {by.subject} {f'request {asked.request}' if asked.request is not None else number}"
