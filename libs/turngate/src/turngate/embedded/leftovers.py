"""Processes of a system that was killed: on their way out, or stuck on it. The next start waits for them."""

import contextlib
import json
import os
import signal
import time
from pathlib import Path

from turngate.embedded.processes import belongs_to
from turngate.embedded.state import FILE

ENDS_WITHIN = 20.0


def end_leftovers(data: Path, within: float = ENDS_WITHIN) -> None:
    """Returns once no process of the last system on the directory runs any more. The caller holds the directory."""
    left = {pid for pid in _pids(data) if belongs_to(pid, data)}
    deadline = time.monotonic() + within
    while left := {pid for pid in left if belongs_to(pid, data)}:
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _pids(data: Path) -> list[int]:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        processes = json.loads((data / FILE).read_text())["processes"].values()
        return [int(process["pid"]) for process in processes if process["pid"]]
    return []
