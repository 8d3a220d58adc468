"""What people have said about a turn's held calls, and whether that settles them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from contracts.events import Event
from contracts.facts import CallDecided, Digest, Hold, HoldExpired, Person, RunStarted, TurnHeld
from contracts.people import enough, may_release


@dataclass(frozen=True, slots=True)
class Approval:
    by: Person
    digest: Digest


@dataclass(frozen=True, slots=True)
class Released:
    """Enough people approved exactly this effect; `rule` is why they were asked."""

    rule: str
    by: tuple[Person, ...]


@dataclass(frozen=True, slots=True)
class Declined:
    """A person said no, or nobody said anything in time. `reason` is for the model."""

    rule: str
    reason: str


@dataclass(slots=True)
class _Call:
    approvals: list[Approval] = field(default_factory=list)
    declined: Declined | None = None


class Decisions:
    """A fold over one turn: its holds, the decisions on them, their expiry."""

    def __init__(self, events: Iterable[Event], started: RunStarted) -> None:
        self._started = started
        self._calls: dict[str, _Call] = {}
        self._holds: dict[str, Hold] = {}
        self._expires_at: datetime | None = None
        for event in events:
            match event.fact:
                case TurnHeld(holds=holds, expires_at=expires_at):
                    self._holds = {hold.call_id: hold for hold in holds}
                    self._expires_at = expires_at
                case CallDecided() as decided:
                    self._hear(decided, event.time)
                case HoldExpired(call_ids=call_ids):
                    for hold in self._holds.values():
                        if hold.call_id in call_ids:
                            self._expire(hold)

    def of(self, hold: Hold) -> Released | Declined | None:
        """What settles a hold: enough approvals of its digest, in whichever attempt, or a refusal of the call."""
        call = self._calls.get(hold.call_id, _Call())
        if call.declined:
            return call.declined
        people = tuple(approval.by for approval in call.approvals if approval.digest == hold.digest)
        return Released(hold.rule, people) if enough(hold.needs, people) else None

    def declined(self, call_id: str) -> Declined | None:
        """A refusal stands whatever the call would do by now: it is the call that was declined, not its amount."""
        call = self._calls.get(call_id)
        return call.declined if call else None

    def _hear(self, decided: CallDecided, time: datetime) -> None:
        hold = self._holds.get(decided.call_id)
        if hold is None or self._expires_at is None or time >= self._expires_at:
            return
        # An edited decision is about another call than the one that was held: its own quote will be judged.
        if decided.digest != hold.digest or decided.edited is not None:
            return
        if not may_release(decided.by, hold.needs, self._started) or self.of(hold) is not None:
            return
        call = self._calls.setdefault(hold.call_id, _Call())
        if decided.decision == "decline":
            note = decided.note.strip()
            said = f" They said: {note}" if note else " They gave no reason."
            call.declined = Declined("declined", f"A person declined this, so it was not done.{said}")
        else:
            call.approvals.append(Approval(decided.by, decided.digest))

    def _expire(self, hold: Hold) -> None:
        if self.of(hold) is None:
            reason = "Nobody released this in time, so it was declined and not done."
            self._calls.setdefault(hold.call_id, _Call()).declined = Declined("expired", reason)
