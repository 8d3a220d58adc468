"""A child process as the supervisor and the tests know it: how it is started, when it is ready, how it is stopped."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from turngate.embedded.account import Account
from turngate.embedded.leash import spawn
from turngate.embedded.trouble import Trouble

READY_WITHIN = 60.0


def nothing() -> None:
    pass


@dataclass(frozen=True)
class Child:
    """`prepare` runs before every start. `ready` answers within a second or two, and is asked again until it says yes;
    it raises Trouble where it never will. `env` is all of the environment that it gets."""

    name: str
    argv: tuple[str, ...]
    log: Path
    ready: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path = Path("/")
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    prepare: Callable[[], None] = nothing
    health_url: str | None = None

    def spawn(self) -> subprocess.Popen[bytes]:
        return spawn(
            self.argv,
            log=self.log,
            env=self.env,
            cwd=self.cwd,
            account=self.account,
            death_signal=self.stop_signal,
        )

    def last_words(self, lines: int = 12) -> str:
        """The end of its log, for a message about its death."""
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


def start(child: Child, within: float = READY_WITHIN) -> subprocess.Popen[bytes]:
    """Starts the child and returns once it is ready. Raises Trouble with its last words when it ends before that."""
    child.prepare()
    process = child.spawn()
    deadline = time.monotonic() + within
    try:
        while not child.ready():
            if process.poll() is not None:
                raise Trouble(f"{child.name} ended at once with code {process.returncode}:\n{child.last_words()}")
            if time.monotonic() > deadline:
                raise Trouble(f"{child.name} was not ready after {within:.0f} s:\n{child.last_words()}")
            time.sleep(0.005)
    except BaseException:
        stop(child, process)
        raise
    return process


def stop(child: Child, process: subprocess.Popen[bytes], within: float = 20.0) -> None:
    """Asks the child to end, and kills it when it does not."""
    if process.poll() is not None:
        return
    process.send_signal(child.stop_signal)
    try:
        process.wait(timeout=within)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
