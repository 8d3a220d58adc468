"""The verbs of the evaluation harness, which is only loaded when one of them is called."""

import importlib

import typer.main

VERBS = {
    "evaluate": "Run the labelled tickets and print the figures; the last line is the figure.",
    "bench": "Measure turns a second, overhead, CPU and bytes a turn.",
}
HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def hand_on(context: typer.Context) -> None:
    """The harness takes the whole command line from here, `--help` included."""
    harness = typer.main.get_command(importlib.import_module("evaluation.cli").app)
    with harness.make_context("turngate", [str(context.info_name), *context.args]) as of_harness:
        harness.invoke(of_harness)


def register(app: typer.Typer) -> None:
    for verb, summary in VERBS.items():
        app.command(verb, help=summary, context_settings=HANDED_ON)(hand_on)
