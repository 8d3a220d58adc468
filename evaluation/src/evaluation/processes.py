"""CPU time of a system's processes, as the kernel counts it."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process and of its children that live (PostgreSQL works in children)."""
    own = _stat(pid)
    if own is None:
        return 0.0
    total = own[0]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (other := _stat(int(entry.name))) is not None and other[1] == pid:
            total += other[0]
    return total


def _stat(pid: int) -> tuple[float, int] | None:
    """CPU seconds and parent of a process, None once it is gone."""
    try:
        # Field 2 is the command in brackets and may hold anything; what follows it is regular (proc_pid_stat(5)).
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[1])
