"""Turns against the shop: quoted in a transaction that is rolled back, executed in one that is committed once."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import structlog
from contracts.facts import RunStarted, TurnProposed
from contracts.parts import CallQuote, CallResult, Guard, Verdict
from contracts.stops import stop
from contracts.subjects import RunKey
from psycopg import AsyncCursor, Rollback, errors
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from tools_shop import authority, calls, declines, receipts, totals
from tools_shop.authority import Record
from tools_shop.caller import Caller
from tools_shop.calls import Call
from tools_shop.edits import Edit
from tools_shop.outcomes import Outcome, Refusal
from tools_shop.receipts import Receipt
from tools_shop.toolset import Query, Read, Row, Toolset, Write
from tools_shop.transaction import Connection, Transaction, begin, bind

logger = structlog.get_logger()
Pool = AsyncConnectionPool[Connection]
# Another transaction won a lock, or wrote the turn's receipt first: run again, and find what it left.
_LOST = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable, receipts.WrittenAlready)
_TRIES = 5

T = TypeVar("T")
Outcomes = dict[str, Outcome | None]


@dataclass(frozen=True, slots=True)
class Turn:
    """A proposed turn: whose it is, its toolset (None if unknown here), its calls as read, its proposal's event id."""

    caller: Caller
    toolset: Toolset | None
    calls: Sequence[Call]
    proposal_id: str

    @classmethod
    def of(
        cls, key: RunKey, started: RunStarted, toolset: Toolset | None, proposal_id: str, proposed: TurnProposed,
        edits: Mapping[str, Edit],
    ) -> "Turn":  # fmt: skip
        caller = Caller.of(key, started, proposed.turn)
        return cls(caller, toolset, calls.read(toolset, proposed.calls, edits), proposal_id)

    @property
    def writes(self) -> bool:
        return calls.writes(self.calls)


@dataclass(frozen=True, slots=True)
class Order:
    """What policy forwarded: its verdicts by call id, the quotes that they are about, and the guards that must hold.

    `notes` are of the people who declined a call: policy does not repeat them, for it cannot read them.
    """

    attempt: int
    verdicts: Mapping[str, Verdict]
    quotes: Mapping[str, CallQuote]
    guards: Sequence[Guard] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def declined(self) -> frozenset[str]:
        return frozenset(call_id for call_id, verdict in self.verdicts.items() if verdict.verdict == "declined")

    @property
    def digests(self) -> dict[str, str]:
        return {call_id: verdict.digest for call_id, verdict in self.verdicts.items()}


@dataclass(frozen=True, slots=True)
class Executed:
    """It ran; `receipt_id` is None where nothing was written."""

    attempt: int
    results: Sequence[CallResult]
    receipt_id: str | None = None
    approved_by: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changed:
    """The world is no longer as it was quoted: nothing was done."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The run ended before the commit: nothing was done."""


@dataclass(frozen=True, slots=True)
class _Written:
    """Everything is done but the commit."""

    receipt: Receipt


class Turns:
    """Quotes and executes turns over one database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def quote(self, turn: Turn, declined: Collection[str] = ()) -> list[CallQuote]:
        """What each call would do, in order, each seeing those before it. A declined call is undone before the next."""
        if not turn.writes:
            outcomes = await self._look_up(turn, quoting=True)
            return [calls.quote(turn.caller, call, outcomes[call.call_id]) for call in turn.calls]
        return await _again(lambda: self._quote_writes(turn, declined))

    async def execute(
        self,
        turn: Turn,
        order: Order,
        record: Callable[[], Awaitable[Record]],
        ended: Callable[[], Awaitable[bool]],
    ) -> Executed | Changed | Ended:
        """Does what was forwarded, once, if the world still matches and the log authorises it.

        `record` reads the turn's holds and decisions; `ended` tells, just before the commit, whether the run is over.
        """
        if set(order.verdicts) != {call.call_id for call in turn.calls}:
            return Changed()
        if not turn.writes:
            return await self._execute_reads(turn, order)
        said = await record()
        return await _again(lambda: self._execute_writes(turn, order, said, ended))

    async def receipt(self, caller: Caller) -> Receipt | None:
        """The receipt of a turn that was executed."""
        async with self._pool.connection() as connection, connection.transaction():
            await bind(connection, caller.tenant)
            return await receipts.find(connection, caller)

    async def keep_decline(self, caller: Caller, toolset: Toolset, call_id: str, at: datetime) -> None:
        """Keeps that a person declined a call, whatever becomes of its turn. Under the customer's lock, as guards are
        looked at: an execution was committed before, or knows of it."""

        async def keep() -> None:
            async with self._pool.connection() as connection, connection.transaction():
                tx = await begin(connection, toolset.tables, caller, (), counts=False)
                await declines.keep(tx, caller, call_id, at)

        await _again(keep)

    # Reads only: no lock, no receipt, one round trip

    async def _execute_reads(self, turn: Turn, order: Order) -> Executed | Changed:
        outcomes = await self._look_up(turn, quoting=False, skip=order.declined)
        for call in _to_run(turn, order):
            if calls.digest(turn.caller, call, outcomes[call.call_id], {}) != order.verdicts[call.call_id].digest:
                return Changed()
        return Executed(order.attempt, _results(turn, order, outcomes))

    async def _look_up(self, turn: Turn, *, quoting: bool, skip: Collection[str] = ()) -> Outcomes:
        outcomes: Outcomes = {call.call_id: call.refusal for call in turn.calls}
        asked: list[tuple[Call, Read, Query]] = []
        for call in turn.calls:
            if not isinstance(call.tool, Read) or call.call_id in skip or (quoting and not call.tool.quoted):
                continue
            query = await call.tool.query(call.arguments, turn.caller)
            if query is None:
                outcomes[call.call_id] = call.tool.answer(call.arguments, [])
            else:
                asked.append((call, call.tool, query))
        if asked:
            answers = await self._ask(turn.caller.tenant, [query for _, _, query in asked])
            for (call, tool, _), rows in zip(asked, answers, strict=True):
                outcomes[call.call_id] = tool.answer(call.arguments, rows)
        return outcomes

    async def _ask(self, tenant: str, queries: Sequence[Query]) -> list[list[Row]]:
        """Each query's rows, in one round trip."""
        async with self._pool.connection() as connection:
            if len(queries) == 1:
                return [await _rows(await _read(connection, tenant, queries[0]))]
            async with connection.pipeline():
                cursors = [await _read(connection, tenant, query) for query in queries]
            return [await _rows(cursor) for cursor in cursors]

    # Turns that write

    async def _quote_writes(self, turn: Turn, declined: Collection[str]) -> list[CallQuote]:
        async with self._pool.connection() as connection, connection.transaction(force_rollback=True):
            tx = await _begin(connection, turn, turn.calls)
            outcomes = await _run(tx, turn, turn.calls, undo=declined, quoting=True)
            return [calls.quote(turn.caller, call, outcomes[call.call_id], tx) for call in turn.calls]

    async def _execute_writes(
        self, turn: Turn, order: Order, record: Record, ended: Callable[[], Awaitable[bool]]
    ) -> Executed | Changed | Ended:
        outcome: Executed | Changed | Ended = Ended()
        async with self._pool.connection() as connection:
            async with connection.transaction() as whole:
                done = await _execute(connection, turn, order, record)
                if not isinstance(done, _Written):
                    outcome = done
                    raise Rollback(whole)
                stop("tools-shop.before-look")
                if await ended():
                    raise Rollback(whole)
                stop("tools-shop.before-commit")
                outcome = of_receipt(done.receipt)
            if isinstance(outcome, Executed) and outcome.receipt_id:
                stop("tools-shop.after-commit")
        return outcome


async def _execute(connection: Connection, turn: Turn, order: Order, record: Record) -> _Written | Executed | Changed:
    """Everything but the commit, which is due only where something was written."""
    running = _to_run(turn, order)
    tx = await _begin(connection, turn, running)
    if receipt := await receipts.find(connection, turn.caller):
        receipt.must_be_for(turn.proposal_id, order.digests)
        return of_receipt(receipt)
    writes = [call for call in running if call.kind == "write"]
    released = authority.released_by(record, [order.quotes[call.call_id] for call in writes])
    tx.released_by = {call_id: [person.subject for person in people] for call_id, people in released.items()}
    outcomes = await _run(tx, turn, running)
    if not _as_quoted(turn, running, outcomes, order, tx) or not await totals.hold(tx, turn.caller, order.guards):
        return Changed()
    if any(calls.stopped(call, outcomes[call.call_id], tx.stops) for call in writes):
        return Changed()
    # By what the calls came to just now: what the log quoted was only needed to name people in the rows.
    now = [calls.quote(turn.caller, call, outcomes[call.call_id], tx) for call in writes]
    missing = authority.lacking(record, now, tx.tenant["floor_minor"])
    if missing:
        logger.error("forwarded without authority", calls=sorted(missing), attempt=order.attempt)
        return Executed(order.attempt, _unauthorised(turn, missing))
    await _keep_declines(tx, turn, order)
    results = _results(turn, order, outcomes)
    receipt = receipts.new(turn.caller, turn.proposal_id, order.attempt, order.digests, results, tx.released_by)
    await receipts.keep(connection, turn.caller, receipt)
    return _Written(receipt)


async def _again(work: Callable[[], Awaitable[T]]) -> T:
    """Runs a transaction anew where it lost to a concurrent one, a moment later each time."""
    for tried in range(1, _TRIES):
        try:
            return await work()
        except _LOST as error:
            logger.info("transaction lost", tried=tried, error=type(error).__name__)
            await asyncio.sleep(0.01 * 2**tried * random.uniform(0.5, 1.5))  # noqa: S311 - spreads retries
    return await work()


async def _begin(connection: Connection, turn: Turn, running: Sequence[Call]) -> Transaction:
    assert turn.toolset is not None  # noqa: S101 - a call that writes has a tool, and tools have a toolset
    locks = {lock for call in running for lock in call.locks}
    counts = any(isinstance(call.tool, Write) and call.tool.counts for call in running)
    return await begin(connection, turn.toolset.tables, turn.caller, locks, counts=counts)


async def _run(
    tx: Transaction, turn: Turn, running: Sequence[Call], *, undo: Collection[str] = (), quoting: bool = False
) -> Outcomes:
    """Runs the calls in order, each behind a savepoint: one that fails leaves nothing and does not stop the others."""
    outcomes: Outcomes = {}
    for call in running:
        outcomes[call.call_id] = call.refusal
        if isinstance(call.tool, Write):
            async with tx.connection.transaction() as savepoint:
                outcome = await call.tool.apply(tx, call.arguments, turn.caller, call.call_id)
                outcomes[call.call_id] = outcome
                if isinstance(outcome, Refusal) or call.call_id in undo:
                    raise Rollback(savepoint)
        elif call.tool and not (quoting and not call.tool.quoted):
            query = await call.tool.query(call.arguments, turn.caller)
            rows = await _rows(await _read(tx.connection, turn.caller.tenant, query)) if query else []
            outcomes[call.call_id] = call.tool.answer(call.arguments, rows)
    return outcomes


async def _read(connection: Connection, tenant: str, query: Query) -> AsyncCursor[DictRow]:
    statement, parameters = query.bound_to(tenant)
    return await connection.execute(statement, parameters, prepare=True)


async def _rows(cursor: AsyncCursor[DictRow]) -> list[Row]:
    row = await cursor.fetchone()
    return row["rows"] if row else []


def _to_run(turn: Turn, order: Order) -> list[Call]:
    return [call for call in turn.calls if call.call_id not in order.declined]


def _as_quoted(turn: Turn, running: Sequence[Call], outcomes: Outcomes, order: Order, tx: Transaction) -> bool:
    return all(
        calls.digest(turn.caller, call, outcomes[call.call_id], tx.states) == order.verdicts[call.call_id].digest
        for call in running
    )


async def _keep_declines(tx: Transaction, turn: Turn, order: Order) -> None:
    """Where the turn is executed before the decision was heard. What nobody decided in time was declined by no one."""
    for call in turn.calls:
        if call.call_id in order.declined and call.call_id in order.notes and call.kind == "write":
            await declines.keep(tx, turn.caller, call.call_id)


def _results(turn: Turn, order: Order, outcomes: Outcomes) -> list[CallResult]:
    results = []
    for call in turn.calls:
        outcome = outcomes.get(call.call_id)
        if call.call_id in order.declined:
            results.append(calls.refused(call.call_id, _why_declined(order, call.call_id), "declined"))
        elif outcome is None:
            raise LookupError(f"Call {call.call_id} was run and came to nothing.")
        else:
            results.append(calls.result(call, outcome))
    return calls.fitted(results)


def _why_declined(order: Order, call_id: str) -> str:
    verdict = order.verdicts[call_id]
    reason = verdict.reason or "This was declined, so it was not done."
    if call_id not in order.notes or verdict.rule != "declined":
        return reason
    note = order.notes[call_id]
    return f"{reason} They said: {note}" if note else f"{reason} They gave no reason."


def _unauthorised(turn: Turn, missing: Mapping[str, Refusal]) -> list[CallResult]:
    others = Refusal("turn-not-released", "This was not done: another call of the same turn had not been released.")
    return [calls.result(call, missing.get(call.call_id, others)) for call in turn.calls]


def of_receipt(receipt: Receipt) -> Executed:
    """What its receipt says of a turn that was executed."""
    return Executed(receipt.attempt, receipt.results, receipt.id, receipt.approved_by)
