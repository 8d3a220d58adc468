"""The options that many commands share, and how they say what they found."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

console = Console(highlight=False, soft_wrap=True)

NARROWEST = 20  # columns that the last column of a table has to have
DEFAULT_DATA = Path(".turngate")

Data = Annotated[
    Path, typer.Option("--data", envvar="TURNGATE_DATA", help="The data directory of the embedded system.")
]
SetUp = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="TURNGATE_DATA",
        help="The data directory of the embedded system. Default: the servers that set-up's environment names, where "
        "it does, else .turngate.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Url = Annotated[
    str | None,
    typer.Option("--url", envvar="TURNGATE_URL", help="Another system's gateway; its token comes from TURNGATE_TOKEN."),
]
As = Annotated[str | None, typer.Option("--as", help="Who asks: a person of the demo. Default: the tenant's operator.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="The tenant, where the name alone does not say it.")]
Run = Annotated[str, typer.Argument(help="The run, as TCK-2004-1.")]


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_table(rows: Sequence[Sequence[str]], widths: Sequence[int] = ()) -> None:
    """A line a row, in columns. A terminal that is too narrow shows the last column on several lines; in a pipe every
    row is one line.

    widths: of the columns but the last, in characters; by default as wide as what is in them.
    """
    widths = widths or [max(map(cell_len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    if not console.is_terminal:
        for *cells, last in rows:
            padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True))
            print_plain("  ".join([*padded, last]).rstrip())
        return
    if console.width - sum(widths) - 2 * len(widths) < NARROWEST:
        for row in rows:
            print_plain("  ".join(filter(None, row)))
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        table.add_column(min_width=width, no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table, soft_wrap=False)


def print_plain(text: str) -> None:
    """A terminal gets the text broken between words, a pipe as it is."""
    console.print(text, markup=False, soft_wrap=not console.is_terminal)
