"""May this person say this of their tenant now? Stops, the policy in force, the budget of its model calls."""

from contracts.events import Draft, event_id
from contracts.facts import Fact
from contracts.history import History
from contracts.identity import Principal
from contracts.parts import Pack, Person
from contracts.people import same
from contracts.tenant_facts import BudgetSet, CustomerErased, PolicyPromoted, StopLifted, StopSet

from approvals.answers import Known, No
from approvals.requests import EraseCustomer, LiftStop, Promote, SayOfTenant, SetBudget, SetStop

READS = (
    "approvals.stop-set",
    "approvals.stop-lifted",
    "approvals.policy-promoted",
    "approvals.budget-set",
    "approvals.customer-erased",
)
# The scope that each needs.
SCOPES = {
    "stop-set": "stop",
    "stop-lifted": "stop",
    "policy-promoted": "policy",
    "budget-set": "stop",
    "customer-erased": "erase",
}


def barred(asked: SayOfTenant, by: Principal) -> No | None:
    if by.may(SCOPES[asked.say]):
        return None
    return No(403, "Not yours to say", f"The role {by.role} may not do this: it needs the scope {SCOPES[asked.say]}.")


def said_before(history: History, asked: SayOfTenant, by: Principal) -> Known | No | None:
    """What the same request has come to already; None if it is a new one."""
    if asked.request is None:
        return _named(history, asked, by) if isinstance(asked, SetStop) else None
    wanted = event_id(history.key, None, f"approvals.{asked.say}", _key(asked, by))
    event = next((event for event in history.events if event.id == wanted), None)
    if event is None or event.fact is None:
        return None
    if _says(event.fact, asked):
        return Known(event)
    return No(409, "Another request", "This request key was used for something else. Nothing was done; use a new one.")


def _named(history: History, asked: SetStop, by: Principal) -> Known | None:
    """A stop is known by its name, too."""
    stops = [event for event, fact in history.of(StopSet) if fact.stop_id == asked.stop_id and same(fact.by, by)]
    return Known(stops[0]) if stops and stops[0].fact is not None and _says(stops[0].fact, asked) else None


def decide(history: History, asked: SayOfTenant, by: Principal, pack: Pack | None = None) -> Draft | Known | No:
    """What becomes of it. `pack` is what policy read in the text of a promotion."""
    if (before := said_before(history, asked, by)) is not None:
        return before
    person = by.person()
    outcome: Fact | No
    match asked:
        case SetStop():
            outcome = _stop(history, asked, person)
        case LiftStop():
            outcome = _lift(history, asked, person)
        case Promote():
            outcome = _promote(history, asked, person, pack)
        case SetBudget():
            outcome = BudgetSet(day_micro_usd=asked.day_micro_usd, by=person)
        case EraseCustomer():
            outcome = CustomerErased(customer=asked.customer, by=person)
    return outcome if isinstance(outcome, No) else Draft(outcome, None, _key(asked, by, len(history.events)))


def _stop(history: History, asked: SetStop, by: Person) -> StopSet | No:
    stops = history.all(StopSet)
    stop_id = asked.stop_id or f"stop-{len(stops) + 1}"
    if any(fact.stop_id == stop_id for fact in stops):
        return No(409, "Set already", f"There is a stop {stop_id} already. Give another name, or lift that one first.")
    return StopSet(stop_id=stop_id, tool=asked.tool, above_minor=asked.above_minor, reason=asked.reason, by=by)


def _lift(history: History, asked: LiftStop, by: Person) -> StopLifted | No:
    if all(stop.stop_id != asked.stop_id for stop in history.all(StopSet)):
        return No(404, "No such stop", f"There is no stop {asked.stop_id}. Nothing was lifted.")
    lifted = next((fact for fact in history.all(StopLifted) if fact.stop_id == asked.stop_id), None)
    if lifted is not None:
        return No(409, "Lifted already", f"{lifted.by.subject} lifted the stop {asked.stop_id}. Nothing was changed.")
    return StopLifted(stop_id=asked.stop_id, reason=asked.reason, by=by)


def _promote(history: History, asked: Promote, by: Person, pack: Pack | None) -> PolicyPromoted | No:
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
    return PolicyPromoted(pack=pack, text=asked.text, report=asked.report, by=by)


def _names_it_differently(one: Pack, other: Pack) -> bool:
    """Whether two texts bear the same name and version: then nobody could tell which of them judged."""
    return (one.name, one.version) == (other.name, other.version) and one.digest != other.digest


def _says(fact: Fact, asked: SayOfTenant) -> bool:
    """Whether a fact says what is asked now, but for what was filled in."""
    said = asked.model_dump(exclude={"token", "request", "say"})
    if isinstance(asked, SetStop) and asked.stop_id is None:
        del said["stop_id"]
    return all(getattr(fact, name) == value for name, value in said.items())


def _key(asked: SayOfTenant, by: Principal, number: int = 0) -> str:
    """The request's own key, or else its place in the tenant's line."""
    return f"{by.issuer} {by.subject} {f'request {asked.request}' if asked.request is not None else number}"
