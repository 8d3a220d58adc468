"""Named points at which a test may kill the process, to show that being killed there does no harm.

A point is `<service>.<name>`. It is armed by a file of that name in the folder that `arm` was given, holding how often
it shall still strike; a point that was passed while armed leaves `<point>.reached` behind.
"""

import os
import signal
from pathlib import Path

_folder: Path | None = None
_service = ""


def arm(folder: str | None, service: str) -> None:
    """Where to look for armed points; None (production) switches them off."""
    global _folder, _service  # one service a process, set once at start
    _folder, _service = Path(folder) if folder else None, service


def stop(name: str) -> None:
    """Ends this process as `kill -9` would, if the point is armed. `name` is literal: tests read it from the code."""
    if _folder is None:
        return
    armed = _folder / (name if "." in name else f"{_service}.{name}")
    try:
        left = int(armed.read_text())
    except FileNotFoundError:
        return
    armed.with_name(f"{armed.name}.reached").touch()
    if left > 0:
        armed.write_text(str(left - 1))
        os.kill(os.getpid(), signal.SIGKILL)
