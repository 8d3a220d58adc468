"""`turngate`: runs the system on this machine, and operates any.

Exit codes: 0 done, 1 refused or failed, 2 wrong use.
"""

import errno
import importlib
import json
import os
import select
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import Annotated

import typer.main
import typer.rich_utils
from contracts.validation import explain
from pydantic import ValidationError

from turngate.embedded.trouble import Trouble

INTERRUPTED = 130  # as a shell says it of a command that Ctrl-C ended
# Only the module of the verb that is called is loaded: some of them are slow to load.
COMMANDS = {
    "lifecycle": ("up", "down", "status", "token"),
    "runs": ("tickets", "run", "watch", "runs", "say", "cancel", "take-over"),
    "decisions": ("approvals", "approve", "decline"),
    "stops": ("stop",),
    "policy": ("policy",),
    "audit": ("audit",),
    "budget": ("spend", "budget"),
    "log": ("log",),
    "demo": ("demo",),
    "operations": ("setup", "keys", "rebuild-views", "dead"),
    "subscribers": ("subscriber",),
    "erase": ("erase",),
    "evaluation": ("evaluate", "bench"),
}


def build(verb: str | None) -> typer.Typer:
    """The application, with the commands of the verb's module; with all of them where the verb is unknown."""
    app = typer.Typer(
        name="turngate",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def turngate(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        """Support agents that act, under a policy and people who decide."""

    modules = [module for module, verbs in COMMANDS.items() if verb in verbs] or COMMANDS
    for module in modules:
        importlib.import_module(f"turngate.commands.{module}").register(app)
    return app


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code. Errors go to standard error, as JSON where --json is asked."""
    as_json = "--json" in arguments
    command = typer.main.get_command(build(arguments[0] if arguments else None))
    try:
        with command.make_context("turngate", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return _failed(Trouble("Broken off. What was done before stays done."), as_json)
    except typer.TyperException as error:  # wrong use
        if as_json:
            _print_error({"title": "Wrong use", "detail": error.format_message()})
        else:
            with suppress(SystemExit):  # nobody reads it
                typer.rich_utils.rich_format_error(error)  # type: ignore[arg-type]  # typer gives its base no display
        return error.exit_code
    except Trouble as trouble:
        return _failed(trouble, as_json)
    except ValidationError as error:
        return _failed(Trouble(f"What was given or answered is not as it must be. {explain(error)}."), as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def main() -> None:
    try:
        code = run(sys.argv[1:])
        sys.stdout.flush()
    except (OSError, SystemExit) as end:
        if _reader_has_gone(end):
            code = 0
        elif isinstance(end, OSError) and end.errno in (errno.ENOSPC, errno.EDQUOT):
            print(f"What was printed is not all: {end.strerror}.", file=sys.stderr)
            code = 1
        else:
            raise
        # So that Python's own flush at exit does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code)


def _reader_has_gone(end: BaseException) -> bool:
    """Whether the reader of our output has closed it, as `head` does. Rich makes a SystemExit of that."""
    if isinstance(end, SystemExit):
        return isinstance(end.__context__, BrokenPipeError)
    if not isinstance(end, BrokenPipeError):
        return False
    output = select.poll()
    output.register(sys.stdout.fileno(), select.POLLERR)
    return bool(output.poll(0))


def _failed(trouble: Trouble, as_json: bool) -> int:
    _print_error(trouble.document()) if as_json else print(trouble, file=sys.stderr)
    return 1


def _print_error(document: dict[str, object]) -> None:
    print(json.dumps(document, ensure_ascii=False), file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"turngate {version('turngate')}")
        raise typer.Exit


if __name__ == "__main__":
    main()
