"""A run told fact by fact, with policy answering as it would."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from contracts.events import Draft, Event
from contracts.facts import CallDecided, Fact, HoldExpired, RunStarted, TurnForwarded, TurnQuoted
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.parts import CallQuote, Person
from contracts.personal import plan_of, take_out
from contracts.subjects import RunKey
from contracts.testing import person, started
from policy import domain
from policy.pack import PolicyPack

KEY = RunKey("acme", "TCK-2004-1")


ALEX = person("alex", "operator")
SAM, SUE = person("sam", "approver"), person("sue", "approver")
LEE, LIA = person("lee", "lead"), person("lia", "lead")


def verdicts(fact: object) -> dict[str, str]:
    assert isinstance(fact, TurnForwarded), fact
    return {verdict.call_id: verdict.verdict for verdict in fact.verdicts}


def by_address_only() -> RunStarted:
    """A run whose ticket names no customer of the shop's, only an e-mail address."""
    begun = started(ALEX)
    customer = begun.ticket.customer.model_copy(update={"id": None})
    return begun.model_copy(update={"ticket": begun.ticket.model_copy(update={"customer": customer})})


class Told:
    """A history that grows by what is said in it, a second after the last fact unless told otherwise."""

    def __init__(self, pack: PolicyPack, requested_by: Person = ALEX, begun: RunStarted | None = None) -> None:
        self.now = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
        self.log = MemoryLog(clock=lambda: self.now)
        self.pack = pack
        self._sealed: dict[str, Event] = {}
        self.say(begun or started(requested_by))

    @property
    def history(self) -> History:
        return self.log.history(KEY)

    @property
    def last_quotes(self) -> list[CallQuote]:
        quoted = self.history.last(TurnQuoted)
        return quoted.quotes if quoted else []

    def say(self, fact: Fact, *, cause: Event | None = None, after: timedelta = timedelta(seconds=1)) -> Event:
        self.now += after
        return self.log.say(self.history, Draft(fact, cause, key=str(len(self.log.accepted))))

    def hear(self, event: Event) -> Fact | None:
        """What policy says of the event; it becomes part of the run."""
        history = self.history
        read = History(history.key, tuple(map(self._read, history.events)), history.head)
        draft = domain.react(read, self._read(event), self.pack)
        return self.log.say(self.history, draft).fact if draft else None

    def _read(self, event: Event) -> Event:
        """The event as policy reads it: it has no key to what is personal."""
        if event.id not in self._sealed:
            assert event.fact is not None
            data = event.fact.model_dump(mode="json")
            take_out(plan_of(event.kind), data)
            self._sealed[event.id] = replace(event, fact=type(event.fact).model_validate(data))
        return self._sealed[event.id]

    def quote(self, *quotes: CallQuote, turn: int = 1, attempt: int = 1) -> Fact | None:
        """What policy says of a fresh quote."""
        return self.hear(self.say(TurnQuoted(turn=turn, attempt=attempt, quotes=list(quotes))))

    def decide(
        self,
        by: Person,
        quote: CallQuote,
        decision: str = "approve",
        *,
        after: timedelta = timedelta(seconds=1),
        **more: Any,
    ) -> Fact | None:
        """What policy says of a decision on this very quote."""
        decided = {"turn": 1, "call_id": quote.call_id, "digest": quote.digest, "decision": decision, "by": by, **more}
        return self.hear(self.say(CallDecided.model_validate(decided), after=after))

    def expire(self, *call_ids: str, turn: int = 1) -> Fact | None:
        return self.hear(self.say(HoldExpired(turn=turn, call_ids=list(call_ids)), after=timedelta(hours=24)))
