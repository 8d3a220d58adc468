"""The approval queue's cards: what a run waits for, what it does since people decided, or what came of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from contracts.events import Event
from contracts.facts import TurnHeld
from contracts.identity import Principal
from contracts.turn import sums_in_words

from gateway.console import words
from gateway.console.rows import Row
from gateway.console.trajectory import Trajectory
from gateway.domain import Edited, may_say
from gateway.held import HeldCall
from gateway.views import RunView

LITTLE = timedelta(minutes=20)


@dataclass(frozen=True, slots=True)
class Card:
    view: RunView
    state: Literal["waiting", "running", "closed"]
    mine: bool
    title: str
    outcome: str
    pill: tuple[str, str, str]
    rows: tuple[Row, ...] = ()
    since: int = 0

    @property
    def tone(self) -> str:
        return {"waiting": "hold", "running": "run", "closed": ""}[self.state]

    @property
    def held_at(self) -> datetime:
        return min(call.held_at for call in self.view.held)

    @property
    def expires_at(self) -> datetime:
        return min(call.expires_at for call in self.view.held)

    def urgent(self, now: datetime) -> bool:
        """Whether less than a quarter of the time to decide is left, or less than twenty minutes."""
        left = self.expires_at - now
        return left < LITTLE or left < (self.expires_at - self.held_at) / 4

    @property
    def amount(self) -> str:
        return words.turn_amount(self.view)

    @property
    def moved(self) -> bool:
        return bool(self.view.moved)

    @property
    def came_to_nothing(self) -> bool:
        """Whether something was approved and then not done: more than the run's status says of it."""
        return any(call.came_to_nothing for call in self.view.held)


def card(view: RunView, events: tuple[Event, ...], asker: Principal, zone: str = "UTC") -> Card | None:
    """None for a run that never asked a person. `events` are the run's; its rows since the hold are shown, with their
    days in the zone."""
    if not view.held:
        return None
    waiting, first = bool(view.holds), view.held[0]
    since = max((event.sequence for event in events if isinstance(event.fact, TurnHeld)), default=0)
    return Card(
        view=view,
        state="waiting" if waiting else "closed" if view.ended else "running",
        mine=waiting and any(may_say(view, call, asker) for call in view.holds),
        title=view.held_turn.headline,
        outcome=_outcome(view, asker),
        pill=_pill(view, first),
        rows=() if waiting else rows_since(events, since, zone),
        since=since,
    )


def label(edited: Edited) -> str:
    """What the button with changes does, as in `Approve £120.00 instead of £180.00`: all that the turn then moves."""
    was, now = (
        sums_in_words(edited.turn.with_quote(quote).total, edited.turn.locale) for quote in (edited.was, edited.now)
    )
    if edited.refused is not None:
        return "Approve with these changes"
    if not edited.stands:
        return "Change it; somebody else releases it"
    if now == was:
        return f"Approve {now} with these changes".replace("  ", " ")
    return f"Approve {now} instead of {was}"


def rows_since(events: tuple[Event, ...], sequence: int, zone: str = "UTC") -> tuple[Row, ...]:
    """The rows that the facts behind `sequence` opened."""
    trajectory = Trajectory(zone)
    opened: dict[str, None] = {}
    for event in events:
        changed = trajectory.see(event)
        if event.sequence > sequence:
            opened |= {row.id: None for row in changed if row.opened > sequence}
    return tuple(trajectory.rows[row_id] for row_id in opened)


def _outcome(view: RunView, asker: Principal) -> str:
    said = []
    for call in view.held:
        for seat in call.seats:
            who = "you" if (seat.by.subject, seat.by.issuer) == (asker.subject, asker.issuer) else seat.by.subject
            did = "approved it" if seat.decision == "approve" else "declined it"
            did += " with changes" if seat.edited else ""
            note = f": “{seat.note}”" if seat.note else ""
            said.append(f"{who} {did}{note}")
        if call.came_to_nothing:
            said.append(f"it was {_undone(call)}")
    if any(call.expired for call in view.held):
        said.append("nobody decided in time, nothing was done")
    if not said:
        said.append(view.reason or "ended before anybody decided")
    text = "; ".join(said)
    return text[:1].upper() + text[1:]


def _undone(call: HeldCall) -> str:
    """What became of an approval that moved nothing, as in `refused: stopped: no money moved`."""
    nothing = "no money moved" if words.amount(call.latest.effect) else "nothing was done"
    return f"refused: {call.refused}: {nothing}" if call.refused is not None else f"not done: {nothing}"


def _pill(view: RunView, first: HeldCall) -> tuple[str, str, str]:
    if any(call.expired for call in view.held):
        return "", "clock", "Expired"
    if first.pending:
        return "", "flag", "Not decided"
    if first.declined:
        return "", "x", "Declined"
    if any(call.came_to_nothing for call in view.held):
        return "bad", "no", "Refused" if any(call.refused for call in view.held) else "Not done"
    return "ok", "check", "Approved"
