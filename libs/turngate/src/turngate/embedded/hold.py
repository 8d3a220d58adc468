"""One system a data directory: a lock that its process holds, and that falls when it dies, however it dies."""

import fcntl
import os
from pathlib import Path
from typing import IO

from turngate.embedded.trouble import Trouble

NAME = "lock"


def take(data: Path) -> IO[str]:
    """Holds the directory until the returned file is closed. Raises Trouble where a running system holds it."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        file = (data / NAME).open("a+")
    except OSError as error:
        raise unusable(data, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Trouble(
            f"A system already runs on {data} (pid {holder(data)}). Nothing was started. "
            f"`turngate status --data {data}` shows it, `turngate down --data {data}` stops it; "
            "another --data starts a second one."
        ) from None
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


def unusable(data: Path, error: OSError) -> Trouble:
    """Why nothing can be kept in the directory, and what to do."""
    return Trouble(
        f"{data} cannot be used: {error.strerror}. Nothing was started. "
        "Run this as the user whom it belongs to, or name another directory with --data."
    )


def holder(data: Path) -> int | None:
    """The pid of the system that runs on the directory; None where none does."""
    try:
        file = (data / NAME).open("r")
    except OSError:
        return None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read().strip()
            return int(text) if text.isdigit() else None
        return None
