"""Starts processes that do not outlive this one, even when it is killed with -9."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from turngate.embedded.account import Account

PR_SET_PDEATHSIG = 1
LINUX = sys.platform == "linux"


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str],
    cwd: Path,
    account: Account | None = None,
    death_signal: signal.Signals = signal.SIGTERM,
) -> subprocess.Popen[bytes]:
    """A process in a session of its own (a Ctrl-C is for the supervisor, which then stops the rest in order), whose
    output goes to `log`. Linux sends `death_signal` when the thread that forked ends: fork from the main thread."""
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError("a leashed process must be started from the main thread")
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = list(argv) if LINUX else [sys.executable, "-m", "turngate.embedded.watchdog", *argv]
    with log.open("ab") as output:
        return subprocess.Popen(  # noqa: S603 - a command line of our own making
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_leash(death_signal) if LINUX else None,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )


def _leash(death_signal: signal.Signals) -> Callable[[], None]:
    parent, number = os.getpid(), int(death_signal)
    prctl = ctypes.CDLL(None).prctl

    def leash() -> None:
        prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return leash
