"""What tools-shop hears and is asked, and what it does about it."""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from contracts.errors import CorruptLog
from contracts.events import Draft, Event
from contracts.facts import Fact, Json, RunStarted, ToolCall, TurnExecuted, TurnProposed, TurnQuoted
from contracts.handler import respond
from contracts.history import History
from contracts.log import TERMINAL, Log
from contracts.subjects import BadToken, RunKey

from tools_shop import calls
from tools_shop.authority import Record
from tools_shop.caller import Caller
from tools_shop.domain import OwesExecution, OwesQuote, owed
from tools_shop.toolset import Toolset
from tools_shop.turns import Ended, Executed, Order, Turn, Turns, of_receipt


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
        """A turn that was proposed, or one that was forwarded."""
        await respond(self._log, event, self._react)

    async def _react(self, history: History, event: Event) -> Draft | None:
        match owed(history, event):
            case OwesQuote() as owes:
                turn = self._turn(history.key, owes.started, owes.proposal_id, owes.proposed)
                quotes = await self._turns.quote(turn)
                return Draft(TurnQuoted(turn=owes.proposed.turn, attempt=1, quotes=quotes), event)
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
        turn = self._turn(key, owes.started, owes.proposal_id, owes.proposed)
        forwarded = owes.forwarded
        if owes.ended:
            receipt = await self._turns.receipt(turn.caller) if turn.writes else None
            return _executed(turn, of_receipt(receipt)) if receipt else None
        order = Order(forwarded.attempt, {v.call_id: v for v in forwarded.verdicts}, forwarded.guards)

        async def record() -> Record:
            return await self._record(key, event, turn.caller.turn)

        async def ended() -> bool:
            return any(await asyncio.gather(*(self._log.last_of(key, kind) for kind in TERMINAL)))

        match await self._turns.execute(turn, order, record, ended):
            case Executed() as executed:
                return _executed(turn, executed)
            case Ended():
                return None
        quotes = await self._turns.quote(turn, order.declined)
        return TurnQuoted(turn=turn.caller.turn, attempt=forwarded.attempt + 1, quotes=quotes)

    async def _record(self, key: RunKey, forward: Event, turn: int) -> Record:
        """What the log itself says of this turn's authority. Raises NotTheLastForward if that is another, CorruptLog if
        the run has not just one beginning."""
        started, last, held, decided = await asyncio.gather(
            self._log.every_of(key, "desk.run-started"),
            self._log.last_of(key, forward.kind),
            self._log.every_of(key, "policy.turn-held"),
            self._log.every_of(key, "approvals.call-decided"),
        )
        if last is None or last.id != forward.id:
            raise NotTheLastForward(f"The forward of turn {turn} is not the last that the log of {key.run} holds.")
        match [event.fact for event in started]:
            case [RunStarted() as fact]:
                return Record.of(fact, turn, [*held, *decided])
        raise CorruptLog(
            f"{key.run} was started {len(started)} times: who asked for it is not known. Nothing was done."
        )

    def _turn(self, key: RunKey, started: RunStarted, proposal_id: str, proposed: TurnProposed) -> Turn:
        toolset = self._toolsets.get(started.toolset)
        caller = Caller.of(key, started, proposed.turn)
        return Turn(caller, toolset, calls.read(toolset, proposed.calls), proposal_id)

    # Asked

    async def catalogue(self, request: Json) -> Json:
        """The tools of a toolset."""
        toolset = self._toolsets.get(str(request.get("toolset", "shop")))
        if toolset is None:
            offered = ", ".join(self._toolsets)
            return {"status": 404, "title": "No such toolset", "detail": f"This service offers: {offered}."}
        return toolset.catalogue

    async def quote(self, request: Json) -> Json:
        """What one call of a proposed turn would do with other arguments; nothing is changed or said."""
        missing = {"status": 404, "title": "No such call", "detail": "There is no such call in this run."}
        try:
            key = RunKey(str(request.get("tenant")), str(request.get("run")))
        except BadToken:
            return missing
        history = await self._log.read(key)
        for event, proposed in history.of(TurnProposed):
            found = next((call for call in proposed.calls if call.call_id == request.get("call_id")), None)
            if proposed.turn != request.get("turn") or found is None or history.started is None:
                continue
            edited = request.get("edited")
            changed = found if edited is None else ToolCall(call_id=found.call_id, tool=found.tool, arguments=edited)
            others = [changed if call.call_id == found.call_id else call for call in proposed.calls]
            turn = self._turn(key, history.started, event.id, proposed.model_copy(update={"calls": others}))
            quotes = await self._turns.quote(turn)
            return {
                "status": 200,
                "quote": next(q.model_dump(mode="json") for q in quotes if q.call_id == found.call_id),
            }
        return missing


def _executed(turn: Turn, executed: Executed) -> TurnExecuted:
    return TurnExecuted(
        turn=turn.caller.turn,
        attempt=executed.attempt,
        receipt_id=executed.receipt_id,
        results=list(executed.results),
        approved_by={call_id: list(people) for call_id, people in executed.approved_by.items()},
    )
