"""Calls that people are asked about: what each would do, who has decided, and what of that stands for it."""

from datetime import datetime
from typing import Literal

from contracts.edits import carries_over
from contracts.events import Event
from contracts.facts import TurnHeld
from contracts.parts import CallQuote, Hold, Person
from contracts.people import enough, reaches, within_own_limit
from contracts.turn import Held
from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Seat(Part):
    """One person's decision on a held call. `carried`: given at an earlier attempt, and it stands for this one."""

    by: Person
    decision: Literal["approve", "decline"]
    note: str
    edited: bool
    at: datetime
    carried: bool = False


class HeldCall(Part):
    """A call that waits, or waited, for people: what it would do, why it is held, and who has decided so far.

    was: what was shown before, where the call has been quoted again since and would do something else now.
    lapsed: the approvals of that, which do not stand for this.
    changed_by: who changed the call into what is held, where their approval does not stand for it.
    came_to: what it was quoted as once somebody approved it with changes, and it was not held again.
    refused: the rule by which it was refused after it was approved. failed: it was to be carried out, and was not.
    """

    turn: int
    attempt: int
    call_id: str
    quote: CallQuote
    hold: Hold
    held_at: datetime
    expires_at: datetime
    seats: tuple[Seat, ...] = ()
    expired: bool = False
    was: CallQuote | None = None
    lapsed: tuple[Seat, ...] = ()
    changed_by: tuple[Person, ...] = ()
    came_to: CallQuote | None = None
    refused: str | None = None
    failed: bool = False
    escalate_at: datetime | None = None
    reminded_at: datetime | None = None
    escalated_to: str | None = None

    @property
    def approvals(self) -> list[Seat]:
        return [seat for seat in self.seats if seat.decision == "approve"]

    @property
    def approved_by(self) -> list[Person]:
        """Those whose approval counts for what is held now: its role or limit may have become a higher one."""
        needs = self.hold.needs
        return [
            seat.by
            for seat in self.approvals
            if reaches(seat.by.role, needs.role) and (within_own_limit(seat.by, needs) or self._is_changed_by(seat))
        ]

    @property
    def declined(self) -> bool:
        return any(seat.decision == "decline" for seat in self.seats)

    @property
    def came_to_nothing(self) -> bool:
        """Whether it was approved, and then not done."""
        return bool(self.approvals) and not self.declined and (self.refused is not None or self.failed)

    @property
    def asked(self) -> CallQuote:
        """What the agent asked for, before an approval changed it."""
        carried = any(seat.edited and seat.carried for seat in self.seats)
        return self.was if carried and self.was is not None else self.quote

    @property
    def latest(self) -> CallQuote:
        """What was decided on, as far as it has come."""
        return self.came_to or self.quote

    @property
    def pending(self) -> bool:
        """Whether a decision is still missing. What counts in the end is the word of approvals and policy."""
        if self.expired or self.declined or self.refused is not None:
            return False
        if any(self._is_changed_by(seat) for seat in self.seats):
            return False  # it is being quoted with the changes
        return not enough(self.hold.needs, self.approved_by)

    @property
    def stands(self) -> Held:
        """How it stands in its turn."""
        if self.declined:
            return Held("declined")
        if self.expired:
            return Held("expired")
        if not self.pending:
            return Held("approved")
        return Held("waits", max(self.hold.needs.people - len(self.approved_by), 1))

    def _is_changed_by(self, seat: Seat) -> bool:
        return seat.edited and not seat.carried


def held_anew(
    event: Event, fact: TurnHeld, hold: Hold, now: CallQuote, known: HeldCall | None, before: CallQuote | None
) -> HeldCall:
    """The call as it is held now: of a turn that was quoted again, with what it was before and what of it stands.

    known: the same call as it was held before, before: as it was quoted before.
    """
    shown = known.quote if known else before
    changed = shown is not None and shown.digest != now.digest
    seats = known.seats if known else ()
    # An approval goes with the digest, not with the attempt; one with changes also with what the changes came to.
    carried = hold.edited_by is None and shown is not None and carries_over(shown, now)
    stands = [seat for seat in seats if not changed or (seat.edited and carried)]
    return HeldCall(
        turn=fact.turn,
        attempt=fact.attempt,
        call_id=hold.call_id,
        quote=now,
        hold=hold,
        held_at=event.time,
        expires_at=fact.expires_at,
        escalate_at=fact.escalate_at,
        seats=tuple(seat.model_copy(update={"carried": True}) for seat in stands),
        was=shown if changed else known.was if known else None,
        lapsed=tuple(seat for seat in seats if seat not in stands and seat.decision == "approve"),
        changed_by=(
            *(known.changed_by if known else ()),
            *(seat.by for seat in seats if seat.edited and seat not in stands),
        ),
    )
