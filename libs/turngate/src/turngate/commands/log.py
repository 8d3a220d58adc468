"""`turngate log show`, `export`, `verify`."""

import json
import os
import select
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from contracts.events import Event, from_document, was_opened
from contracts.strict import parse_json
from contracts.validation import explain
from contracts.verify import verify
from pydantic import ValidationError

from turngate import records
from turngate.api import Api
from turngate.commands.connection import connect
from turngate.commands.options import DEFAULT_DATA, As, Data, Json, Tenant, Url, print_json, print_plain
from turngate.commands.runs import print_event
from turngate.embedded.trouble import Trouble
from turngate.following import path
from turngate.lines import plain

FIRST_BYTE_WITHIN = 15.0  # of what is piped into `verify`; an idle pipe of whoever started us is not meant

SEALED = (
    "\n[sealed] stands for personal data, which the log holds encrypted with a key of its run. People who work tickets "
    "may read it: turngate log show {run} --open --as NAME. Once the customer is erased nobody can: it reads [erased]."
)
SEALED_TO_THEM = "\n[sealed] stands for personal data. It was not opened: this person may not see customers."

log = typer.Typer(help="The facts: show, export, verify.", no_args_is_help=True)


@log.command()
def show(
    run: Annotated[str, typer.Argument(help="The run, as TCK-2004-1.")],
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    url: Url = None,
    opened: Annotated[
        bool, typer.Option("--open", help="Show what is sealed, as a person who may see customers: --as.")
    ] = False,
    who: As = None,
    as_json: Json = False,
) -> None:
    """Print a run's facts, one line each; as JSON, one CloudEvent a line. Personal data shows as [sealed] unless it is
    opened."""
    events = _over_http(connect(data, url, who, tenant), run) if opened else _events(data, url, tenant, run)
    for event in events:
        print_event(event, as_json)
    if not as_json and any(event.personal == "sealed" for event in events):
        print_plain(SEALED_TO_THEM if opened else SEALED.format(run=run))


@log.command()
def export(
    run: Annotated[str | None, typer.Option("--run", help="Only this run.")] = None,
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    url: Url = None,
) -> None:
    """Print the log as JSON lines: one CloudEvent a line, byte for byte as it is stored. Exit 1 where there is none."""
    events = _events(data, url, tenant, run)
    if not events:
        what = f"no event of tenant {tenant}" if tenant else "no event yet"
        raise Trouble(f"The log holds {what}. Nothing was exported.")
    for text in records.lines(events):
        sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@log.command("verify")
def verify_log(
    file: Annotated[
        str | None, typer.Argument(help="An exported log; - or a pipe works too. Default: the live log.")
    ] = None,
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Check the rules that hold for every run, and the chains. Exit 1 where one is broken."""
    lines = _given(file)
    events, wrong = read(lines) if lines is not None else (_events(data, url, tenant, None), [])
    if lines is not None and not events and not wrong:
        raise Trouble(
            "No events were given. Nothing was checked: did the export fail?"
            " For the live log, leave out the file and the pipe."
        )
    found = verify(events)
    runs = len({event.key for event in events})
    if as_json:
        violations = [
            {"tenant": v.key.tenant, "run": v.key.run, "ordinal": v.ordinal, "rule": v.rule, "says": v.says}
            for v in found
        ]
        print_json({"events": len(events), "runs": runs, "violations": violations, "unreadable": wrong})
    else:
        for says in [*wrong, *map(str, found)]:
            print_plain(says)
        counted = f"{len(events)} events of {runs} runs"
        broken = len(found) + len(wrong)
        print_plain(f"{counted}: every rule holds." if not broken else f"{counted}: {broken} found wrong.")
    if found or wrong:
        raise typer.Exit(1)


def read(lines: Iterable[bytes]) -> tuple[list[Event], list[str]]:
    """The events of exported lines, and which lines are none."""
    events: list[Event] = []
    wrong: list[str] = []
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            document = parse_json(text)
            events.append(from_document(document, payload=None if was_opened(document) else text.strip()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            wrong.append(f"line {number} cannot be read as an event: {plain(_why_unreadable(error), 200)}")
    return events, wrong


def _why_unreadable(error: Exception) -> str:
    match error:
        case ValidationError():
            return explain(error)
        case json.JSONDecodeError() | UnicodeDecodeError():
            return f"it is not JSON ({error})"
        case KeyError():
            return f"{error.args[0]} is missing"
        case TypeError() | AttributeError():
            return "it is not a CloudEvent, or a field of it has the wrong type"
    return str(error)


def _given(file: str | None) -> Iterator[bytes] | None:
    """The lines of the file, or of what is piped in. None where the live log is meant."""
    if file is not None and file != "-":
        try:
            return iter(Path(file).read_bytes().splitlines())
        except OSError as error:
            raise Trouble(f"{file} cannot be read: {error.strerror}. Nothing was checked.") from None
    return iter(sys.stdin.buffer) if file == "-" or _piped() else None


def _piped() -> bool:
    """Whether something comes in by a pipe or a redirected file."""
    try:
        descriptor = sys.stdin.fileno()
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError, AttributeError):  # closed
        return False
    if stat.S_ISREG(kind):
        return True
    return stat.S_ISFIFO(kind) and bool(select.select([descriptor], [], [], FIRST_BYTE_WITHIN)[0])


def _events(data: Path, url: str | None, tenant: str | None, run: str | None) -> list[Event]:
    """From the broker of the embedded system, which sees every tenant; from another system by its gateway."""
    if url is not None:
        return _over_http(connect(data, url, None, tenant), run)
    if run is None:
        return records.everything(records.broker(data), tenant)
    from turngate.people import tenants, tenants_directory

    return records.of_run(records.broker(data), [tenant] if tenant else tenants(tenants_directory()), run)


def _over_http(api: Api, run: str | None) -> list[Event]:
    names = [run] if run else [one["run"] for one in api.pages("/v1/runs", "runs")]
    documents = [document for name in names for document in api.get(f"{path(name)}/events")["events"]]
    return [from_document(document) for document in documents]


def register(app: typer.Typer) -> None:
    app.add_typer(log, name="log")
