"""`turngate stop set`, `stop lift`, `stop list`."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from turngate.api import Api
from turngate.commands.connection import signed_in, somebody
from turngate.commands.options import Json, print_json, print_plain, print_table
from turngate.lines import plain

stop = typer.Typer(help="What no agent does for now, whatever is approved.", no_args_is_help=True)
Reason = Annotated[str, typer.Option("--reason", help="Why; everybody reads it while the stop stands.")]


def set_stop(
    api: Api,
    reason: Reason,
    tool: Annotated[str | None, typer.Option(help="Only this tool. Default: whatever changes something.")] = None,
    above_minor: Annotated[
        int | None, typer.Option(help="Only above this amount to one customer in a day, in minor units.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Stop writes: of one tool, above an amount, both, or all. It takes effect within a second."""
    event = api.post("/v1/stops", {"tool": tool, "above_minor": above_minor, "reason": reason})
    if as_json:
        print_json(event)
        return
    stop_id = event["data"]["stop_id"]
    standing = (one for one in api.get("/v1/stops")["stops"] if one["stop_id"] == stop_id)
    print_plain(f"Stopped: {words(next(standing, event['data']))}. {stop_id}")


def lift(
    api: Api,
    stop_id: Annotated[str, typer.Argument(help="As `stop list` names it.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    as_json: Json = False,
) -> None:
    """Lift a stop."""
    event = api.post(f"/v1/stops/{quote(stop_id, safe='')}/lift", {"reason": reason})
    print_json(event) if as_json else print_plain(f"{stop_id} is lifted.")


def list_stops(api: Api, as_json: Json = False) -> None:
    """List what is stopped."""
    found = api.get("/v1/stops")
    if as_json:
        print_json(found)
        return
    if not found["stops"]:
        print_plain("Nothing is stopped.")
    print_table(
        [
            (one["stop_id"], words(one), f"{plain(one['reason'], 80)}  (by {one['by']['subject']})")
            for one in found["stops"]
        ]
    )


def words(stop: dict[str, Any]) -> str:
    """`issue_refund above £100.00 to one customer in a day`."""
    what = stop["tool"] or "every write"
    if stop["above_minor"] is None:
        return what
    above = stop.get("above") or f"{stop['above_minor']} minor units"
    return f"{what} above {above} to one customer in a day"


def register(app: typer.Typer) -> None:
    admin = somebody("Who stops it: ada in acme")
    stop.command("set")(signed_in(set_stop, admin))
    stop.command("lift")(signed_in(lift, admin))
    stop.command("list")(signed_in(list_stops))
    app.add_typer(stop, name="stop")
