"""Who did what, on whose behalf and why: a page as JSON, or all of it as CSV or as JSON lines."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

from contracts.identity import Principal
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import AwareDatetime

from gateway import shapes, spreadsheet
from gateway.access import may
from gateway.audit import Row
from gateway.audit_log import Wanted
from gateway.ports import Gateway, Ports
from gateway.routes.keys import Cursor, Limit

router = APIRouter(prefix="/v1/audit", tags=["audit"])
Auditor = Annotated[Principal, Depends(may("audit"))]
CSV, JSON_LINES = "text/csv", "application/x-ndjson"
FILES = {"content": {CSV: {}, JSON_LINES: {}}, "description": "With `Accept`: all rows as a file, the oldest first"}
EXPORTS = {200: FILES}
COLUMNS = tuple(Row.model_fields)


async def wanted(
    run: Annotated[str | None, Query(max_length=64)] = None,
    person: Annotated[str | None, Query(max_length=512)] = None,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
) -> Wanted:
    return Wanted(run or None, person or None, since, until)


Filter = Annotated[Wanted, Depends(wanted)]


@router.get("", response_model=shapes.Audit, responses=EXPORTS)  # type: ignore[arg-type]
async def audit(
    ports: Ports,
    asker: Auditor,
    request: Request,
    wanted: Filter,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> shapes.Audit | Response:
    """A page is the newest first, a file the oldest first. Customers are pseudonyms, the same in every row, for who may
    not see them, and personal data that patterns find is taken out of texts. A page may be empty and have a `next`."""
    accepts = request.headers.get("accept", "")
    if CSV in accepts:
        return await export(ports, asker, wanted, "csv")
    if JSON_LINES in accepts:
        return await export(ports, asker, wanted, "jsonl")
    page = await ports.audit.page(asker, wanted, cursor, limit)
    return shapes.Audit(rows=page.rows, next=page.next)


async def export(ports: Gateway, asker: Principal, wanted: Wanted, form: str) -> Response:
    """All the rows as a file, the oldest first. What is wrong with the filter is said before it begins."""
    pages = ports.audit.pages(asker, wanted)
    first = await anext(pages)
    write, head = (_as_csv, spreadsheet.lines([COLUMNS])) if form == "csv" else (_as_json_lines, "")

    async def file() -> AsyncIterator[str]:
        yield head + write(first)
        async for rows in pages:
            yield write(rows)

    return StreamingResponse(
        file(),
        media_type=f"{CSV}; charset=utf-8" if form == "csv" else JSON_LINES,
        headers={"Content-Disposition": f'attachment; filename="audit-{asker.tenant}.{form}"'},
    )


def _as_csv(rows: list[Row]) -> str:
    return spreadsheet.lines(_cells(row) for row in rows)


def _as_json_lines(rows: list[Row]) -> str:
    return "".join(f"{row.model_dump_json()}\n" for row in rows)


def _cells(row: Row) -> list[object]:
    return [_cell(getattr(row, column)) for column in COLUMNS]


def _cell(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    return " ".join(value) if isinstance(value, list) else value
