"""`turngate approvals`, `approve`, `decline`."""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from contracts import parts

from turngate.api import Api, Refused
from turngate.commands.connection import signed_in, somebody
from turngate.commands.options import Json, Run, print_json, print_plain
from turngate.commands.runs import show
from turngate.embedded.trouble import Trouble
from turngate.following import follow, path
from turngate.lines import money, plain

Call = Annotated[str | None, typer.Argument(help="The held call, where not all that the run holds is meant.")]
Note = Annotated[str, typer.Option("--note", help="Why, for the record; the model is told, too.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Decide and return.")]


def approvals(api: Api, as_json: Json = False) -> None:
    """List what waits for a person, the longest wait first."""
    queue = api.get("/v1/approvals")
    if as_json:
        print_json(queue)
        return
    if not queue["approvals"]:
        print_plain("Nothing waits for a decision.")
    for waiting in queue["approvals"]:
        asked = waiting["requested_by"]["subject"]
        print_plain(f"{waiting['run']}  {plain(waiting['subject'], 80)}  (asked for by {asked})")
        for hold in waiting["holds"]:
            effect = parts.Effect.model_validate(hold["effect"]) if hold["effect"] else None
            print_plain(f"  {hold['call_id']}  {hold['tool']} {money(effect)}  {plain(hold['reason'])}")


def deciding(decision: str, words: str) -> Callable[..., None]:
    """`approve` and `decline`: the same but for the word."""

    def decide(
        api: Api, run: Run, call: Call = None, note: Note = "", no_wait: NoWait = False, as_json: Json = False
    ) -> None:
        before = api.get(path(run))["sequence"]
        decided = _send_all(api, run, held(api, run, call), decision, note)
        if no_wait:
            print_json(decided) if as_json else print_plain(f"{len(decided)} decided.")
            return
        show(api, run, follow(api, run, before), as_json)

    decide.__doc__ = f"{words}, then follow the rest of the run."
    return decide


def _send_all(api: Api, run: str, holds: list[dict[str, Any]], decision: str, note: str) -> list[Any]:
    """The answers. What others have decided meanwhile is said, and keeps nobody from the rest."""
    decided, refused = [], []
    for hold in holds:
        try:
            decided.append(_send(api, run, hold, decision, note))
        except Refused as no:
            refused.append((hold["call_id"], no))
    if refused and not decided:
        raise refused[0][1]
    for call_id, why in refused:
        typer.echo(plain(f"{call_id}: {why}"), err=True)
    return decided


def _send(api: Api, run: str, hold: dict[str, Any], decision: str, note: str) -> Any:
    body = {**hold, "decision": decision} | ({"note": note} if note else {})
    return api.post(f"{path(run)}/decisions", body)


def held(api: Api, run: str, call: str | None = None) -> list[dict[str, Any]]:
    """The calls of the run's last hold as a decision names them: turn, call_id, digest. They are read from the log, so
    that a decision sent again is answered as it was the first time."""
    facts = api.get(f"{path(run)}/events")["events"]
    holds = [fact["data"] for fact in facts if fact["type"] == "turngate.policy.turn-held.v1"]
    if not holds:
        raise Trouble(f"Nothing of {run} was ever held for a person. Nothing was decided.")
    last = holds[-1]
    wanted = [hold for hold in last["holds"] if call in (None, hold["call_id"])]
    if not wanted:
        there = ", ".join(hold["call_id"] for hold in last["holds"])
        raise Trouble(f"{run} holds no call {call}; it holds {there}. Nothing was decided.")
    return [{"turn": last["turn"], "call_id": hold["call_id"], "digest": hold["digest"]} for hold in wanted]


def register(app: typer.Typer) -> None:
    decider = somebody("Who decides: sam, sue or lee in acme")
    app.command()(signed_in(approvals))
    app.command("approve")(signed_in(deciding("approve", "Release what a run holds"), decider))
    app.command("decline")(signed_in(deciding("decline", "Refuse what a run holds"), decider))
