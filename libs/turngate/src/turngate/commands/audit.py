"""`turngate audit`: who did what, on whose behalf and why."""

from typing import Annotated, Any

import typer

from turngate.api import Api
from turngate.commands.connection import signed_in, somebody
from turngate.commands.options import Json, print_table
from turngate.lines import plain

COLUMNS = (19, 14)  # characters of the time and the run


def audit(
    api: Api,
    run: Annotated[str | None, typer.Option(help="Only this run.")] = None,
    person: Annotated[str | None, typer.Option(help="Only what this person did or released.")] = None,
    since: Annotated[str | None, typer.Option(help="From then on, as 2026-11-29T00:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Before then.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Json = False,
) -> None:
    """Print who did what, on whose behalf and why, the newest first; as --csv or --json the oldest first."""
    wanted = {"run": run, "person": person, "since": since, "until": until}
    if as_csv or as_json:
        for piece in api.download("/v1/audit", "text/csv" if as_csv else "application/x-ndjson", **wanted):
            typer.echo(piece, nl=False)
        return
    for row in api.pages("/v1/audit", "rows", limit=200, **wanted):
        print_table([cells(row)], COLUMNS)


def cells(row: dict[str, Any]) -> tuple[str, str, str]:
    """`2026-11-29 14:02:11`, `TCK-2004-1`, `sam (approver) approved it: Refund £180.00 …  “…”`."""
    who = f"{row['who']} ({row['role']})" if row["role"] else row["who"]
    what = f": {plain(row['what'], 120)}" if row["what"] else ""
    behalf = f"  for {row['on_behalf_of']}" if row["on_behalf_of"] else ""
    why = f"  “{plain(row['why'], 120)}”" if row["why"] else ""
    return row["at"][:19].replace("T", " "), row["run"] or "tenant", f"{who} {row['did']}{what}{behalf}{why}"


def register(app: typer.Typer) -> None:
    app.command()(signed_in(audit, somebody("Who asks: ari or ada in acme")))
