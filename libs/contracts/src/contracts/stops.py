"""Named points at which a test may end the process, to show that being killed there does no harm.

A point is `<service>.<name>`. It is armed by a file of that name in the folder that `arm` was given, each line of it
`<n>`, or `<n> <run> [<fact> [<turn>]]`: how often the point shall still strike, and on whose account. What passes an
armed point is added to `<point>.reached`, a line each: run, fact heard, turn.
"""

import os
import signal
from pathlib import Path

from structlog.contextvars import get_contextvars

_folder: Path | None = None
_service = ""


def arm(folder: str | None, service: str) -> None:
    """Where to look for armed points; None (production) switches them off."""
    global _folder, _service  # one service a process, set once at start
    _folder, _service = Path(folder) if folder else None, service


def are_armed() -> bool:
    """Whether any point of this process may be armed."""
    return _folder is not None


def stop(name: str) -> None:
    """Ends this process as `kill -9` would, if the point is armed. `name` is literal: tests read it from the code.

    A strike written `halt` instead of a number stops the process (SIGSTOP) where it stands, once: whoever armed it
    then lets it go on, or kills it.
    """
    if _folder is None:
        return
    armed = _folder / (name if "." in name else f"{_service}.{name}")
    try:
        strikes = armed.read_text().splitlines()
    except FileNotFoundError:
        return
    passing = [str(get_contextvars().get(what) or "-") for what in ("run", "fact", "turn")]
    with armed.with_name(f"{armed.name}.reached").open("a") as reached:
        reached.write(" ".join(passing) + "\n")
    for line, strike in enumerate(strikes):
        left, *of = strike.split()
        if left != "0" and passing[: len(of)] == of:
            strikes[line] = " ".join(["0" if left == "halt" else str(int(left) - 1), *of])
            armed.write_text("\n".join(strikes))
            os.kill(os.getpid(), signal.SIGSTOP if left == "halt" else signal.SIGKILL)
            return
