"""What people have said about a turn's held calls, and whether that settles them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from contracts.edits import carries_over
from contracts.events import Event
from contracts.facts import CallDecided, HoldExpired, RunStarted, TurnHeld, TurnQuoted
from contracts.parts import CallQuote, Digest, Hold, Needs, Person
from contracts.people import enough, may_decline, may_release, same


@dataclass(frozen=True, slots=True)
class Approval:
    by: Person
    digest: Digest


@dataclass(slots=True)
class Edit:
    """A held call was approved with changed arguments. `became` is the effect that this first came to."""

    by: Person
    of: Digest
    became: Digest | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """Enough people approved exactly this effect; `rule` is why they were asked."""

    rule: str
    by: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """A person said no, or nobody said anything in time. `reason` is for the model; a person's own words are not
    policy's to repeat: whoever tells the model adds them."""

    rule: str
    reason: str


@dataclass(slots=True)
class _Call:
    quotes: dict[Digest, CallQuote] = field(default_factory=dict)
    holds: dict[Digest, Hold] = field(default_factory=dict)
    approvals: list[Approval] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    declined: Declined | None = None

    def edit_behind(self, quote: CallQuote) -> Edit | None:
        """Who made the call what is quoted. Of several who changed the same, the first is quoted."""
        return next((edit for edit in self.edits if edit.of == quote.edited), None)

    def carried(self, digest: Digest) -> Person | None:
        """Who changed the call into this effect, if that approves it: it goes with the effect that their edit brought,
        and with no later one."""
        quote = self.quotes.get(digest)
        edit = self.edit_behind(quote) if quote else None
        if quote is None or edit is None or edit.became != digest:
            return None
        was = self.quotes.get(edit.of)
        return edit.by if was is not None and carries_over(was, quote) else None

    def changed_by(self, digest: Digest) -> list[Person]:
        """Who changed the call on its way to this effect without approving it thereby: they have asked for it."""
        carried = self.carried(digest)
        return [edit.by for edit in self.edits if carried is None or not same(edit.by, carried)]

    def about(self, digest: Digest) -> str | None:
        """Whom this effect is about, by the shop's id."""
        quote = self.quotes.get(digest)
        return quote.subject if quote else None


class Decisions:
    """A fold over one turn: its quotes and holds, the decisions on them, their expiry.

    requoting: a person has changed a held call, so that all further waits for the turn's next quote.
    """

    def __init__(self, events: Iterable[Event], started: RunStarted) -> None:
        self.requoting = False
        self._started = started
        self._calls: dict[str, _Call] = {}
        self._holds: dict[str, Hold] = {}
        self._expires_at: datetime | None = None
        for event in events:
            match event.fact:
                case TurnQuoted(quotes=quotes):
                    self._quote(quotes)
                case TurnHeld(holds=holds, expires_at=expires_at):
                    self._holds = {hold.call_id: hold for hold in holds}
                    self._expires_at = expires_at
                    for hold in holds:
                        self._call(hold.call_id).holds[hold.digest] = hold
                case CallDecided() as decided:
                    self._hear(decided, event.time)
                case HoldExpired(call_ids=call_ids):
                    for hold in self._holds.values():
                        if hold.call_id in call_ids:
                            self._expire(hold)

    def of(self, hold: Hold) -> Released | Declined | None:
        """What settles a hold: enough approvals of its digest, in whichever attempt, or a refusal of the call."""
        call = self._call(hold.call_id)
        if call.declined:
            return call.declined
        people = self._approvers(hold)
        return Released(hold.rule, people) if enough(hold.needs, people) else None

    def declined(self, call_id: str) -> Declined | None:
        """A refusal stands whatever the call would do by now: it is the call that was declined, not its amount."""
        return self._call(call_id).declined

    def asked_before(self, quote: CallQuote) -> Needs | None:
        """What a changed call needed as it was held before. None where no such hold is known."""
        hold = self._call(quote.call_id).holds.get(quote.edited or "")
        return hold.needs if hold else None

    def asked_for_by(self, quote: CallQuote, needs: Needs) -> Person | None:
        """Who changed the call into this, where that makes them one who asks for it and does not approve it."""
        call = self._call(quote.call_id)
        edit = call.edit_behind(quote)
        if edit is None:
            return None
        carried = call.carried(quote.digest)
        if carried and may_release(carried, needs, self._started, subject=quote.subject):
            return None
        return edit.by

    def _approvers(self, hold: Hold) -> tuple[Person, ...]:
        call = self._call(hold.call_id)
        carried = call.carried(hold.digest)
        people = [approval.by for approval in call.approvals if approval.digest == hold.digest]
        if carried:
            people.insert(0, carried)
        return tuple(by for by in people if self._may(may_release, by, hold))

    def _may(self, rule: Callable[..., bool], by: Person, hold: Hold) -> bool:
        """Whether somebody's yes (`may_release`) or no (`may_decline`) counts for a hold."""
        call = self._call(hold.call_id)
        if any(same(by, one) for one in call.changed_by(hold.digest)):
            return False
        return rule(by, hold.needs, self._started, hold.edited_by, subject=call.about(hold.digest))

    def _call(self, call_id: str) -> _Call:
        return self._calls.setdefault(call_id, _Call())

    def _quote(self, quotes: Iterable[CallQuote]) -> None:
        self.requoting = False
        for quote in quotes:
            call = self._call(quote.call_id)
            call.quotes[quote.digest] = quote
            edit = call.edit_behind(quote)
            if edit and edit.became is None:
                edit.became = quote.digest

    def _hear(self, decided: CallDecided, time: datetime) -> None:
        hold = self._holds.get(decided.call_id)
        if hold is None or self._expires_at is None or time >= self._expires_at or decided.digest != hold.digest:
            return
        if self.of(hold) is not None:
            return
        call = self._call(hold.call_id)
        if decided.decision == "decline":
            if self._may(may_decline, decided.by, hold):
                call.declined = Declined("declined", "A person declined this, so it was not done.")
        elif decided.edited is not None:
            # Whoever it was, the shop quotes it anew. What it comes to will tell whether they may release it.
            call.edits.append(Edit(decided.by, hold.digest))
            self.requoting = True
        elif not any(same(decided.by, one) for one in self._approvers(hold)):
            # Whose approval stands has said it: in a higher role they fill no second seat, nor a higher one.
            call.approvals.append(Approval(decided.by, decided.digest))

    def _expire(self, hold: Hold) -> None:
        if self.requoting and any(edit.of == hold.digest for edit in self._call(hold.call_id).edits):
            return  # it was decided in time: what it became is yet to be judged
        if self.of(hold) is None:
            reason = "Nobody released this in time, so it was declined and not done."
            self._call(hold.call_id).declined = Declined("expired", reason)
