"""`turngate approvals`, `approve`, `decline`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import unquote

import typer
from contracts import parts

from turngate.api import Api, Refused
from turngate.commands.connection import signed_in, somebody
from turngate.commands.options import Json, Run, print_json, print_plain, print_table
from turngate.commands.runs import show
from turngate.embedded.trouble import Trouble
from turngate.following import follow, path
from turngate.lines import money, plain, sums
from turngate.waiting import last_hold, waiting

STATES = {
    "waits": "held",
    "approved": "approved",
    "along": "runs with it",
}
Call = Annotated[str | None, typer.Argument(help="The held call, where not all that the run holds is meant.")]
Note = Annotated[str, typer.Option("--note", help="Why, for the record; the model is told, too.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Decide and return.")]


def approvals(api: Api, as_json: Json = False) -> None:
    """List what waits for a person, the longest wait first."""
    waiting_runs = list(api.pages("/v1/approvals", "approvals"))
    if as_json:
        print_json({"approvals": waiting_runs})
        return
    if not waiting_runs:
        print_plain("Nothing waits for a decision.")
    for one in waiting_runs:
        asked = one["requested_by"]["subject"]
        print_plain(f"{one['run']}  {plain(one['subject'], 80)}  (asked for by {asked})")
        for hold in one["holds"]:
            effect = parts.Effect.model_validate(hold["effect"]) if hold["effect"] else None
            moves = money(effect, one.get("locale", ""))
            print_table([(f"  {hold['call_id']}", f"{hold['tool']} {moves}", plain(hold["reason"]))])
            for obstacle in hold["obstacles"]:
                print_plain(f"    {obstacle['title']}: {plain(obstacle['detail'], 400)}")
        for number, text in enumerate(whole(one["held_turn"], one.get("locale", ""))):
            print_plain(f"  {text}" if number else f"  releases {text}")


def whole(turn: dict[str, Any] | None, locale: str) -> list[str]:
    """What a held turn moves all together, and its calls where there are several that do."""
    paying = [part for part in turn["parts"] if part["amount_minor"] is not None] if turn else []
    if not turn or not paying:
        return []
    total, waits = sums(turn["total"], locale), any(part["state"] == "waits" for part in turn["parts"])
    if len(paying) == 1:
        return [total]
    several = sum(part["held"] for part in turn["parts"]) > 1
    return [
        f"{total} all together{', once the last of its held calls is decided' if several and waits else ''}:",
        *(f"  {plain(part['summary'], 100)}  ({STATES[part['state']]})" for part in paying),
    ]


def deciding(decision: str, words: str) -> Callable[..., None]:
    """`approve` and `decline`: the same but for the word."""

    def decide(
        api: Api, run: Run, call: Call = None, note: Note = "", no_wait: NoWait = False, as_json: Json = False
    ) -> None:
        before = api.get(path(run))["sequence"]
        facts = api.get(f"{path(run)}/events")["events"]
        answers = _send_all(api, run, holds_to_decide(run, facts, call), decision, note)
        if not as_json:
            for text in _decided(api.get(path(run)), answers):
                print_plain(text)
        for answer in answers:
            if answer.repeated and not as_json:
                had = f"{answer.fact['data']['by']['subject']} had decided this already; nothing new was said."
                print_plain(plain(f"{answer.fact['data']['call_id']}: {had} {answer.detail}", 400))
        if no_wait:
            new = sum(not answer.repeated for answer in answers)
            print_json([answer.fact for answer in answers]) if as_json else print_plain(f"{new} decided.")
            return
        show(api, run, follow(api, run, before), as_json)

    decide.__doc__ = f"{words}, then follow the rest of the run."
    return decide


def _decided(view: dict[str, Any], answers: list["Decided"]) -> list[str]:
    """What the decisions came to: all that the turn moves, or that they release nothing yet."""
    turn, locale = view["held_turn"], view.get("locale", "")
    decided = {answer.fact["data"]["call_id"] for answer in answers}
    parts = turn["parts"] if turn else []
    done = ", ".join(f"{part['call_id']} is {part['state']}" for part in parts if part["call_id"] in decided)
    if not turn or not done or any(part["state"] == "waits" and part["call_id"] in decided for part in parts):
        return []
    if left := [part["call_id"] for part in parts if part["state"] == "waits"]:
        waits = f"Nothing is released yet: {', '.join(left)} still waits"
        return [f"{done}. {waits}. The whole turn is {sums(turn['total'], locale)}."]
    texts = whole(turn, locale)
    return [f"{done}: {texts[0]}", *texts[1:]] if texts else []


@dataclass(frozen=True)
class Decided:
    """The fact, as the gateway answered it. repeated: it had been recorded before; detail: what it is worth by now."""

    fact: dict[str, Any]
    repeated: bool
    detail: str


def _send_all(api: Api, run: str, holds: list[dict[str, Any]], decision: str, note: str) -> list[Decided]:
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


def _send(api: Api, run: str, hold: dict[str, Any], decision: str, note: str) -> Decided:
    body = {**hold, "decision": decision} | ({"note": note} if note else {})
    answer = api.send(f"{path(run)}/decisions", body)
    repeated, detail = "Turngate-Repeated" in answer.headers, unquote(answer.headers.get("Turngate-Detail", ""))
    return Decided(answer.json(), repeated, detail)


def holds_to_decide(run: str, facts: list[dict[str, Any]], call: str | None = None) -> list[dict[str, Any]]:
    """Calls of the run's last hold as a decision names them: turn, call_id, digest. The one that is named, else those
    that still wait. Where none does, all of them: said again, a decision is answered as it was the first time."""
    held = last_hold(facts)
    if held is None:
        raise Trouble(f"Nothing of {run} was ever held for a person. Nothing was decided.")
    if call is None:
        wanted = waiting(facts) or list(held.holds)
    else:
        wanted = [hold for hold in held.holds if hold.call_id == call]
    if not wanted:
        there = ", ".join(hold.call_id for hold in held.holds)
        raise Trouble(f"{run} holds no call {call}; it holds {there}. Nothing was decided.")
    return [{"turn": held.turn, "call_id": hold.call_id, "digest": hold.digest} for hold in wanted]


def register(app: typer.Typer) -> None:
    decider = somebody("Who decides: sam, sue or lee in acme")
    app.command()(signed_in(approvals))
    app.command("approve")(signed_in(deciding("approve", "Release what a run holds"), decider))
    app.command("decline")(signed_in(deciding("decline", "Refuse what a run holds"), decider))
