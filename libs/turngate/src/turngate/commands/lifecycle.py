"""`turngate up`, `down`, `status` and `token`."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from turngate.commands.options import DEFAULT_DATA, Data, Json, Tenant, console, print_json
from turngate.embedded import hold, state
from turngate.embedded.state import State
from turngate.embedded.trouble import Trouble
from turngate.sign_in import sign_in_link

STARTS_WITHIN = 180.0
STOPS_WITHIN = 60.0


def up(
    data: Data = DEFAULT_DATA,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, envvar="TURNGATE_PORT", help="The console's port; 0 takes a free one.")
    ] = 8100,
    host: Annotated[str, typer.Option(help="The address that the console listens on.")] = "127.0.0.1",
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when all is ready; `turngate down` stops it.")
    ] = False,
    link: Annotated[
        bool, typer.Option("--link/--no-link", hidden=True, help="Whether the sign-in link is printed: not into a log.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Start the system on this machine: Postgres, NATS, the five services. Ctrl-C stops all of it."""
    if detach:
        _detach(data, port, host)
        _announce(state.read(data), as_json)
        return
    import asyncio

    from turngate.embedded.system import System

    def say(text: str) -> None:
        console.print(f"[dim]{text}[/]" if not as_json else "", end="\n" if not as_json else "")

    def announce(ready: State) -> None:
        with suppress(OSError):  # nobody reads it; the system goes on
            _announce(ready, as_json, attached=True, link=link)

    asyncio.run(System(data, port, host, say).run(announce))


def _detach(data: Path, port: int, host: str) -> None:
    if (pid := hold.holder(data)) is not None:
        raise Trouble(
            f"A system already runs on {data} (pid {pid}). Nothing was started. `turngate down --data {data}` stops it."
        )
    log = data / "logs" / "system.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        log.touch()
    except OSError as error:
        raise hold.unusable(data, error) from None
    begin = log.stat().st_size
    where = ["--data", str(data), "--port", str(port), "--host", host]
    command = [sys.executable, "-m", "turngate", "up", *where, "--no-link"]
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - this very program
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Trouble(log.read_bytes()[begin:].decode(errors="replace").strip() or "The system ended at once.")
        if _is_ready(data, process.pid):
            return
        time.sleep(0.05)
    process.terminate()
    raise Trouble(
        f"The system was not ready after {STARTS_WITHIN:.0f} s and was stopped. Its logs are in {log.parent}."
    )


def _is_ready(data: Path, pid: int) -> bool:
    try:
        found = state.read(data)
    except Trouble:
        return False
    return found.ready and found.pid == pid


def _announce(ready: State, as_json: bool, attached: bool = False, link: bool = True) -> None:
    if as_json:
        typer.echo(_shown(ready, compact=True))
        return
    from turngate.people import STAFF, tenants, tenants_directory

    console.print("\n[bold]Turngate is up.[/]")
    if link:
        _show_link(ready)
    console.print(f"Console: [bold]{ready.url}[/]")
    if ready.model == "stand-in":
        console.print(
            "[bold yellow]No model key: the STAND-IN answers, not a model.[/] Its answers are made by rules. "
            "Set ANTHROPIC_API_KEY and start again for a real model."
        )
    else:
        console.print("A real model answers, with the key from the environment: runs cost money.")
    # What its API says comes when it comes: a system that stays in the foreground has to go on meanwhile.
    asking = Thread(target=_say_of_model, args=(ready,), daemon=True)
    asking.start()
    if not attached:
        asking.join()
    if ready.issuer_url:
        console.print("Sign in as:")
        for tenant in tenants(tenants_directory()):
            people = ", ".join(f"{who.subject} ({who.role})" for who in STAFF if who.tenant == tenant)
            if people:
                console.print(f"  {tenant}: {people}")
    console.print(f"Data and logs: {ready.data}")
    console.print("Ctrl-C stops everything.\n" if attached else f"`turngate down --data {ready.data}` stops it.\n")


def _show_link(running: State) -> None:
    """Whole, on a line of its own: a terminal that is narrower wraps it, and nothing else does."""
    if found := sign_in_link(running):
        typer.echo(f"Sign in by this link. Whoever has it can sign in as anybody: keep it to yourself.\n  {found}")


def _say_of_model(ready: State) -> None:
    from turngate.model_check import check, configured

    stand_in = ready.processes["standin"]["health"].removesuffix("/healthz") if ready.model == "stand-in" else None
    with suppress(OSError):  # nobody reads it
        console.print(check(configured(os.environ, stand_in)), markup=False)


def down(data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """Stop the system that runs on the data directory. Its data stays."""
    pid = hold.holder(data)
    if pid is None:
        raise Trouble(f"No system runs on {data}. Nothing was stopped.")
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise Trouble(f"The system on {data} (pid {pid}) is another user's. Nothing was stopped.") from None
    deadline = time.monotonic() + STOPS_WITHIN
    while hold.holder(data) == pid:
        if time.monotonic() > deadline:
            raise Trouble(f"The system (pid {pid}) has not stopped after {STOPS_WITHIN:.0f} s. Its data is unharmed.")
        time.sleep(0.02)
    print_json({"stopped": pid}) if as_json else console.print(f"Stopped (pid {pid}).")


def status(data: Data = DEFAULT_DATA, as_json: Json = False) -> None:
    """Show where the running system is reached, and how each of its processes is. Exit 1 where one is not well.

    The sign-in link is shown too, but not with --json: what scripts read ends in logs.
    """
    found = state.read(data)
    processes = _health(found)
    well = found.ready and all(process["healthy"] for process in processes.values())
    if as_json:
        print_json({**_document(found), "processes": processes, "healthy": well})
    else:
        console.print(f"Console: {found.url}   Model: {found.model}   Data: {found.data}   pid {found.pid}")
        _show_link(found)
        for name, process in processes.items():
            condition = "[green]healthy[/]" if process["healthy"] else "[red]not healthy[/]"
            restarts = f", started again {process['restarts']} times" if process["restarts"] else ""
            console.print(f"  {name:<14} pid {process['pid']:<8} {condition}{restarts}")
            for said in process["conditions"]:
                console.print(f"    {said}", markup=False)
    if not well:
        raise typer.Exit(1)


def _document(found: State) -> dict[str, Any]:
    """What may be shown, pasted and logged: without the passwords."""
    from dataclasses import asdict

    return {**asdict(found), **found.urls_without_passwords()}


def _shown(found: State, compact: bool) -> str:
    import json

    return json.dumps(_document(found), indent=None if compact else 2)


def _health(found: State) -> dict[str, dict[str, Any]]:
    """Each process asked now: the services by their health page, the servers by their ports. `conditions` are what is
    not as it should be: of a service though it is ready, of NATS why it is not well."""
    import asyncio
    import socket
    from urllib.parse import urlsplit

    from turngate.embedded.nats_health import trouble
    from turngate.embedded.services import conditions
    from turngate.servers import embedded_nats

    def listens(url: str) -> bool:
        parts = urlsplit(url)
        try:
            with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=2):
                return True
        except OSError:
            return False

    servers = {"postgres": found.postgres_url, "nats": found.nats_url}
    unwell = asyncio.run(trouble(embedded_nats(Path(found.data)))) if "nats" in found.processes else None
    shown = {}
    for name, process in found.processes.items():
        if process["health"]:
            said = conditions(process["health"], name)
        else:
            said = [unwell] if name == "nats" and unwell else []
        reached = said is not None if process["health"] else listens(servers[name]) and not said
        shown[name] = {**process, "healthy": reached, "conditions": said or []}
    return shown


def token(
    who: Annotated[str, typer.Option("--as", help="Whose: alex, sam, lee … or cust-<customer id>.")],
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    as_json: Json = False,
) -> None:
    """Print a token from the embedded issuer, good for twelve hours."""
    from turngate.sign_in import sign_in

    text = sign_in(data, who, tenant)
    print_json({"access_token": text, "as": who}) if as_json else typer.echo(text)


def register(app: typer.Typer) -> None:
    for command in (up, down, status, token):
        app.command()(command)
