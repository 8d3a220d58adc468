"""`turngate`: runs the system on this machine, and operates any. Exit codes: 0 done, 1 refused, 2 wrong use."""

import importlib
import os
import sys

import typer

from turngate.embedded.trouble import Trouble

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
    app = typer.Typer(name="turngate", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

    @app.callback()
    def turngate() -> None:
        """Support agents that act, under a policy and people who decide."""

    modules = [module for module, verbs in COMMANDS.items() if verb in verbs] or COMMANDS
    for module in modules:
        importlib.import_module(f"turngate.commands.{module}").register(app)
    return app


def main() -> None:
    try:
        build(sys.argv[1] if len(sys.argv) > 1 else None)()
    except Trouble as trouble:
        print(trouble, file=sys.stderr)
        raise SystemExit(1) from None
    except BrokenPipeError:
        # Whoever read our output has enough; so that Python's own flush at exit does not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None


if __name__ == "__main__":
    main()
