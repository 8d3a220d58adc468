"""`turngate setup`, `keys`, `rebuild-views`, `dead list`, `dead show`."""

import json
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from turngate.commands.options import DEFAULT_DATA, Data, Json, print_json, print_plain, print_table
from turngate.embedded.trouble import Trouble

dead = typer.Typer(help="What no retry could handle.", no_args_is_help=True)
ROLE_PASSWORDS = {
    "turngate": "TURNGATE_OWNER_PASSWORD",
    "turngate_runner": "TURNGATE_RUNNER_PASSWORD",
    "turngate_tools": "TURNGATE_TOOLS_PASSWORD",
    "turngate_gateway": "TURNGATE_GATEWAY_PASSWORD",
}


def setup(
    replicas: Annotated[int, typer.Option(envvar="TURNGATE_NATS_REPLICAS", help="Copies of each stream.")] = 1,
    demo: Annotated[
        bool, typer.Option("--demo/--no-demo", envvar="TURNGATE_DEMO", help="Write the demo's rows and tickets, too.")
    ] = False,
) -> None:
    """Make roles, database, schemas and streams on the servers that the environment names; safe to repeat.

    Needs TURNGATE_SETUP_POSTGRES_DSN (a superuser's), TURNGATE_NATS_URL, _USER and _PASSWORD (may do everything), and
    the passwords that the roles shall have: TURNGATE_OWNER_PASSWORD, _RUNNER_, _TOOLS_ and _GATEWAY_PASSWORD.
    """
    from turngate import setup as steps
    from turngate.databases import DATABASE
    from turngate.embedded import environment
    from turngate.people import tenants_directory

    needed = ["TURNGATE_SETUP_POSTGRES_DSN", "TURNGATE_NATS_URL", *ROLE_PASSWORDS.values()]
    if missing := [name for name in needed if not os.environ.get(name)]:
        raise Trouble(f"Set-up needs {', '.join(missing)}. Nothing was changed.")
    superuser, nats_url = os.environ["TURNGATE_SETUP_POSTGRES_DSN"], os.environ["TURNGATE_NATS_URL"]

    def password(role: str) -> str:
        return os.environ[ROLE_PASSWORDS[role]]

    print_plain("making the database")
    steps.prepare_postgres(superuser, password)
    print_plain("making the streams")
    user = os.environ.get("TURNGATE_NATS_USER"), os.environ.get("TURNGATE_NATS_PASSWORD")
    steps.prepare_nats(nats_url, *user, replicas)
    if demo:
        print_plain("writing the demo's rows")
        base = environment.base() | {"TURNGATE_TENANTS_DIR": str(tenants_directory())}
        base.setdefault("TURNGATE_ISSUERS", "[]")
        steps.seed(
            {
                service: base | {"TURNGATE_POSTGRES_DSN": steps.in_database(superuser, DATABASE, role, password(role))}
                for service, role in steps.SEEDED.items()
            }
        )
    print_plain("set up")


def keys() -> None:
    """Print fresh NKeys of the services as variables, for an .env file beside deploy/compose.yaml.

    The seeds (_NKEY) are as secret as passwords: they are kept nowhere else. The broker is told the public keys only.
    """
    from contracts import nkeys

    from turngate.broker import SERVICES, variable

    for service in SERVICES:
        seed = nkeys.new_seed()
        print_plain(f"{variable(service)}_NKEY={seed}\n{variable(service)}_PUBLIC={nkeys.public_key(seed)}")


def rebuild_views(data: Data = DEFAULT_DATA) -> None:
    """Make the gateway's read models anew from the log."""
    import subprocess
    import sys

    from turngate.embedded import state
    from turngate.embedded.services import environment_of

    state.read(data)
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "rebuild-views"],
        env=environment_of(data, "gateway"),
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        raise Trouble("The read models were not made anew; the log is untouched. What is above says why.")


@dead.command("list")
def list_dead(data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """List the dead letters: number, service, what it was about, its error."""
    from turngate.lines import plain

    letters = _letters(data)
    if as_json:
        print_json({"letters": letters})
        return
    if not letters:
        print_plain("No dead letters.")
    print_table([(f"{one['number']:>5}", one["service"], one["subject"], plain(one["error"], 80)) for one in letters])


@dead.command("show")
def show_dead(
    number: Annotated[int, typer.Argument(help="As `dead list` numbers it.")],
    data: Data = DEFAULT_DATA,
    as_json: Json = False,
) -> None:
    """Show one dead letter with its event."""
    from turngate.lines import plain

    found = [letter for letter in _letters(data) if letter["number"] == number]
    if not found:
        raise Trouble(f"There is no dead letter {number}. `turngate dead list` shows those there are.")
    letter = found[0]
    if as_json:
        print_json(letter)
        return
    for name in ("number", "time", "service", "subject", "error"):
        print_plain(f"{name}: {plain(str(letter[name]), 2000)}")
    print_plain(json.dumps(_parsed(letter["event"]), indent=2))


def _parsed(event: str) -> Any:
    try:
        return json.loads(event)
    except ValueError:
        return event


def _letters(data: Path) -> list[dict[str, Any]]:
    from turngate import records

    return records.dead_letters(records.set_up_broker(data))


def register(app: typer.Typer) -> None:
    app.command()(setup)
    app.command()(keys)
    app.command("rebuild-views")(rebuild_views)
    app.add_typer(dead, name="dead")
