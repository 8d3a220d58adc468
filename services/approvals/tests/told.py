"""A run with a held turn, told fact by fact, and people who decide."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from approvals import domain, waiting
from approvals.answers import Recorded
from approvals.domain import MayChange, NoOnRecord
from contracts.answers import No
from contracts.asks import AskDecide
from contracts.canonical import sha256
from contracts.events import Draft, Event
from contracts.facts import Fact, TurnHeld, TurnQuoted
from contracts.history import History
from contracts.identity import ROLES, Principal
from contracts.kill_switch import Stop
from contracts.memory import MemoryLog
from contracts.parts import CallQuote, Customer, Effect, Hold, Json, Needs, Pack, Person
from contracts.subjects import RunKey
from contracts.testing import person, started

KEY = RunKey("acme", "TCK-2004-1")
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
PACK = Pack(name="acme", version=1, digest=sha256("pack"))
ONE = Needs()
TWO = Needs(people=2, one_of_role="lead")


ALEX = person("alex", "operator")
SAM, SUE, SID = (person(name, "approver") for name in ("sam", "sue", "sid"))
LEE, LIA = person("lee", "lead"), person("lia", "lead")


def hold(call_id: str = "a", needs: Needs = ONE, state: str = "delivered") -> Hold:
    digest = sha256([call_id, state])
    return Hold(call_id=call_id, digest=digest, rule="above-automatic-limit", reason="£180.00", needs=needs)


def quote(
    call_id: str = "a", pence: int | None = 18000, state: str = "delivered", *, edited: str | None = None, **more: Any
) -> CallQuote:
    """What `hold` holds, or what a person changed it into: then its digest is another."""
    effect = Effect(summary=f"Refund {pence}", object="ORD-10042", amount_minor=pence, currency="GBP")
    named = [call_id, state] if edited is None else [call_id, state, pence]
    body: Json = {"tool": "issue_refund", "kind": "write", "subject": "C-1004", "arguments": {"amount_pence": pence}}
    body |= {"call_id": call_id, "effect": effect, "digest": sha256(named), "edited": edited} | more
    return CallQuote.model_validate(body)


def hold_of(quoted: CallQuote, needs: Needs = ONE, **more: Any) -> Hold:
    body = {"call_id": quoted.call_id, "digest": quoted.digest, "rule": "above-automatic-limit", "reason": "£180.00"}
    return Hold.model_validate(body | {"needs": needs} | more)


class Told:
    """A history that grows by what is said in it."""

    def __init__(self, customer: Customer | None = None, locale: str | None = None) -> None:
        self.now = START
        self.log = MemoryLog(clock=lambda: self.now)
        run = started(ALEX)
        ticket = run.ticket.model_copy(update={"customer": customer or run.ticket.customer})
        self.say(run.model_copy(update={"ticket": ticket, "locale": locale}))

    @property
    def history(self) -> History:
        return self.log.history(KEY)

    def say(self, fact: Fact, cause: Event | None = None) -> Event:
        return self.log.say(self.history, Draft(fact, cause, key=str(len(self.log.accepted))))

    def quote(self, *quotes: CallQuote, attempt: int = 1) -> Event:
        return self.say(TurnQuoted(turn=1, attempt=attempt, quotes=list(quotes)))

    def hold(self, *holds: Hold, turn: int = 1, attempt: int = 1, hours: int = 24, escalates: bool = False) -> Event:
        held = TurnHeld(
            turn=turn,
            attempt=attempt,
            pack=PACK,
            holds=list(holds),
            expires_at=self.now + timedelta(hours=hours),
            remind_at=self.now + timedelta(hours=hours * 3 / 4),
            escalate_at=self.now + timedelta(hours=hours * 5 / 6) if escalates else None,
        )
        return self.say(held)

    def wait(self, **span: int) -> None:
        self.now += timedelta(**span)

    def ask(
        self,
        by: Person,
        held: Hold,
        decision: str = "approve",
        quoted: CallQuote | None = None,
        stops: Sequence[Stop] = (),
        **more: Any,
    ) -> Event | Recorded | No:
        """What becomes of a decision: the new fact, the fact that there was, or why not. Refusals go on record.

        quoted: what the shop says that the call would do as changed. stops: those that stand.
        """
        asked = request(held, decision, **more)
        outcome = domain.decide(self.history, asked, principal(by), self.now, stops)
        if isinstance(outcome, MayChange):
            assert quoted is not None
            outcome = domain.decide_changed(self.history, asked, principal(by), self.now, outcome, quoted, stops)
        if isinstance(outcome, Draft):
            return self.log.say(self.history, outcome)
        if isinstance(outcome, NoOnRecord):
            self.log.say(self.history, outcome.draft)
            return outcome.no
        return outcome

    def decide(self, by: Person, held: Hold, **more: Any) -> Event:
        """A decision that is recorded."""
        event = self.ask(by, held, **more)
        assert isinstance(event, Event), event
        return event

    def look(self) -> Fact | None:
        """What a timer that fires now brings."""
        draft = waiting.owed(self.history, self.now)
        return self.log.say(self.history, draft).fact if draft else None


def status(outcome: object) -> int:
    """What it is answered with."""
    assert isinstance(outcome, Event | Recorded | No), outcome
    return outcome.status if isinstance(outcome, No) else 200


def detail(outcome: object) -> str:
    """What a person is told beside it."""
    assert isinstance(outcome, Recorded | No), outcome
    return outcome.detail or ""


def limited(person: Person, minor: int) -> Person:
    return person.model_copy(update={"limit_minor": minor})


def principal(person: Person, email: str | None = None) -> Principal:
    """Somebody as their token says them to be."""
    return Principal(
        subject=person.subject,
        issuer=person.issuer,
        tenant=KEY.tenant,
        role=person.role,
        scopes=ROLES.get(person.role, frozenset()),
        token_id=person.token_id,
        expires_at=START + timedelta(days=1),
        email=email,
        limit_minor=person.limit_minor,
    )


def request(held: Hold, decision: str = "approve", **more: Any) -> AskDecide:
    """A request to decide this very hold."""
    body = {"token": "t", "run": KEY.run, "turn": 1, "call_id": held.call_id, "digest": held.digest}
    return AskDecide.model_validate(body | {"decision": decision} | more)
