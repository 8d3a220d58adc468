"""What of a run still waits for a person, by the facts of it that the gateway shows."""

from typing import Any

from contracts.facts import CallDecided, HoldExpired, RunEnded, TurnForwarded, TurnHeld, TurnRefused
from contracts.parts import Hold
from contracts.people import enough

OVER = tuple(f"turngate.{fact.kind}.v1" for fact in (TurnForwarded, TurnRefused, HoldExpired, RunEnded))
HELD, DECIDED = f"turngate.{TurnHeld.kind}.v1", f"turngate.{CallDecided.kind}.v1"

Documents = list[dict[str, Any]]


def last_hold(facts: Documents) -> TurnHeld | None:
    holds = [fact for fact in facts if fact["type"] == HELD]
    return TurnHeld.model_validate(holds[-1]["data"], extra="ignore") if holds else None


def waiting(facts: Documents) -> list[Hold]:
    """The calls of the last hold for which a decision is still missing."""
    held = last_hold(facts)
    begun = max((number for number, fact in enumerate(facts) if fact["type"] == HELD), default=0)
    if held is None or any(fact["type"] in OVER for fact in facts[begun:]):
        return []
    decided = [CallDecided.model_validate(fact["data"], extra="ignore") for fact in facts if fact["type"] == DECIDED]
    return [hold for hold in held.holds if not _is_settled(hold, [one for one in decided if _is_on(one, held, hold)])]


def _is_on(decided: CallDecided, held: TurnHeld, hold: Hold) -> bool:
    return (decided.turn, decided.call_id, decided.digest) == (held.turn, hold.call_id, hold.digest)


def _is_settled(hold: Hold, decided: list[CallDecided]) -> bool:
    if any(one.decision == "decline" or one.edited is not None for one in decided):
        return True
    return enough(hold.needs, [one.by for one in decided])
