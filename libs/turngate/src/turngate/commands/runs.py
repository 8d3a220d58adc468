"""`turngate tickets`, `run`, `watch`, `runs`, `say`, `cancel`, `take-over`."""

from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import quote

import typer
from contracts.events import Event
from contracts.model_wait import ModelWait, in_words, utc

from turngate.api import Api
from turngate.commands.connection import DEFAULT_TENANT, connect, signed_in
from turngate.commands.options import DEFAULT_DATA, Data, Json, Run, Tenant, Url, print_json, print_plain, print_table
from turngate.following import follow, path
from turngate.lines import COLUMNS, columns, plain, sums


def tickets(
    api: Api,
    status: Annotated[list[str] | None, typer.Option(help="Only tickets of this status.")] = None,
    as_json: Json = False,
) -> None:
    """List the tenant's tickets."""
    found = list(api.pages("/v1/tickets", "tickets", status=status))
    if as_json:
        print_json({"tickets": found})
        return
    print_table([(one["ticket"], one["status"], one["run"] or "", plain(one["subject"])) for one in found])


def run(
    api: Api,
    ticket: Annotated[str, typer.Argument(help="The ticket, as TCK-2004.")],
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Start it and return.")] = False,
    profile: Annotated[str | None, typer.Option(help="Which agent works it.")] = None,
    as_json: Json = False,
) -> None:
    """Start a run on a ticket and follow it, one line a fact, until it ends or waits. A run that is there already is
    followed from its start."""
    body = {"profile": profile} if profile else {}
    started = api.post(f"/v1/tickets/{quote(ticket, safe='')}/runs", body)
    if no_wait:
        print_json(started) if as_json else print_plain(started["run"])
        return
    quiet = None if as_json else ModelWatch(api, started["run"])
    show(api, started["run"], follow(api, started["run"], quiet=quiet), as_json)


def watch(
    api: Api,
    run: Run,
    as_json: Json = False,
) -> None:
    """Follow a run from its start until it has ended, one line a fact."""
    show(api, run, follow(api, run, past_waits=True, quiet=None if as_json else ModelWatch(api, run)), as_json)


def runs(
    api: Api,
    status: Annotated[list[str] | None, typer.Option(help="Only runs of this status.")] = None,
    as_json: Json = False,
) -> None:
    """List the tenant's runs, the newest first."""
    found = list(api.pages("/v1/runs", "runs", status=status))
    if as_json:
        print_json({"runs": found})
        return
    print_table(
        [
            (one["run"], one["status"], f"{one['steps']:>2} steps", wait_in_words(one) or plain(one["subject"]))
            for one in found
        ]
    )


def say(
    run: Run,
    text: str,
    who: Annotated[str | None, typer.Option("--as", help="Who says it. Default: the run's customer.")] = None,
    tenant: Tenant = None,
    data: Data = DEFAULT_DATA,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Send a customer's message in a chat, and follow the run until it ends or waits. In a run that was taken over,
    send your own words to the customer (--as yourself)."""
    api = connect(data, url, who, tenant)
    speaker, after = api, 0
    if who is None or not who.startswith("cust-"):
        view = api.get(path(run))
        after = view["sequence"]
        if who is None and url is None and view["channel"] == "chat" and view["customer"].get("id"):
            speaker = connect(data, url, f"cust-{view['customer']['id']}", tenant or DEFAULT_TENANT)
    answer = speaker.post(f"{path(run)}/messages", {"text": text})
    if not after or api.get(path(run))["ended_at"]:
        print_json(answer) if as_json else print_plain("Sent.")
    else:
        show(api, run, follow(api, run, after), as_json)


def cancel(
    api: Api,
    run: Run,
    reason: str = "",
    as_json: Json = False,
) -> None:
    """Stop a run. What was done stays done; nothing more is."""
    answer = api.post(f"{path(run)}/cancel", {"reason": reason})
    print_json(answer) if as_json else print_plain(f"{run} is cancelled.")


def take_over(
    api: Api,
    run: Run,
    reason: str = "",
    as_json: Json = False,
) -> None:
    """Answer the customer yourself: the agent's run ends here."""
    answer = api.post(f"{path(run)}/take-over", {"reason": reason})
    print_json(answer) if as_json else print_plain(f"{run} is yours. The agent does nothing more in it.")


def show(api: Api, run: str, events: Iterable[Event], as_json: bool) -> None:
    """Prints events as they come, then how the run stands; as JSON, one CloudEvent a line and nothing else."""
    last = None
    for last in events:
        print_event(last, as_json)
    if not as_json and (last is None or not last.terminal):
        print_plain(waits_for(api, run))


class ModelWatch:
    """Says once, and again where it changes, that a run waits for its model."""

    def __init__(self, api: Api, run: str) -> None:
        self._api = api
        self._run = run
        self._said = ""

    def __call__(self) -> None:
        said = wait_in_words(self._api.get(path(self._run)))
        if said != self._said:
            print_plain(said or "The model answers again.")
        self._said = said


def wait_in_words(run: dict[str, Any]) -> str:
    """That the run waits for its model; empty where it does not."""
    given = run.get("model_wait")
    if given is None:
        return ""
    wait = ModelWait.model_validate(given, extra="ignore")
    return in_words(wait, utc(wait.since))


def waits_for(api: Api, run: str) -> str:
    """Whom a run that has come to rest waits for, and what they can do."""
    view = api.get(path(run))
    if view["status"] == "awaiting_approval":
        calls = ", ".join(f"{hold['call_id']} ({hold['tool']})" for hold in view["holds"])
        return (
            f"{run} waits for a person to decide on {calls}{_all_together(view)}. "
            "Nothing of this turn has been done.\n"
            f"  turngate approve {run} --as NAME    or    turngate decline {run} --as NAME"
        )
    if view["status"] == "awaiting_customer":
        return f"{run} waits for the customer.\n  turngate say {run} TEXT"
    return f"{run} is {view['status']}. {plain(view['reason'])}".rstrip()


def _all_together(view: dict[str, Any]) -> str:
    turn = view.get("held_turn")
    return f": {sums(turn['total'], view.get('locale', ''))} all together" if turn and turn["total"] else ""


def print_event(event: Event, as_json: bool) -> None:
    typer.echo(event.payload.decode()) if as_json else print_table([columns(event)], COLUMNS)


def register(app: typer.Typer) -> None:
    for command in (tickets, run, watch, runs, cancel, take_over):
        app.command()(signed_in(command))
    app.command()(say)
