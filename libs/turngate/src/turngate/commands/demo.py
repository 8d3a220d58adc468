"""`turngate demo`: the story of TCK-2004, told step by step on a real system."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from contracts import facts as f
from contracts.events import Event
from contracts.money import Money
from contracts.verify import verify

from turngate import records
from turngate.api import Refused
from turngate.commands.decisions import holds_to_decide
from turngate.commands.options import console, print_plain
from turngate.embedded.trouble import Trouble
from turngate.following import follow, path
from turngate.lines import line
from turngate.running import RunningSystem, temporary_system

TICKET = "TCK-2004"
REFUND = Money(18000, "GBP")


def demo(
    data: Annotated[
        Path | None,
        typer.Option("--data", help="A running system to tell it on. Default: one of its own, removed after."),
    ] = None,
) -> None:
    """Tell the story of TCK-2004: proposed, quoted, held, approved by somebody else, paid once."""
    if data is not None:
        _tell(RunningSystem(data))
        return
    heading("A system of its own is started; that takes a few seconds.")
    with temporary_system() as system:
        _tell(system)


def _tell(system: RunningSystem) -> None:
    alex, sam, lee = (system.api(name) for name in ("alex", "sam", "lee"))
    ticket = alex.get(f"/v1/tickets/{TICKET}")

    heading(f"{ticket['customer']['name']} has written ({TICKET}): {ticket['subject']}")
    print_plain("\n".join(f"    {text}" for text in ticket["body"].splitlines()))

    heading(
        "alex, an operator, starts a run. The model proposes; the shop says what each call would do; policy decides."
    )
    run = alex.post(f"/v1/tickets/{TICKET}/runs", {})["run"]
    last = _show(follow(alex, run))
    if not isinstance(last.fact, f.TurnHeld):
        raise Trouble(
            f"{run} was to be held for a person, but its last fact is {last.kind}. "
            "The story needs TCK-2004 as it was seeded: tell it on a system of its own (without --data)."
        )
    print_plain(f"The refund is above what acme's agents may do alone. Moved so far: {_moved(alex.get(path(run)))}.")

    heading("alex asked for it, so alex may not release it.")
    hold = holds_to_decide(run, alex.get(f"{path(run)}/events")["events"])[0]
    approval = {**hold, "decision": "approve"}
    _refused(lambda: alex.post(f"{path(run)}/decisions", approval), "alex")

    heading("sam, an approver, releases exactly what was quoted. The rest of the run follows.")
    recorded = sam.post(f"{path(run)}/decisions", approval)
    end = _show(follow(sam, run, last.sequence))
    view = sam.get(path(run))
    if not end.terminal or view["moved"] != [{"currency": REFUND.currency, "amount_minor": REFUND.amount_minor}]:
        raise Trouble(f"{run} was to end with {REFUND.text()} moved; it is {view['status']}, moved: {_moved(view)}.")
    print_plain(f"Moved: {_moved(view)}, once.")

    heading(
        "sam sends the same decision again, as after a lost answer: it gets the same fact, and nothing more happens."
    )
    if sam.post(f"{path(run)}/decisions", approval)["id"] != recorded["id"]:
        raise Trouble("The repeated decision was recorded a second time.")
    print_plain(f"    the same fact: {recorded['id']}")

    heading("lee, a lead, would decline now. It is too late, and says so.")
    _refused(lambda: lee.post(f"{path(run)}/decisions", {**hold, "decision": "decline"}), "lee")
    if sam.get(path(run))["moved"] != view["moved"]:
        raise Trouble("Money was moved by a late decision.")

    heading("Everything that happened is in the log; its rules are checked.")
    events = records.of_run(records.broker(system.data), ["acme"], run)
    if violations := verify(events):
        raise Trouble("\n".join(map(str, violations)))
    print_plain(f"{len(events)} events of {run}: every rule holds.")
    console.print("\n[bold]One decision, one refund.[/]")


def heading(text: str) -> None:
    console.print(f"\n[bold cyan]{text}[/]")


def _show(events: Iterator[Event]) -> Event:
    last = None
    for last in events:
        print_plain(f"    {line(last)}")
    if last is None:
        raise Trouble("The run said nothing.")
    return last


def _refused(attempt: Callable[[], object], who: str) -> None:
    try:
        attempt()
    except Refused as refused:
        print_plain(f"    {refused.status}  {refused}")
        return
    raise Trouble(f"{who}'s decision was accepted; it had to be refused.")


def _moved(view: dict[str, Any]) -> str:
    moved = [Money(one["amount_minor"], one["currency"]).text(view.get("locale", "")) for one in view["moved"]]
    return ", ".join(moved) or "nothing"


def register(app: typer.Typer) -> None:
    app.command()(demo)
