"""How a turn's calls run: the same for a quote of what they would do and for doing it."""

from collections.abc import Collection, Sequence

from psycopg import AsyncCursor, Rollback
from psycopg.rows import DictRow

from tools_shop.caller import Caller
from tools_shop.calls import Call
from tools_shop.outcomes import Outcome, Refusal
from tools_shop.toolset import Query, Row, Write
from tools_shop.transaction import Connection, Transaction

Outcomes = dict[str, Outcome | None]


async def run(
    tx: Transaction, caller: Caller, running: Sequence[Call], *, undo: Collection[str] = (), quoting: bool = False
) -> Outcomes:
    """Runs the calls in order, each behind a savepoint: one that fails leaves nothing and does not stop the others."""
    outcomes: Outcomes = {}
    for call in running:
        outcomes[call.call_id] = call.refusal
        if isinstance(call.tool, Write):
            async with tx.connection.transaction() as savepoint:
                outcome = await call.tool.apply(tx, call.arguments, caller, call.call_id)
                outcomes[call.call_id] = outcome
                if isinstance(outcome, Refusal) or call.call_id in undo:
                    raise Rollback(savepoint)
        elif call.tool and not (quoting and not call.tool.quoted):
            query = await call.tool.query(call.arguments, caller)
            found = await rows(await read(tx.connection, caller.tenant, query)) if query else []
            outcomes[call.call_id] = call.tool.answer(call.arguments, found)
    return outcomes


async def read(connection: Connection, tenant: str, query: Query) -> AsyncCursor[DictRow]:
    statement, parameters = query.bound_to(tenant)
    return await connection.execute(statement, parameters, prepare=True)


async def rows(cursor: AsyncCursor[DictRow]) -> list[Row]:
    row = await cursor.fetchone()
    return row["rows"] if row else []
