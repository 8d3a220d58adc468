"""The stop switch: which calls are not done for now, whoever approved them. One rule, for the service that pays, the
one that records approvals, and the pages that offer them."""

from collections.abc import Iterable
from dataclasses import dataclass

from contracts.events import Event
from contracts.money import Money
from contracts.parts import Effect
from contracts.tenant_facts import StopLifted, StopSet


@dataclass(frozen=True, slots=True)
class Stop:
    """A stop that stands: of one tool or (None) of all; of anything, or of what takes a customer's day above
    `above_minor`. `by` set it."""

    tool: str | None
    above_minor: int | None
    stop_id: str = ""
    reason: str = ""
    by: str = ""

    def covers(self, tool: str, effect: Effect, today_minor: int | None, *, harmless: bool) -> bool:
        """Whether it stops this tool's effect, behind which its customer has been paid `today_minor` in all.

        An amount is compared with that sum, so that nobody gets past it in several calls, turns or runs. What moves
        nothing is above no amount, and what is `harmless` is stopped by its name only.
        """
        if self.tool != tool and (self.tool is not None or harmless):
            return False
        if self.above_minor is None:
            return True
        moved = effect.amount_minor or 0
        return moved > 0 and max(moved, today_minor or 0) > self.above_minor

    def text(self, currency: str, locale: str = "") -> str:
        what = self.tool or "Everything that changes something"
        if self.above_minor is None:
            return f"{what} is stopped for now."
        most = Money(self.above_minor, currency).text(locale)
        return f"{what} above {most} to one customer in a day is stopped for now."

    def in_the_way(self, currency: str, locale: str = "") -> str:
        """Why an approval is not taken while it stands, for the person who would approve."""
        said = f" {self.by} set it: “{self.reason}”." if self.by else ""
        return f"{self.text(currency, locale)}{said} Approve it once the stop is lifted. It can be declined."


def standing(events: Iterable[Event]) -> tuple[Stop, ...]:
    """The stops that stand after a tenant's facts, the oldest first."""
    stops: dict[str, Stop] = {}
    for event in events:
        match event.fact:
            case StopSet() as fact:
                stops.pop(fact.stop_id, None)
                by = fact.by.subject
                stops[fact.stop_id] = Stop(fact.tool, fact.above_minor, fact.stop_id, fact.reason, by)
            case StopLifted() as fact:
                stops.pop(fact.stop_id, None)
    return tuple(stops.values())
