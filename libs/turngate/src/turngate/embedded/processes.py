"""What can be known of a process by its pid, so that a reused one is not taken for ours."""

import contextlib
import subprocess
from pathlib import Path


def lives(pid: int) -> bool:
    """Whether it runs; one that has ended and is only not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return bool(command_line(pid))


def belongs_to(pid: int, directory: Path) -> bool:
    """Whether it runs and works in the directory, or was started with it on its command line."""
    if not lives(pid):
        return False
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/cwd").resolve(strict=True).is_relative_to(directory.resolve()):
            return True
    return str(directory) in command_line(pid)


def command_line(pid: int) -> str:
    """What it was started with; empty when there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ")
    with contextlib.suppress(OSError):
        ask = ["ps", "-p", str(pid), "-o", "command="]
        return subprocess.run(ask, capture_output=True, text=True).stdout.strip()  # noqa: S603 - a fixed question
    return ""
