"""`turngate`: runs the system on this machine, and operates any. Exit codes: 0 done, 1 refused, 2 wrong use."""

import os
import sys

import typer

from turngate.commands import decisions, demo, evaluation, lifecycle, log, operations, runs
from turngate.embedded.trouble import Trouble

app = typer.Typer(
    name="turngate",
    help="Support agents that act, under a policy and people who decide.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for group in (lifecycle, runs, decisions, log, demo, operations, evaluation):
    group.register(app)


def main() -> None:
    try:
        app()
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:
        # Whoever read our output has enough; so that Python's own flush at exit does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


if __name__ == "__main__":
    main()
