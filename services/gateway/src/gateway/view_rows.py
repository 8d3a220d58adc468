"""The rows that the views are kept in, and the place in the log that they have reached."""

import re
from collections.abc import Iterable

from contracts.addresses import comparable

from gateway.database import Connection, one
from gateway.views import TICKET_STATUS, RunView

# A NUL as JSON spells it, behind pairs of backslashes only: a column takes none.
_NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")


async def position_in(connection: Connection) -> int:
    cursor = await connection.execute("select position from desk.projection where name = 'runs'")
    return int((await one(cursor))["position"])


async def move_position(connection: Connection, before: int, after: int) -> bool:
    """Whether the position was still `before`; if so it is `after` now."""
    cursor = await connection.execute(
        "update desk.projection set position = %s where name = 'runs' and position = %s", [after, before]
    )
    return cursor.rowcount == 1


async def stored(connection: Connection, runs: Iterable[str]) -> dict[str, RunView]:
    """The views of these runs of the transaction's tenant, as far as there are any."""
    cursor = await connection.execute(
        "select run, state::text as state from desk.runs where run = any(%s)", [list(runs)]
    )
    return {row["run"]: RunView.model_validate_json(row["state"]) for row in await cursor.fetchall()}


async def store(connection: Connection, views: Iterable[RunView]) -> None:
    """Keeps the views, all of the transaction's tenant, and brings their tickets' status in line."""
    views = list(views)
    await connection.cursor().executemany(
        "insert into desk.runs (tenant, run, ticket, n, status, customer_email, customer_address, started_event,"
        " started_at, held_at, sequence, state) values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict (tenant, run) do update set"
        " status = excluded.status, held_at = excluded.held_at, sequence = excluded.sequence, state = excluded.state",
        [
            (
                view.tenant,
                view.run,
                view.ticket,
                number(view.run),
                view.status,
                view.customer.email,
                comparable(view.customer.email),
                view.started_event,
                view.started_at,
                view.held[0].held_at if view.held else None,
                view.sequence,
                _NUL.sub(r"\1\\ufffd", view.model_dump_json()),
            )
            for view in views
        ],
    )
    await connection.cursor().executemany(
        "insert into desk.tickets (tenant, reference, channel, customer_email, customer_address, customer_name,"
        " customer_id, subject, body, opened_at, status, latest_run, latest_n)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
        " on conflict (tenant, reference) do update set status = excluded.status, latest_run = excluded.latest_run,"
        " latest_n = excluded.latest_n where excluded.latest_n >= tickets.latest_n and"
        " (excluded.status, excluded.latest_run) is distinct from (tickets.status, tickets.latest_run)",
        [
            (
                view.tenant,
                view.ticket,
                view.channel,
                view.customer.email,
                comparable(view.customer.email),
                view.customer.name,
                view.customer.id,
                view.subject,
                view.body,
                view.started_at,
                TICKET_STATUS[view.status],
                view.run,
                number(view.run),
            )
            for view in views
        ],
    )


def number(run: str) -> int:
    """Which run of its ticket: the last part of `TCK-2004-1`."""
    last = run.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
