"""A whole system that a test may stop and start, watched by a collector, with a tenant whose holds last for seconds."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from turngate import testing
from turngate.people import tenants_directory
from turngate.running import RunningSystem

from .collector import Collector
from .world import turngate


@dataclass(frozen=True)
class OwnSystem(RunningSystem):
    """`turngate up` and `down` on one data directory."""

    environ: Mapping[str, str]

    def up(self) -> None:
        keyless = {name: value for name, value in os.environ.items() if not name.endswith("API_KEY")}
        command = [sys.executable, "-m", "turngate", "up", "--data", str(self.data), "--port", "0", "--detach"]
        started = subprocess.run(
            command,
            env={**keyless, **self.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert started.returncode == 0, started.stderr

    def down(self) -> None:
        stopped = turngate(self, "down")
        assert stopped.returncode == 0, stopped.stderr

    @contextmanager
    def running(self) -> Iterator[None]:
        """Up until it is left."""
        self.up()
        try:
            yield
        finally:
            self.down()


@contextmanager
def own_system(collector: Collector) -> Iterator[OwnSystem]:
    """Up until it is left. globex's holds are reminded of after one second and expire after three."""
    with testing.directory() as place:
        environ = {
            "TURNGATE_TENANTS_DIR": str(_with_short_holds(place / "tenants")),
            "TURNGATE_OTLP_ENDPOINT": collector.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        system = OwnSystem(place / "data", environ)
        with system.running():
            yield system


def _with_short_holds(tenants: Path) -> Path:
    shutil.copytree(tenants_directory(), tenants)
    pack = tenants / "globex" / "policy.yaml"
    limits = yaml.safe_load(pack.read_text())
    limits["hold"] = {"remind_after_seconds": 1, "expires_after_seconds": 3}
    pack.write_text(yaml.safe_dump(limits))
    return tenants
