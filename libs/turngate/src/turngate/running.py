"""A whole system of one's own, in a directory of one's own: for tests, the demo and the harness."""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from turngate.api import Api
from turngate.embedded import state
from turngate.embedded.child import Child, start, stop
from turngate.embedded.services import environment_of
from turngate.embedded.state import State
from turngate.embedded.trouble import Trouble
from turngate.sign_in import sign_in

STARTS_WITHIN = 180.0
NO_MODEL = {"ANTHROPIC_API_KEY": "", "TURNGATE_MODEL_API_KEY": ""}


@dataclass(frozen=True)
class RunningSystem:
    """What one can know of, and do to, a running system."""

    data: Path

    @property
    def state(self) -> State:
        return state.read(self.data)

    @property
    def url(self) -> str:
        return self.state.url

    def token(self, who: str, tenant: str | None = None) -> str:
        return sign_in(self.data, who, tenant)

    def api(self, who: str, tenant: str | None = None) -> Api:
        """The gateway as this person sees it."""
        return Api(self.url, self.token(who, tenant))

    def environment(self, service: str) -> dict[str, str]:
        """What the service was told: its broker user, its database role."""
        return environment_of(self.data, service)

    def pid(self, name: str) -> int:
        return int(self.state.processes[name]["pid"])

    def kill(self, name: str) -> None:
        """As with kill -9. The supervisor starts it again."""
        os.kill(self.pid(name), signal.SIGKILL)

    def log_of(self, name: str) -> str:
        return (self.data / "logs" / f"{name}.log").read_text(errors="replace")


@contextmanager
def temporary_system(environ: Mapping[str, str] | None = None) -> Iterator[RunningSystem]:
    """One in a directory of its own, with the stand-in as its model, gone afterwards."""
    with reachable_directory("turngate-") as data, running_system(data, NO_MODEL | dict(environ or {})) as system:
        yield system


@contextmanager
def reachable_directory(prefix: str) -> Iterator[Path]:
    """A temporary one that the unprivileged account of an embedded PostgreSQL can reach."""
    path = Path(tempfile.mkdtemp(prefix=prefix))
    path.chmod(0o711)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def running_system(data: Path, environ: Mapping[str, str] | None = None) -> Iterator[RunningSystem]:
    """`turngate up` on the directory, ready; stopped in the end. `environ` is added to our own environment."""

    def ready() -> bool:
        try:
            return state.read(data).ready
        except Trouble:
            return False

    child = Child(
        name="the system",
        argv=(sys.executable, "-m", "turngate", "up", "--data", str(data), "--port", "0", "--no-link"),
        log=data / "logs" / "system.log",
        ready=ready,
        env={"TURNGATE_STANDIN_PACE_MS": "0", **os.environ, **(environ or {})},
        cwd=data,
    )
    process = start(child, STARTS_WITHIN)
    try:
        yield RunningSystem(data)
    finally:
        stop(child, process, within=60)
