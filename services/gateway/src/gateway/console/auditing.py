"""The audit as a page: its filters are in the address, and so are its exports."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from contracts.identity import Principal
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from gateway import paging
from gateway.access import may
from gateway.audit_log import Wanted
from gateway.console import pages
from gateway.ports import Ports
from gateway.problems import Problem
from gateway.routes.audit import export
from gateway.shown import sees_customers

router = APIRouter(prefix="/audit", include_in_schema=False)
Auditor = Annotated[Principal, Depends(may("audit"))]
ROWS = 100
SHOWN_AT_FIRST = timedelta(days=7)
Typed = Annotated[str, Query(max_length=512)]


@router.get("")
async def page(
    ports: Ports,
    asker: Auditor,
    request: Request,
    run: Typed = "",
    person: Typed = "",
    since: Typed | None = None,
    until: Typed = "",
    cursor: Typed | None = None,
) -> Response:
    shell = await pages.around(ports, asker, "audit", request)
    zone = ZoneInfo(shell["tenant"].timezone)
    first = (datetime.now(UTC).astimezone(zone) - SHOWN_AT_FIRST).date().isoformat()
    typed = {"run": run, "person": person, "since": first if since is None else since, "until": until}
    found = await ports.audit.page(asker, wanted(typed, zone), cursor, ROWS)
    there = {name: value for name, value in typed.items() if value}
    context: dict[str, Any] = {
        "rows": found.rows,
        "typed": typed,
        "filter": urlencode(there),
        "next": urlencode(there | {"cursor": found.next}) if found.next else None,
        "sees_customers": sees_customers(asker),
    }
    return pages.html("audit.html", **shell, **context)


@router.get("/export")
async def download(
    ports: Ports,
    asker: Auditor,
    form: Annotated[str, Query(pattern="^(csv|jsonl)$")],
    run: Typed = "",
    person: Typed = "",
    since: Typed = "",
    until: Typed = "",
) -> Response:
    zone = ZoneInfo(ports.tenants.of(asker.tenant).timezone)
    typed = {"run": run, "person": person, "since": since, "until": until}
    return await export(ports, asker, wanted(typed, zone), form)


def wanted(typed: dict[str, str], zone: ZoneInfo) -> Wanted:
    """What the form asks for: days are the tenant's, both included."""
    return Wanted(
        run=typed["run"].strip() or None,
        person=typed["person"].strip() or None,
        since=_midnight(typed["since"], zone),
        until=_midnight(typed["until"], zone, timedelta(days=1)),
    )


def _midnight(typed: str, zone: ZoneInfo, later: timedelta = timedelta()) -> datetime | None:
    if not typed.strip():
        return None
    try:
        day = date.fromisoformat(typed.strip())
    except ValueError as error:
        raise Problem(422, "Not a day", "Write a day as in 2026-11-29, or leave it empty.") from error
    return datetime.combine(min(max(day, paging.EARLIEST.date()), paging.LATEST.date()) + later, time(), zone)
