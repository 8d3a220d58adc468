"""The benchmark's figures, for a terminal: what people compare is drawn."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from evaluation.bench import Batch, Report, machine

# What a turn of the real work passes through, apart from the model's own side.
MODEL_SIDE = ("standin",)
_BAR = 40


def show(report: Report, console: Console) -> None:
    throughput, alone = report.throughput, report.alone
    console.print(f"[bold]{throughput.runs} runs of {throughput.turns} turns at once[/]")
    console.print(f"turns a second: {throughput.turns_a_second:.0f}")
    console.print(
        f"CPU a turn: {_without_model(throughput):.2f} ms, and {throughput.cpu['standin']:.2f} ms for the stand-in"
    )
    cpu = Table("process", "CPU ms a turn", "", show_edge=False)
    most = max(throughput.cpu.values()) or 1
    for name, ms in sorted(throughput.cpu.items(), key=lambda item: -item[1]):
        cpu.add_row(name, f"{ms:.2f}", "█" * round(_BAR * ms / most))
    console.print(cpu)
    console.print(f"bytes a turn: {throughput.log_bytes:.0f} in the log, {throughput.wal_bytes:.0f} of WAL")
    console.print(f"\n[bold]{alone.runs} runs of {alone.turns} turns, one after the other[/]")
    overhead = Table("", "p50 ms", "p99 ms", show_edge=False)
    overhead.add_row("turn-proposed to turn-executed", f"{alone.to_executed.p50:.1f}", f"{alone.to_executed.p99:.1f}")
    overhead.add_row(
        "the whole turn, its model call included", f"{alone.whole_turn.p50:.1f}", f"{alone.whole_turn.p99:.1f}"
    )
    overhead.add_row("decision to the agent's next fact", f"{report.decision.p50:.1f}", f"{report.decision.p99:.1f}")
    console.print(overhead)
    console.print("\n[bold]by length of the run[/]")
    lengths = Table("turns", "whole turn p50 ms", "CPU ms a turn", "log bytes a turn", "", show_edge=False)
    slowest = max(batch.whole_turn.p50 for batch in report.lengths) or 1
    for batch in report.lengths:
        lengths.add_row(
            str(batch.turns),
            f"{batch.whole_turn.p50:.1f}",
            f"{_without_model(batch):.2f}",
            f"{batch.log_bytes:.0f}",
            "█" * round(_BAR * batch.whole_turn.p50 / slowest),
        )
    console.print(lengths)
    console.print(f"\nmeasured on {machine()}; compare figures of one run only")


def as_json(report: Report) -> dict[str, Any]:
    return {**asdict(report), "machine": machine()}


def _without_model(batch: Batch) -> float:
    return sum(ms for name, ms in batch.cpu.items() if name not in MODEL_SIDE)
