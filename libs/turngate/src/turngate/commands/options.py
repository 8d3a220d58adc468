"""The options that many commands share, whom they speak as, and how they say what they found."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from turngate.api import Api
from turngate.embedded import state
from turngate.embedded.trouble import Trouble
from turngate.sign_in import sign_in

console = Console(highlight=False, soft_wrap=True)

DEFAULT_DATA = Path(".turngate")
DEFAULT_PEOPLE = {"acme": "alex", "globex": "gwen"}

Data = Annotated[
    Path, typer.Option("--data", envvar="TURNGATE_DATA", help="The data directory of the embedded system.")
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


def connect(data: Path, url: str | None, who: str | None, tenant: str | None) -> Api:
    """The gateway that is meant, as the person who is meant: TURNGATE_TOKEN unless somebody is named."""
    token = os.environ.get("TURNGATE_TOKEN")
    if who is None and token:
        return Api(url or state.read(data).url, token)
    if url is not None:
        raise Trouble(f"Say who you are to {url}: set TURNGATE_TOKEN to a token that it believes.")
    found = state.read(data)
    return Api(found.url, sign_in(data, who or default_person(tenant), tenant))


def default_person(tenant: str | None) -> str:
    person = DEFAULT_PEOPLE.get(tenant or "acme")
    if person is None:
        raise Trouble(f"Say who asks in {tenant}: --as NAME.")
    return person
