"""The options that many commands share, and how they say what they found."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

console = Console(highlight=False, soft_wrap=True)

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


def print_plain(text: str) -> None:
    console.print(text, markup=False)
