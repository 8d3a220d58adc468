"""What the desk knows of a customer: all their runs and what those moved, counted and summed by the database."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from contracts.addresses import comparable

from gateway.database import Connection
from gateway.views import Moved, RunView

# By customer, and without the run itself. An address that is nobody's has no runs.
HISTORIES = """
select wanted.run, theirs.runs, theirs.last, sums.currency, sums.amount_minor
from unnest(%s::text[], %s::text[]) as wanted (run, address)
cross join lateral (
    select count(*) as runs, max(r.started_at) as last
    from desk.runs r where r.customer_address = wanted.address and r.run <> wanted.run
) theirs
left join lateral (
    select one ->> 'currency' as currency, sum((one ->> 'amount_minor')::bigint)::bigint as amount_minor
    from desk.runs r, json_array_elements(r.moved) one
    where r.customer_address = wanted.address and r.run <> wanted.run
    group by one ->> 'currency'
) sums on true
order by wanted.run, sums.currency
"""


@dataclass(frozen=True, slots=True)
class History:
    """A customer's other runs: how many, what they moved in each currency, and when the last began."""

    runs: int = 0
    moved: tuple[Moved, ...] = ()
    last: datetime | None = None


async def of_runs(connection: Connection, views: Iterable[RunView]) -> dict[str, History]:
    """By run: what its customer's other runs come to."""
    addresses = {view.run: comparable(view.customer.email) for view in views}
    cursor = await connection.execute(HISTORIES, [list(addresses), list(addresses.values())])
    found: dict[str, History] = {}
    for row in await cursor.fetchall():
        moved = found[row["run"]].moved if row["run"] in found else ()
        if row["currency"] is not None:
            moved = (*moved, Moved(currency=row["currency"], amount_minor=row["amount_minor"]))
        found[row["run"]] = History(row["runs"], moved, row["last"])
    return found
