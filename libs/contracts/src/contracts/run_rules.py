"""The rules 2 to 7 of `contracts.verify`, for one run, event by event."""

from collections.abc import Callable
from dataclasses import dataclass, field

from contracts.declines import standing
from contracts.edits import carries_over, day_total
from contracts.events import Event
from contracts.facts import (
    AnswerUnfinished,
    CallDecided,
    ReplyGiven,
    RunEnded,
    RunStarted,
    RunTakenOver,
    TurnExecuted,
    TurnForwarded,
    TurnHeld,
    TurnProposed,
    TurnQuoted,
    TurnRefused,
)
from contracts.parts import CallQuote, Hold, Needs
from contracts.people import enough, may_decline, may_release, who
from contracts.subjects import RunKey

# What may still be said of a run that has ended: an effect that had happened, and what nobody acts on any more.
AFTER_THE_END = frozenset(
    {
        "tools.turn-executed",
        "tools.outcome-settled",
        "approvals.decision-refused",
        "approvals.hold-expired",
        "desk.run-erased",
    }
)
# Once a person has taken a run over, they speak in it.
AFTER_A_PERSON_TOOK_OVER = AFTER_THE_END | {"desk.person-said"}


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: `rule` is its number in `contracts.verify.RULES`, `ordinal` the event where it shows."""

    key: RunKey
    ordinal: int
    rule: int
    says: str

    def __str__(self) -> str:
        return f"{self.key.tenant}/{self.key.run} event {self.ordinal}: rule {self.rule}: {self.says}"


@dataclass
class _Turn:
    """How far one turn has come."""

    proposed: TurnProposed
    quotes: dict[int, TurnQuoted] = field(default_factory=dict)
    forwards: dict[int, TurnForwarded] = field(default_factory=dict)
    holds: dict[int, TurnHeld] = field(default_factory=dict)
    # Those that came in time: each counts for the effect that it names, in whichever attempt.
    decisions: list[CallDecided] = field(default_factory=list)
    # Approvals with changed arguments since the last quote: what they came to is quoted anew.
    edits: list[CallDecided] = field(default_factory=list)
    # What each of them came to, in the quote that followed it.
    came_to: list[tuple[CallDecided, CallQuote]] = field(default_factory=list)
    # What may come next: a quote, a judgement of the latest quote, decisions, an execution; or nothing more.
    waits_for: str = "quote"


class RunRules:
    """A fold over one run whose line is unbroken; what it finds broken."""

    def __init__(self, key: RunKey) -> None:
        self._key = key
        self._found: list[Violation] = []
        self._started: RunStarted | None = None
        self._end: Event | None = None
        self._steps = 0
        self._cost = 0
        self._turns: dict[int, _Turn] = {}
        self._events: list[Event] = []
        self._event: Event

    def judge(self, events: list[Event]) -> list[Violation]:
        rules: dict[type, Callable[..., None]] = {
            TurnProposed: self._proposed,
            ReplyGiven: self._answered,
            AnswerUnfinished: self._answered,
            TurnQuoted: self._quoted,
            TurnForwarded: self._forwarded,
            TurnHeld: self._held,
            TurnRefused: self._refused,
            CallDecided: self._decided,
            TurnExecuted: self._executed,
            RunEnded: self._agent_ended,
        }
        for event in events:
            self._events.append(event)
            self._event = event
            if event.ordinal == 0:
                if not isinstance(event.fact, RunStarted):
                    self._wrong(2, f"a run begins with desk.run-started, not {event.kind}.")
                    return self._found
                self._started = event.fact
                continue
            if isinstance(event.fact, RunStarted):
                self._wrong(2, "the run starts a second time.")
            if self._end is not None and event.kind not in self._may_follow(self._end):
                self._wrong(2, f"{event.kind} after the run had ended.")
            if (rule := rules.get(type(event.fact))) is not None:
                rule(event.fact)
            self._end = self._end or (event if event.terminal else None)
        return self._found

    @staticmethod
    def _may_follow(end: Event) -> frozenset[str]:
        return AFTER_A_PERSON_TOOK_OVER if isinstance(end.fact, RunTakenOver) else AFTER_THE_END

    def _wrong(self, rule: int, says: str) -> None:
        self._found.append(Violation(self._key, self._event.ordinal, rule, says))

    # Rule 6, and 4: nothing is asked of the model while a call has no result

    def _answered(self, answer: TurnProposed | ReplyGiven | AnswerUnfinished) -> None:
        self._steps += 1
        self._cost += answer.cost_micro_usd
        assert self._started is not None  # noqa: S101 - event 0 was checked
        if self._steps > self._started.limits.max_steps:
            self._wrong(6, f"step {self._steps} of at most {self._started.limits.max_steps}.")
        if self._cost > self._started.limits.max_cost_micro_usd:
            self._wrong(6, f"{self._cost} micro-USD of at most {self._started.limits.max_cost_micro_usd}.")
        for number, turn in self._turns.items():
            if turn.waits_for != "nothing":
                self._wrong(4, f"the model was asked again while turn {number} still waits for its {turn.waits_for}.")

    def _agent_ended(self, end: RunEnded) -> None:
        if end.steps < self._steps:
            self._wrong(6, f"the run's end counts {end.steps} steps, the log {self._steps}.")
        if end.cost_micro_usd < self._cost:
            self._wrong(6, f"the run's end counts {end.cost_micro_usd} micro-USD, the log {self._cost}.")
        assert self._started is not None  # noqa: S101 - event 0 was checked
        if end.uncertain_micro_usd:
            most = self._started.limits.max_cost_micro_usd
            if (taken := end.cost_micro_usd + end.uncertain_micro_usd) > most:
                self._wrong(6, f"{taken} micro-USD, with what may be owed, of at most {most}.")
        # Rule 7. A decline in an older log does not say that it hands over, and such a run may have ended as it did.
        for decline in standing(self._events) if end.status == "resolved" else ():
            if decline.hands_over:
                what = f"call {decline.call_id} of turn {decline.turn}"
                self._wrong(7, f"it ended resolved though {what} was declined and no later approval made it good.")

    # Rule 3: the life of a turn

    def _proposed(self, proposed: TurnProposed) -> None:
        self._answered(proposed)
        if proposed.turn != len(self._turns) + 1:
            self._wrong(3, f"turn {proposed.turn} is proposed where turn {len(self._turns) + 1} is due.")
        if len({call.call_id for call in proposed.calls}) < len(proposed.calls):
            self._wrong(4, "several calls of the turn have one id, so that their results cannot be told apart.")
        self._turns[proposed.turn] = _Turn(proposed)

    def _turn(
        self, fact: TurnQuoted | TurnForwarded | TurnHeld | TurnRefused | TurnExecuted, *due: str
    ) -> _Turn | None:
        turn = self._turns.get(fact.turn)
        if turn is None:
            self._wrong(3, f"turn {fact.turn} was never proposed.")
        elif turn.waits_for not in due and not (self._end and isinstance(fact, TurnExecuted)):
            self._wrong(3, f"{self._event.kind} comes while turn {fact.turn} waits for its {turn.waits_for}.")
        elif not isinstance(fact, TurnQuoted) and fact.attempt != len(turn.quotes):
            self._wrong(3, f"{self._event.kind} is about attempt {fact.attempt}; the last is {len(turn.quotes)}.")
        return turn

    def _quoted(self, quoted: TurnQuoted) -> None:
        # Quoted anew: the forwarded turn met a changed world, or a held call was edited.
        if (turn := self._turn(quoted, "quote", "execution", "decisions")) is None:
            return
        if turn.waits_for == "decisions" and not turn.edits:
            self._wrong(3, "a held turn is quoted anew though nobody has changed it.")
        if quoted.attempt != len(turn.quotes) + 1:
            self._wrong(3, f"attempt {quoted.attempt} where attempt {len(turn.quotes) + 1} is due.")
        if [quote.call_id for quote in quoted.quotes] != [call.call_id for call in turn.proposed.calls]:
            self._wrong(3, "the quote does not cover the turn's calls in their order.")
        now = {quote.call_id: quote for quote in quoted.quotes}
        for edit in turn.edits:
            if edit.call_id not in now or now[edit.call_id].edited != edit.digest:
                self._wrong(5, f"call {edit.call_id} was changed by a person, and its quote does not say so.")
            elif now[edit.call_id].arguments != edit.edited:
                self._wrong(5, f"call {edit.call_id} is not quoted as a person changed it.")
            else:
                turn.came_to.append((edit, now[edit.call_id]))
        turn.quotes[quoted.attempt] = quoted
        turn.edits = []
        turn.waits_for = "judgement"

    def _held(self, held: TurnHeld) -> None:
        if (turn := self._turn(held, "judgement")) is None:
            return
        holds = [(hold.call_id, hold.digest) for hold in held.holds]
        if not set(holds) <= set(self._quoted_in(turn, held.attempt)) or len(set(holds)) != len(holds):
            self._wrong(5, f"what is held is not what attempt {held.attempt} quoted.")
        turn.holds[held.attempt] = held
        turn.waits_for = "decisions"

    def _refused(self, refused: TurnRefused) -> None:
        if (turn := self._turn(refused, "judgement", "decisions")) is None:
            return
        self._results(turn, [result.call_id for result in refused.results])

    def _forwarded(self, forwarded: TurnForwarded) -> None:
        if (turn := self._turn(forwarded, "judgement", "decisions")) is None:
            return
        verdicts = [(verdict.call_id, verdict.digest) for verdict in forwarded.verdicts]
        if sorted(verdicts) != sorted(self._quoted_in(turn, forwarded.attempt)):
            self._wrong(5, f"what is forwarded is not what attempt {forwarded.attempt} quoted.")
        turn.forwards[forwarded.attempt] = forwarded
        turn.waits_for = "execution"

    def _decided(self, decided: CallDecided) -> None:
        turn = self._turns.get(decided.turn)
        if turn is None or turn.waits_for != "decisions":
            self._wrong(5, f"call {decided.call_id} was decided while nothing was held.")
            return
        held = turn.holds[max(turn.holds)]
        if (decided.call_id, decided.digest) not in {(hold.call_id, hold.digest) for hold in held.holds}:
            self._wrong(5, f"what was decided of call {decided.call_id} is not what was held.")
        elif self._event.time < held.expires_at:
            turn.decisions.append(decided)
            if decided.edited is not None and decided.decision == "approve":
                turn.edits.append(decided)

    # Rules 4 and 5: results, and what entitled them

    def _executed(self, executed: TurnExecuted) -> None:
        if (turn := self._turn(executed, "execution")) is None:
            return
        self._results(turn, [result.call_id for result in executed.results])
        forwarded, quoted = turn.forwards.get(executed.attempt), turn.quotes.get(executed.attempt)
        if forwarded is None or quoted is None:
            self._wrong(5, f"attempt {executed.attempt} was executed and never forwarded.")
            return
        runs = {verdict.call_id for verdict in forwarded.verdicts if verdict.verdict == "run"}
        failed = {result.call_id for result in executed.results if result.is_error}
        # A hold binds the very effect that it named; an effect that changed since was judged anew.
        holds = {(hold.call_id, hold.digest): hold for held in turn.holds.values() for hold in held.holds}
        for quote in quoted.quotes:
            if quote.kind != "write" or quote.call_id in failed:
                continue
            if quote.call_id not in runs:
                self._wrong(5, f"call {quote.call_id} was executed though its verdict was not to run it.")
            elif any(self._declines(turn, d, holds.get((quote.call_id, d.digest)), quote) for d in turn.decisions):
                self._wrong(5, f"call {quote.call_id} was declined and executed.")
            # What a person changed was held as it had been, unless it was held anew.
            elif (
                hold := holds.get((quote.call_id, quote.digest)) or holds.get((quote.call_id, quote.edited or ""))
            ) and not self._released(turn, hold, quote):
                self._wrong(5, f"call {quote.call_id} was held and executed without the decisions that it needed.")

    def _declines(self, turn: _Turn, decided: CallDecided, hold: Hold | None, quote: CallQuote) -> bool:
        """Whether somebody whose no counts has declined the call, whatever it would have done then."""
        assert self._started is not None  # noqa: S101 - event 0 was checked
        if hold is None or (decided.call_id, decided.decision) != (quote.call_id, "decline"):
            return False
        if who(decided.by) in self._asked(turn, quote):
            return False
        return may_decline(decided.by, hold.needs, self._started, hold.edited_by, quote.subject)

    def _released(self, turn: _Turn, hold: Hold, quote: CallQuote) -> bool:
        """Whether enough people approved this very effect, or changed the call into it and their word carries over."""
        assert self._started is not None  # noqa: S101 - event 0 was checked
        asked = self._asked(turn, quote)
        plain = [
            decided
            for decided in turn.decisions
            if (decided.call_id, decided.decision, decided.edited) == (hold.call_id, "approve", None)
            and decided.digest == quote.digest
            and who(decided.by) not in asked
        ]
        needs = self._needs(turn, hold, quote)
        return enough(
            needs,
            [
                decided.by
                for decided in plain + self._carried(turn, quote)
                if may_release(decided.by, needs, self._started, hold.edited_by, quote.subject)
            ],
        )

    @staticmethod
    def _needs(turn: _Turn, hold: Hold, quote: CallQuote) -> Needs:
        """What the hold asks for; of a call that was changed since, with what the day comes to by that."""
        if hold.digest == quote.digest:
            return hold.needs
        of_call = [q for quoted in turn.quotes.values() for q in quoted.quotes if q.call_id == quote.call_id]
        was = next(q for q in of_call if q.digest == hold.digest)
        return hold.needs.model_copy(update={"amount_minor": day_total(hold.needs.amount_minor, was, quote)})

    def _carried(self, turn: _Turn, quote: CallQuote) -> list[CallDecided]:
        """The approvals with changes that came to this very effect, and stand for it."""
        earlier = {q.digest: q for quoted in turn.quotes.values() for q in quoted.quotes if q.call_id == quote.call_id}
        return [
            edit
            for edit, came_to in turn.came_to
            if edit.call_id == quote.call_id
            and came_to.digest == quote.digest
            and carries_over(earlier[edit.digest], quote)
        ]

    def _asked(self, turn: _Turn, quote: CallQuote) -> set[tuple[str, str]]:
        """Who changed the call on its way into something else: what is quoted now they have asked for."""
        edits = [d for d in turn.decisions if d.call_id == quote.call_id and d.edited is not None]
        return {who(edit.by) for edit in edits} - {who(edit.by) for edit in self._carried(turn, quote)}

    def _quoted_in(self, turn: _Turn, attempt: int) -> list[tuple[str, str]]:
        quoted = turn.quotes.get(attempt)
        return [(quote.call_id, quote.digest) for quote in quoted.quotes] if quoted else []

    def _results(self, turn: _Turn, call_ids: list[str]) -> None:
        if call_ids != [call.call_id for call in turn.proposed.calls]:
            self._wrong(4, "the results do not answer the turn's calls one by one, in their order.")
        if turn.waits_for == "nothing":
            self._wrong(4, "the turn's calls have got their results before.")
        turn.waits_for = "nothing"
