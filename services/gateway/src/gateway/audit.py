"""Who did what, on whose behalf and why: rows for an auditor, made from the facts of a run or of a tenant."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from contracts import facts as f
from contracts import parts, tenant_facts
from contracts.events import Event
from contracts.people import is_the_customer
from pydantic import BaseModel

from gateway.edits import in_words
from gateway.redaction import Redaction

LONGEST = 500  # characters of a text in a row
Actor = Literal["person", "customer", "agent", "policy", "shop", "system"]


class Row(BaseModel):
    """One thing that was done. `who` did it; an agent, the policy and the shop act for `on_behalf_of`, who started the
    run, and it concerns `customer`. `released_by` are the people who approved what was carried out."""

    sequence: int
    event: str
    kind: str
    at: datetime
    run: str | None = None
    ticket: str | None = None
    actor: Actor
    who: str
    role: str | None = None
    did: str
    what: str = ""
    amount_minor: int | None = None
    currency: str | None = None
    customer: str | None = None
    on_behalf_of: str | None = None
    released_by: list[str] = []
    why: str = ""
    policy: str | None = None


@dataclass(slots=True)
class _Case:
    """What a run's rows need to know of the facts before."""

    started: f.RunStarted | None = None
    quotes: dict[str, parts.CallQuote] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    policy: str | None = None


def of_run(events: Iterable[Event]) -> tuple[list[Row], parts.Customer | None]:
    """The rows of a run's facts in order, and whose case it is."""
    case, rows = _Case(), []
    for event in events:
        rows += [row for row in _rows(case, event) if row.did]
    return rows, case.started.ticket.customer if case.started else None


def of_tenant(events: Iterable[Event]) -> list[Row]:
    """What was set for the whole tenant."""
    return [row for event in events for row in _of_tenant(event)]


def redacted(row: Row, redaction: Redaction, customer: parts.Customer | None) -> Row:
    """The row for somebody who may not see customers."""
    changes: dict[str, Any] = {name: redaction.text(getattr(row, name), customer) for name in ("did", "what", "why")}
    if customer is not None:
        alias = redaction.pseudonym(customer)
        changes["customer"] = alias
        changes |= {"who": alias} if row.actor == "customer" else {}
        changes |= {"on_behalf_of": alias} if row.on_behalf_of in _names(customer) else {}
    return row.model_copy(update=changes)


def _rows(case: _Case, event: Event) -> list[Row]:
    fact = event.fact
    match fact:
        case f.RunStarted():
            case.started = fact
            why = f"ticket {fact.ticket.reference}, {fact.profile} agent"
            return [_by(case, event, fact.requested_by, "started a run", why=why)]
        case f.CustomerSaid() if fact.by is not None:
            return [_by(case, event, fact.by, "wrote as the customer", why=fact.text)]
        case f.CustomerSaid():
            return [_row(case, event, "customer", _name(case), "wrote", why=fact.text)]
        case f.PersonSaid():
            return [_by(case, event, fact.by, "wrote to the customer", why=fact.text)]
        case f.RunCancelled():
            return [_by(case, event, fact.by, "stopped the run", why=fact.reason)]
        case f.RunTakenOver():
            return [_by(case, event, fact.by, "took the run over", why=fact.reason)]
        case f.RunFailed():
            return [_row(case, event, "system", "desk", "ended the run as failed", why=fact.reason)]
        case f.ReplyGiven():
            return [_row(case, event, "agent", "agent", "wrote to the customer", why=fact.text)]
        case f.RunEnded():
            return [_row(case, event, "agent", "agent", f"ended the run as {fact.status}", why=fact.reason)]
        case f.TurnQuoted():
            case.quotes, case.reasons = {quote.call_id: quote for quote in fact.quotes}, {}
            return []
    return _of_policy(case, event) or _of_people(case, event) or _of_shop(case, event)


def _of_policy(case: _Case, event: Event) -> list[Row]:
    match event.fact:
        case f.TurnForwarded() as fact:
            case.policy = _pack(fact.pack)
            case.reasons |= {verdict.call_id: verdict.reason or verdict.rule for verdict in fact.verdicts}
            return [
                _call(case, event, "policy", "policy", "let it run", verdict.call_id, why=_why(verdict))
                for verdict in fact.verdicts
                if verdict.verdict == "run" and _writes(case, verdict.call_id)
            ]
        case f.TurnHeld() as fact:
            case.policy = _pack(fact.pack)
            return [
                _call(case, event, "policy", "policy", "held it for a person", hold.call_id, why=_why(hold))
                for hold in fact.holds
            ]
        case f.TurnRefused() as fact:
            case.policy = _pack(fact.pack)
            return [_row(case, event, "policy", "policy", f"refused turn {fact.turn}", fact.rule, policy=case.policy)]
    return []


def _of_people(case: _Case, event: Event) -> list[Row]:
    match event.fact:
        case f.CallDecided() as fact:
            did = "approved it" if fact.decision == "approve" else "declined it"
            did += " with changes" if fact.edited is not None else ""
            quote = case.quotes.get(fact.call_id)
            if fact.edited is not None and quote is not None:
                did += f": {in_words(quote, fact.edited)}"
            return [_call(case, event, _actor(case, fact.by), fact.by.subject, did, fact.call_id, fact.by, fact.note)]
        case f.DecisionRefused() as fact:
            did = f"tried to {fact.decision} it and may not"
            return [_call(case, event, _actor(case, fact.by), fact.by.subject, did, fact.call_id, fact.by, fact.reason)]
        case f.ReminderSent() as fact:
            return [_row(case, event, "system", "approvals", f"reminded {fact.role}s", why="nobody has decided yet")]
        case f.HoldEscalated() as fact:
            return [_row(case, event, "system", "approvals", f"passed it on to {fact.role}s", why="nobody has decided")]
        case f.HoldExpired() as fact:
            return [
                _call(case, event, "system", "approvals", "let it expire: it was not done", call_id)
                for call_id in fact.call_ids
            ]
    return []


def _of_shop(case: _Case, event: Event) -> list[Row]:
    match event.fact:
        case f.TurnExecuted() as fact:
            return [
                _call(
                    case,
                    event,
                    "shop",
                    "shop",
                    _outcome(result),
                    result.call_id,
                    why=case.reasons.get(result.call_id, ""),
                    released_by=fact.approved_by.get(result.call_id, []),
                )
                for result in fact.results
                if _writes(case, result.call_id)
            ]
        case f.OutcomeUnknown() as fact:
            return [_call(case, event, "shop", "shop", "asked the provider, which did not answer", fact.call_id)]
        case f.OutcomeSettled() as fact:
            did = f"found out that it was {'made' if fact.outcome == 'done' else 'not made'}"
            return [_call(case, event, "shop", fact.by, did, fact.call_id)]
    return []


def _of_tenant(event: Event) -> list[Row]:
    def row(by: parts.Person, did: str, what: str = "", **more: Any) -> Row:
        return Row(**_place(event), run=None, actor="person", who=by.subject, role=by.role, did=did, what=what, **more)

    match event.fact:
        case tenant_facts.StopSet() as fact:
            what = fact.tool or "everything that changes something"
            return [row(fact.by, "set a stop", what, amount_minor=fact.above_minor, why=_cut(fact.reason))]
        case tenant_facts.StopLifted() as fact:
            return [row(fact.by, "lifted a stop", fact.stop_id, why=_cut(fact.reason))]
        case tenant_facts.PolicyPromoted() as fact:
            return [row(fact.by, "put a policy in force", _pack(fact.pack), policy=_pack(fact.pack))]
        case tenant_facts.BudgetSet() as fact:
            what = "no limit" if fact.day_micro_usd is None else f"{fact.day_micro_usd} micro USD a day"
            return [row(fact.by, "set the budget", what)]
        case tenant_facts.CustomerErased() as fact:
            return [row(fact.by, "erased a customer", fact.customer)]
    return []


def _row(case: _Case, event: Event, actor: Actor, who: str, did: str, why: str = "", **more: Any) -> Row:
    started = case.started
    return Row(
        **_place(event),
        run=event.key.run,
        ticket=started.ticket.reference if started else None,
        actor=actor,
        who=who,
        did=did,
        customer=_name(case) if started else None,
        on_behalf_of=started.requested_by.subject if started and actor in ("agent", "policy", "shop") else None,
        why=_cut(why),
        **more,
    )


def _by(case: _Case, event: Event, by: parts.Person, did: str, why: str = "") -> Row:
    return _row(case, event, _actor(case, by), by.subject, did, why, role=by.role)


def _call(
    case: _Case,
    event: Event,
    actor: Actor,
    who: str,
    did: str,
    call_id: str,
    by: parts.Person | None = None,
    why: str = "",
    **more: Any,
) -> Row:
    quote = case.quotes.get(call_id)
    effect = quote.effect if quote else None
    what = f"{effect.summary} ({effect.object})" if effect else quote.tool if quote else call_id
    more |= {"amount_minor": effect.amount_minor, "currency": effect.currency} if effect else {}
    role = by.role if by else None
    return _row(case, event, actor, who, did, why, what=_cut(what), role=role, policy=case.policy, **more)


def _place(event: Event) -> dict[str, Any]:
    return {"sequence": event.sequence, "event": event.id, "kind": event.kind, "at": event.time}


def _actor(case: _Case, by: parts.Person) -> Actor:
    customer = case.started is not None and is_the_customer(by, case.started.ticket.customer)
    return "customer" if customer or by.role == "customer" else "person"


def _name(case: _Case) -> str:
    customer = case.started.ticket.customer if case.started else None
    return (customer.name or customer.email) if customer else ""


def _names(customer: parts.Customer) -> set[str | None]:
    return {customer.email, customer.name, customer.id, f"cust-{customer.id}"} - {None}


def _writes(case: _Case, call_id: str) -> bool:
    quote = case.quotes.get(call_id)
    return quote is not None and quote.kind == "write"


def _outcome(result: parts.CallResult) -> str:
    if result.is_error:
        return "did not do it"
    return "had done it before" if result.duplicate else "carried it out"


def _why(judged: parts.Verdict | parts.Hold) -> str:
    return f"{judged.rule}: {judged.reason}" if judged.reason else judged.rule


def _pack(pack: parts.Pack) -> str:
    return f"{pack.name} v{pack.version} {pack.digest[:8]}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 2] + " …"
