"""The harness on the command line: `turngate evaluate` and `turngate bench`."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Annotated

import typer
from contracts.strict import parse_yaml
from rich.console import Console
from turngate.embedded.trouble import Trouble
from turngate.people import tenants_directory
from turngate.running import RunningSystem, temporary_system

from evaluation import bench as benchmark
from evaluation import bench_report, labels, report, static
from evaluation.evaluate import evaluate as run_all
from evaluation.place import people
from evaluation.score import figures

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console(highlight=False, soft_wrap=True)

Data = Annotated[Path | None, typer.Option(help="A system that runs already. Default: a fresh one, removed after.")]
Url = Annotated[str | None, typer.Option(help="Another system's gateway; tokens from TURNGATE_TOKEN_<NAME>.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def harness() -> None:
    """Evaluations: each starts its own system unless --data or --url names one."""


@app.command()
def evaluate(
    data: Data = None,
    url: Url = None,
    start_as: Annotated[str, typer.Option(help="Who starts the runs.")] = "alex",
    labelled: Annotated[Path, typer.Option("--labels", help="The labels.")] = labels.FILE,
    only_static: Annotated[bool, typer.Option("--static", help="Check labels and gate; needs no services.")] = False,
    as_json: Json = False,
) -> None:
    """Work the labelled tickets and print how many went as labelled.

    The last line is the number of runs that called a tool they were forbidden to call. Exit 1 unless all went right.
    """
    wanted = labels.load(labelled)
    tenants = tenants_directory()
    if wrong := list(static.wrong(wanted, tenants)):
        raise Trouble("\n".join(["The labels or the gate are wrong. Nothing was run.", *wrong]))
    if only_static:
        console.print("The labels fit the tickets, the tools and the limits; the gate holds either side of each limit.")
        return
    with people(wanted.tenant, data, url) as who:
        scores = run_all(wanted, who, start_as)
    found = figures(scores)
    if as_json:
        typer.echo(json.dumps(report.as_json(scores, found), indent=2, ensure_ascii=False))
    else:
        currency = parse_yaml((tenants / wanted.tenant / "demo.yaml").read_text())["currency"]
        report.show(scores, found, currency, console)
    if not found.good:
        raise typer.Exit(1)


@app.command()
def bench(
    data: Data = None,
    scale: Annotated[float, typer.Option(help="Fewer runs, for a quick look: 0.1 is a tenth.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Measure turns a second, overhead, CPU and bytes a turn, with a scripted model that answers at once."""
    progress = Console(stderr=True, highlight=False)
    with contextlib.ExitStack() as stack:
        system = RunningSystem(data) if data else stack.enter_context(temporary_system())
        report = asyncio.run(benchmark.measure(system, progress.print, scale))
    if as_json:
        typer.echo(json.dumps(bench_report.as_json(report), indent=2))
    else:
        bench_report.show(report, console)
