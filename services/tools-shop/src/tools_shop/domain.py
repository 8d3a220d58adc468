"""What tools knows of a run, and what it owes: a quote of a proposed turn, or the execution of a forwarded one."""

from dataclasses import dataclass
from typing import TypeVar

from contracts.events import Event
from contracts.facts import RunStarted, TurnExecuted, TurnForwarded, TurnProposed, TurnQuoted
from contracts.history import History

READS = (
    "desk.run-started",
    "agent.turn-proposed",
    "tools.turn-quoted",
    "tools.turn-executed",
    "policy.turn-forwarded",
)
T = TypeVar("T", TurnProposed, TurnQuoted, TurnExecuted)


@dataclass(frozen=True, slots=True)
class OwesQuote:
    """The turn was proposed and has no quote."""

    started: RunStarted
    proposal_id: str
    proposed: TurnProposed


@dataclass(frozen=True, slots=True)
class OwesExecution:
    """The turn's last quote was forwarded. Where the run has ended, only what had been done already is still said."""

    started: RunStarted
    proposal_id: str
    proposed: TurnProposed
    forwarded: TurnForwarded
    ended: bool


def owed(history: History, event: Event) -> OwesQuote | OwesExecution | None:
    """What `event` asks of this service, None if that was dealt with or the run has moved past it."""
    started = history.started
    if started is None:
        return None
    match event.fact:
        case TurnProposed() as proposed:
            known = history.end or _last(history, TurnQuoted, proposed.turn)
            return None if known else OwesQuote(started, event.id, proposed)
        case TurnForwarded() as forwarded:
            return _execution(history, started, forwarded)
    return None


def _execution(history: History, started: RunStarted, forwarded: TurnForwarded) -> OwesExecution | None:
    turn = forwarded.turn
    quote, proposal = _last(history, TurnQuoted, turn), _last(history, TurnProposed, turn)
    if quote is None or proposal is None or _last(history, TurnExecuted, turn):
        return None
    if quote[1].attempt != forwarded.attempt:
        return None
    return OwesExecution(started, proposal[0].id, proposal[1], forwarded, history.end is not None)


def _last(history: History, kind: type[T], turn: int) -> tuple[Event, T] | None:
    """The newest fact of a kind about a turn."""
    for event in reversed(history.events):
        if isinstance(event.fact, kind) and event.fact.turn == turn:
            return event, event.fact
    return None
