"""Turns against the shop: quoted in a transaction that is rolled back, executed in one that is committed once."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime
from typing import TypeVar

import structlog
from contracts.parts import CallQuote
from contracts.stops import stop
from psycopg import Rollback, errors
from psycopg_pool import AsyncConnectionPool

from tools_shop import authority, calls, declines, receipts, results, running, totals
from tools_shop.authority import Record
from tools_shop.caller import Caller
from tools_shop.calls import Call
from tools_shop.receipts import Receipt
from tools_shop.running import Outcomes
from tools_shop.toolset import Query, Read, Row, Toolset, Write
from tools_shop.transaction import Connection, Locks, Transaction, begin, bind
from tools_shop.turn import Changed, Ended, Executed, Order, Turn

logger = structlog.get_logger()
Pool = AsyncConnectionPool[Connection]
# Another transaction won a lock, or wrote the turn's receipt first: run again, and find what it left.
_LOST = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable, receipts.WrittenAlready)
_TRIES = 5

T = TypeVar("T")


class Turns:
    """Quotes and executes turns over one database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def quote(self, turn: Turn, declined: Collection[str] = ()) -> list[CallQuote]:
        """What each call would do, in order, each seeing those before it. A declined call is undone before the next.

        All of it as of one moment. What must still be true when the turn runs is looked at then, under locks.
        """
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
        for call in order.to_run(turn):
            if calls.digest(turn.caller, call, outcomes[call.call_id], {}) != order.verdicts[call.call_id].digest:
                return Changed()
        return Executed(order.attempt, results.of_calls(turn, order, outcomes))

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
                return [await running.rows(await running.read(connection, tenant, queries[0]))]
            async with connection.pipeline():
                cursors = [await running.read(connection, tenant, query) for query in queries]
            return [await running.rows(cursor) for cursor in cursors]

    # Turns that write

    async def _quote_writes(self, turn: Turn, declined: Collection[str]) -> list[CallQuote]:
        async with self._pool.connection() as connection, connection.transaction(force_rollback=True):
            writes = sum(call.kind == "write" for call in turn.calls)
            tx = await _begin(connection, turn, turn.calls, "customer" if writes > 1 else "none")
            outcomes = await running.run(tx, turn.caller, turn.calls, undo=declined, quoting=True)
            return [calls.quote(turn.caller, call, outcomes[call.call_id], tx) for call in turn.calls]

    async def _execute_writes(
        self, turn: Turn, order: Order, record: Record, ended: Callable[[], Awaitable[bool]]
    ) -> Executed | Changed | Ended:
        outcome: Executed | Changed | Ended = Ended()
        async with self._pool.connection() as connection:
            async with connection.transaction() as whole:
                done = await _execute(connection, turn, order, record)
                if not isinstance(done, Receipt):
                    outcome = done
                    raise Rollback(whole)
                stop("tools-shop.before-look")
                if await ended():
                    raise Rollback(whole)
                stop("tools-shop.before-commit")
                outcome = results.of_receipt(done)
            if isinstance(outcome, Executed) and outcome.receipt_id:
                stop("tools-shop.after-commit")
        return outcome


async def _execute(connection: Connection, turn: Turn, order: Order, record: Record) -> Receipt | Executed | Changed:
    """Everything but the commit, which is due only where this comes to a receipt of its own."""
    run = order.to_run(turn)
    tx = await _begin(connection, turn, run, "all")
    if receipt := await receipts.find(connection, turn.caller):
        receipt.must_be_for(turn.proposal_id, order.digests)
        return results.of_receipt(receipt)
    writes = [call for call in run if call.kind == "write"]
    released = authority.released_by(record, [order.quotes[call.call_id] for call in writes])
    tx.released_by = {call_id: [person.subject for person in people] for call_id, people in released.items()}
    outcomes = await running.run(tx, turn.caller, run)
    if not _as_quoted(turn, run, outcomes, order, tx) or not await totals.hold(tx, turn.caller, order.guards):
        return Changed()
    if stopped := [call.call_id for call in writes if calls.stopped(call, outcomes[call.call_id], tx.stops)]:
        logger.info("stopped", run=turn.caller.run, turn=turn.caller.turn, calls=stopped)
        return Changed()
    # By what the calls came to just now: what the log quoted was only needed to name people in the rows.
    now = [calls.quote(turn.caller, call, outcomes[call.call_id], tx) for call in writes]
    missing = authority.lacking(record, now, tx.tenant["floor_minor"])
    if missing:
        logger.error("forwarded without authority", calls=sorted(missing), attempt=order.attempt)
        return Executed(order.attempt, results.unauthorised(turn, missing))
    if _counts(run):
        await totals.count(tx, turn.caller)
    await _keep_declines(tx, turn, order)
    said = results.of_calls(turn, order, outcomes)
    receipt = receipts.new(turn.caller, turn.proposal_id, order.attempt, order.digests, said, tx.released_by)
    await receipts.keep(connection, turn.caller, receipt)
    return receipt


async def _again(work: Callable[[], Awaitable[T]]) -> T:
    """Runs a transaction anew where it lost to a concurrent one, a moment later each time."""
    for tried in range(1, _TRIES):
        try:
            return await work()
        except _LOST as error:
            logger.info("transaction lost", tried=tried, error=type(error).__name__)
            await asyncio.sleep(0.01 * 2**tried * random.uniform(0.5, 1.5))  # noqa: S311 - spreads retries
    return await work()


async def _begin(connection: Connection, turn: Turn, run: Sequence[Call], locks: Locks) -> Transaction:
    assert turn.toolset is not None  # noqa: S101 - a call that writes has a tool, and tools have a toolset
    rows = {lock for call in run for lock in call.locks}
    return await begin(connection, turn.toolset.tables, turn.caller, rows, counts=_counts(run), locks=locks)


def _counts(run: Sequence[Call]) -> bool:
    return any(isinstance(call.tool, Write) and call.tool.counts for call in run)


def _as_quoted(turn: Turn, run: Sequence[Call], outcomes: Outcomes, order: Order, tx: Transaction) -> bool:
    return all(
        calls.digest(turn.caller, call, outcomes[call.call_id], tx.states) == order.verdicts[call.call_id].digest
        for call in run
    )


async def _keep_declines(tx: Transaction, turn: Turn, order: Order) -> None:
    """Where the turn is executed before the decision was heard. What nobody decided in time was declined by no one."""
    for call in turn.calls:
        if call.call_id in order.declined and call.call_id in order.notes and call.kind == "write":
            await declines.keep(tx, turn.caller, call.call_id)
