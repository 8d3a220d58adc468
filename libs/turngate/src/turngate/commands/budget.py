"""`turngate spend`, `turngate budget`: what the tenant's model calls cost a day, and what they may."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from turngate.api import Api
from turngate.commands.connection import signed_in
from turngate.commands.options import Json, print_json, print_plain

MICRO = 1_000_000
MOST = 2**53 - 1
NONE = "none"
WHO = Annotated[
    str | None,
    typer.Option("--as", help="Who asks; an admin sets it: ada in acme. Default: the tenant's operator, who reads it."),
]
FIGURES = {"spent": "spent", "reserved": "under way", "uncertain": "uncertain", "saved": "saved"}


def spend(
    api: Api,
    days: Annotated[int, typer.Option(min=1, max=90, help="How many days (UTC), today among them.")] = 30,
    as_json: Json = False,
) -> None:
    """Print what the tenant's model calls cost a day.

    Under way: reserved for calls that are being made now. Uncertain: reserved for calls, and nobody knows what came of
    them. Saved: what recorded answers that were used again would have cost.
    """
    found = api.get("/v1/spend", days=days)
    if as_json:
        print_json(found)
        return
    if not found["days"]:
        print_plain(f"No model calls in the last {days} days.")
        return
    for line in table(found["days"]):
        print_plain(line)


def budget(
    api: Api,
    day: Annotated[
        str | None, typer.Option("--day", metavar="USD|none", help="Set it, in US dollars; none: no limit.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print what the tenant's model calls may cost a day (UTC), or set it. Runs beyond it go to a person."""
    if day is not None:
        said = api.put("/v1/budget", {"day_micro_usd": micro_usd(day)})
        if as_json:
            print_json(said)
            return
    found = api.get("/v1/budget")
    if as_json:
        print_json(found)
        return
    today = api.get("/v1/spend", days=1)["days"]
    print_plain(stands(found["day_micro_usd"], taken(today[-1]) if today else 0))


def micro_usd(text: str) -> int | None:
    """Micro-dollars of a text such as 12.50; None for none."""
    if text.strip().lower() == NONE:
        return None
    try:
        amount = Decimal(text.strip().removeprefix("$")) * MICRO
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount != int(amount) or not 0 <= amount <= MOST:
        raise typer.BadParameter(
            "give US dollars, as in 12.50, with six decimal places at most, or none", param_hint="--day"
        )
    return int(amount)


def taken(day: dict[str, Any]) -> int:
    """What of a day counts towards its budget."""
    return sum(int(day[f"{name}_micro_usd"]) for name in ("spent", "reserved", "uncertain"))


def stands(budget: int | None, today: int) -> str:
    """`Model calls may cost $5.00 a day (UTC): $1.25 (25 %) of today's is taken, $3.75 is left.`"""
    if budget is None:
        return f"Model calls may cost whatever they do: no budget is set. Today they come to {usd(today)}."
    share = f" ({today * 100 // budget} %)" if budget else ""
    left = usd(max(budget - today, 0))
    return f"Model calls may cost {usd(budget)} a day (UTC): {usd(today)}{share} of today's is taken, {left} is left."


def usd(micro: int) -> str:
    """`$1,234.50`, with as many decimal places as it has, and two at least."""
    whole, decimals = f"{Decimal(micro) / MICRO:,.6f}".split(".")
    return f"${whole}.{decimals.rstrip('0'):0<2}"


def table(days: list[dict[str, Any]]) -> list[str]:
    """A line a day, and their sum."""
    total = {f"{name}_micro_usd": sum(int(day[f"{name}_micro_usd"]) for day in days) for name in FIGURES}
    rows = [("day", *FIGURES.values())]
    rows += [
        (str(day["day"]), *(f"${day[f'{name}_micro_usd'] / MICRO:,.4f}" for name in FIGURES))
        for day in [*days, {"day": "together", **total}]
    ]
    return [f"{name:<10}" + "".join(f"{cell:>14}" for cell in cells) for name, *cells in rows]


def register(app: typer.Typer) -> None:
    app.command()(signed_in(spend))
    app.command()(signed_in(budget, WHO))
