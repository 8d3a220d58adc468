"""A full disk: it is said, nothing is lost, and work goes on by itself once there is room."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from contracts.verify import verify
from turngate import records, testing
from turngate.running import NO_MODEL

from .chaos import SCENARIOS, Worked, differences, paid_in, patiently, refunds_by_run, work_one
from .own_system import OwnSystem
from .points import SERVICES
from .world import turngate, until

MEGABYTE = 1024 * 1024
DISK = 400 * MEGABYTE
WORKERS = 3
pytestmark = pytest.mark.timeout(900)


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A file system of its own. Skips where none can be mounted."""
    place.mkdir(mode=0o711)
    try:
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0711", "tmpfs", place], capture_output=True, text=True
        )
    except OSError as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Nothing can be written to the disk until this is left."""
    files, full = [], threading.Event()

    def fill() -> None:
        """Whatever is set free meanwhile is taken, too."""
        while not full.is_set():
            file = disk / f"fill-{len(files)}"
            files.append(file)
            with suppress(OSError), file.open("wb", buffering=0) as output:
                while not full.is_set() and output.write(b"x" * MEGABYTE):
                    pass
            time.sleep(0.05)

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        yield
    finally:
        full.set()
        filling.join()
        for file in files:
            file.unlink(missing_ok=True)


@contextmanager
def load(system: OwnSystem) -> Iterator[list[Worked]]:
    """Runs of all scenarios, several at once, until this is left; then those that are under way come to their end."""
    worked: list[Worked] = []
    enough = threading.Event()

    def work(first: int) -> None:
        number = first
        while not enough.is_set():
            worked.append(work_one(system, SCENARIOS[number % len(SCENARIOS)]))
            number += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        yield worked
    finally:
        enough.set()
        for worker in workers:
            worker.join()


def is_ready(system: OwnSystem, service: str) -> bool:
    with suppress(httpx.HTTPError):
        return httpx.get(system.state.processes[service]["health"], timeout=5).status_code == 200
    return False


def appended(system: OwnSystem) -> int:
    """How many facts the log holds."""
    return len(patiently(lambda: records.everything(records.broker(system.data))))


def test_a_full_disk_is_told_of_and_once_there_is_room_everything_goes_on_with_nothing_lost() -> None:
    with testing.directory() as place, small_disk(place / "disk") as disk:
        system = OwnSystem(disk / "data", NO_MODEL | {"TURNGATE_STANDIN_PACE_MS": "0"})
        with system.running():
            with load(system) as worked:
                until(lambda: len(worked) >= 5)
                with filled(disk):
                    until(lambda: "no space left" in turngate(system, "status").stdout)
                    assert turngate(system, "status").returncode == 1
                    until(lambda: not all(is_ready(system, name) for name in SERVICES))
                    full = appended(system)
                until(lambda: appended(system) > full + 5, within=30)
                before = len(worked)
                until(lambda: len(worked) >= before + 5)
                until(lambda: turngate(system, "status").returncode == 0)
            events = records.everything(records.broker(system.data), "acme")
            assert verify(events) == []
            by_log = {one.run: paid_in(system, one.run) for one in worked}
            assert list(differences(worked, by_log, refunds_by_run(system))) == []
            assert records.dead_letters(records.set_up_broker(system.data)) == []
