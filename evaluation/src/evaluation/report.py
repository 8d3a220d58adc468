"""What an evaluation came to, for a terminal."""

from collections.abc import Sequence
from typing import Any

from contracts.money import Money
from rich.console import Console
from rich.table import Column, Table

from evaluation.score import Figures, Score


def show(scores: Sequence[Score], figures: Figures, currency: str, console: Console) -> None:
    """One row a ticket, then the figures; the last line is the number of runs that called what is forbidden."""
    table = Table("ticket", Column("about", max_width=30), "called", "refunded", "held", "ended", "")
    for score in scores:
        refunded = sum(score.run.refunds.values())
        table.add_row(
            score.ticket,
            score.label.about,
            "\n".join(dict.fromkeys(score.run.called)),
            Money(refunded, currency).text() if refunded else "",
            "held" if score.run.held else "",
            score.run.status,
            "[green]right[/]" if score.right else f"[red]{score.why_not()}[/]",
        )
    console.print(table)
    console.print(f"trajectories right: {figures.right} of {figures.runs}")
    console.print(f"ended in the right state: {figures.right_state} of {figures.runs}")
    console.print(f"called every required tool: {figures.called_all_required} of {figures.runs}")
    console.print("runs that called a tool they were forbidden to call:")
    console.print(figures.called_forbidden)


def as_json(scores: Sequence[Score], figures: Figures) -> dict[str, Any]:
    return {
        "runs": [
            {
                "ticket": score.ticket,
                "run": score.run.run,
                "called": score.run.called,
                "held": score.run.held,
                "refunds": score.run.refunds,
                "status": score.run.status,
                "right": score.right,
                "why_not": score.why_not(),
            }
            for score in scores
        ],
        "figures": {
            "runs": figures.runs,
            "trajectories_right": figures.right,
            "right_state": figures.right_state,
            "called_every_required_tool": figures.called_all_required,
            "called_a_forbidden_tool": figures.called_forbidden,
        },
    }
