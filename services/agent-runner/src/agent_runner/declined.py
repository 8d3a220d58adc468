"""What a run's end says of the declines that stand: why a person has the ticket, and what they have to know."""

from collections.abc import Iterable, Sequence

from contracts.declines import Decline
from contracts.events import Event
from contracts.facts import CallDecided, HoldExpired

from agent_runner.answer import LONGEST_TEXT


def any_declined(events: Iterable[Event]) -> bool:
    """Whether a person declined anything so far, or did not decide in time."""
    return any(
        isinstance(event.fact, HoldExpired)
        or (isinstance(event.fact, CallDecided) and event.fact.decision == "decline")
        for event in events
    )


def why(declines: Sequence[Decline]) -> str:
    """Why the run did not end resolved."""
    what = "; ".join(dict.fromkeys(_verdict(decline) for decline in declines))
    return f"{what}, and no later approval made it good. A person has to get in touch with the customer."


def handover(declines: Sequence[Decline]) -> str:
    """What was declined, by whom and why, one line each."""
    return "\n".join(_line(decline) for decline in declines)[:LONGEST_TEXT]


def _verdict(decline: Decline) -> str:
    return f"{decline.by.subject} declined what the agent asked for" if decline.by else "Nobody decided in time"


def _line(decline: Decline) -> str:
    effect = decline.quote.effect if decline.quote else None
    what = f"{effect.summary} ({effect.object})" if effect else decline.tool
    if decline.by is None:
        return f"Not decided in time: {what}."
    said = f" They said: {decline.note.strip()}" if decline.note.strip() else ""
    return f"Declined by {decline.by.subject}: {what}.{said}"
