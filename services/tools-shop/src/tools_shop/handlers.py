"""What tools-shop hears and is asked, and what it does about it."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from contracts.errors import CorruptLog
from contracts.events import Draft, Event
from contracts.facts import CallDecided, Fact, RunStarted, TurnExecuted, TurnQuoted
from contracts.handler import respond
from contracts.history import History
from contracts.log import TERMINAL, Log
from contracts.stops import stop
from contracts.subjects import RunKey

from tools_shop.authority import Record
from tools_shop.caller import Caller
from tools_shop.domain import OwesExecution, OwesQuote, declines_a_write, edits_of, owed
from tools_shop.results import of_receipt
from tools_shop.toolset import Toolset
from tools_shop.turn import Ended, Executed, Order, Turn
from tools_shop.turns import Turns


class RunLog(Log, Protocol):
    """The log, and what of it is read by exact subject: nobody's trail is believed where money moves."""

    async def last_of(self, key: RunKey, kind: str) -> Event | None: ...

    async def every_of(self, key: RunKey, kind: str) -> list[Event]: ...


class NotTheLastForward(Exception):
    """The log holds another forward than the one in hand: the run has moved on, or this forward is not of it."""


class Handlers:
    def __init__(self, log: RunLog, turns: Turns, toolsets: Mapping[str, Toolset]) -> None:
        self._log = log
        self._turns = turns
        self._toolsets = toolsets

    async def hear(self, event: Event) -> None:
        """A turn that was proposed, one that was forwarded, or a held call that a person changed or declined."""
        match event.fact:
            case CallDecided(decision="decline") as decided:
                return await self._keep_decline(event, decided)
            case CallDecided(edited=None):
                return  # for policy alone: nothing is read for it
        await respond(self._log, event, self._react)

    async def _keep_decline(self, event: Event, decided: CallDecided) -> None:
        history = await self._log.read(event.key, at=event)
        started = history.started
        if started is None or not declines_a_write(history, decided):
            return
        if toolset := self._toolsets.get(started.toolset):
            caller = Caller.of(event.key, started, decided.turn)
            await self._turns.keep_decline(caller, toolset, decided.call_id, event.time)

    async def _react(self, history: History, event: Event) -> Draft | None:
        match owed(history, event):
            case OwesQuote() as owes:
                toolset = self._toolsets.get(owes.started.toolset)
                turn = Turn.of(history.key, owes.started, toolset, owes.proposal_id, owes.proposed, owes.edits)
                quotes = await self._turns.quote(turn, owes.declined)
                stop("tools-shop.after-quote")
                return Draft(TurnQuoted(turn=owes.proposed.turn, attempt=owes.attempt, quotes=quotes), event)
            case OwesExecution() as owes:
                try:
                    fact = await self._execute(history.key, event, owes)
                except NotTheLastForward:
                    newer = await self._log.read(history.key)
                    if newer.head == history.head:
                        raise
                    return await self._react(newer, event)
                return Draft(fact, event) if fact else None
        return None

    async def _execute(self, key: RunKey, event: Event, owes: OwesExecution) -> Fact | None:
        toolset, edits, forwarded = self._toolsets.get(owes.started.toolset), edits_of(owes.quoted), owes.forwarded
        turn = Turn.of(key, owes.started, toolset, owes.proposal_id, owes.proposed, edits)
        if owes.ended:
            receipt = await self._turns.receipt(turn.caller) if turn.writes else None
            return _executed(turn, of_receipt(receipt)) if receipt else None
        verdicts = {verdict.call_id: verdict for verdict in forwarded.verdicts}
        quoted = {quote.call_id: quote for quote in owes.quoted.quotes}
        order = Order(forwarded.attempt, verdicts, quoted, forwarded.guards, owes.declined)

        async def record() -> Record:
            return await self._record(key, event, turn.caller.turn, edited=bool(edits))

        async def ended() -> bool:
            return any(await asyncio.gather(*(self._log.last_of(key, kind) for kind in TERMINAL)))

        match await self._turns.execute(turn, order, record, ended):
            case Executed() as executed:
                return _executed(turn, executed)
            case Ended():
                return None
        quotes = await self._turns.quote(turn, order.declined)
        return TurnQuoted(turn=turn.caller.turn, attempt=forwarded.attempt + 1, quotes=quotes)

    async def _record(self, key: RunKey, forward: Event, turn: int, *, edited: bool) -> Record:
        """What the log itself says of this turn's authority. Raises NotTheLastForward if that is another, CorruptLog if
        the run has not just one beginning."""
        started, last, held, decided, quoted = await asyncio.gather(
            self._log.every_of(key, "desk.run-started"),
            self._log.last_of(key, forward.kind),
            self._log.every_of(key, "policy.turn-held"),
            self._log.every_of(key, "approvals.call-decided"),
            self._log.every_of(key, "tools.turn-quoted") if edited else _nothing(),
        )
        if last is None or last.id != forward.id:
            raise NotTheLastForward(f"The forward of turn {turn} is not the last that the log of {key.run} holds.")
        match [event.fact for event in started]:
            case [RunStarted() as fact]:
                return Record.of(fact, turn, [*held, *decided, *quoted])
        raise CorruptLog(
            f"{key.run} was started {len(started)} times: who asked for it is not known. Nothing was done."
        )


async def _nothing() -> list[Event]:
    return []


def _executed(turn: Turn, executed: Executed) -> TurnExecuted:
    return TurnExecuted(
        turn=turn.caller.turn,
        attempt=executed.attempt,
        receipt_id=executed.receipt_id,
        results=list(executed.results),
        approved_by={call_id: list(people) for call_id, people in executed.approved_by.items()},
    )
