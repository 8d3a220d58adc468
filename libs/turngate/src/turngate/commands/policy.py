"""`turngate policy show`, `policy promote`."""

from pathlib import Path
from typing import Annotated

import typer

from turngate.api import Api
from turngate.commands.connection import signed_in, somebody
from turngate.commands.options import Json, print_json, print_plain
from turngate.embedded.trouble import Trouble
from turngate.lines import plain

policy = typer.Typer(help="The policy pack in force.", no_args_is_help=True)


def show(api: Api, as_json: Json = False) -> None:
    """Print the pack in force."""
    found = api.get("/v1/policy")
    print_json(found) if as_json else typer.echo(found["text"], nl=not found["text"].endswith("\n"))


def promote(
    api: Api,
    file: Annotated[Path, typer.Argument(help="The pack, as YAML.")],
    as_json: Json = False,
) -> None:
    """Put a pack in force. One that cannot be read is refused with the place, and nothing changes. What of it nobody
    could release is said, where it is known who decides."""
    try:
        text = file.read_text()
    except OSError as error:
        raise Trouble(f"{file} cannot be read: {error.strerror}. The pack in force stays in force.") from None
    except UnicodeDecodeError:
        raise Trouble(f"{file} is not text in UTF-8. The pack in force stays in force.") from None
    event = api.post("/v1/policy", {"text": text})
    if as_json:
        print_json(event)
        return
    pack = event["data"]["pack"]
    print_plain(f"{pack['name']} version {pack['version']} is in force.")
    for warning in event["data"].get("warnings") or ():
        typer.echo(plain(f"Warning: {warning}", 600), err=True)


def register(app: typer.Typer) -> None:
    lead = somebody("Who asks: lee in acme")
    policy.command("show")(signed_in(show, lead))
    policy.command("promote")(signed_in(promote, lead))
    app.add_typer(policy, name="policy")
