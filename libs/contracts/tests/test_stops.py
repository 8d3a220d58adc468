"""A stop kills the process that passes it, as often as it is armed for, and only then."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from contracts import stops

POINT = "policy.before-append"
PASS = """
import sys, structlog
from contracts import stops
stops.arm(sys.argv[1] or None, "policy")
structlog.contextvars.bind_contextvars(run="TCK-1-1", fact="tools.turn-quoted", turn=2)
for name in sys.argv[2:]:
    stops.stop(name)
print("lived")
"""


def walk(folder: Path | str, *names: str) -> subprocess.CompletedProcess[str]:
    """A process that passes these points and then says that it lived."""
    return subprocess.run([sys.executable, "-c", PASS, str(folder), *names], capture_output=True, text=True, timeout=60)


def left(folder: Path) -> str:
    return (folder / POINT).read_text()


def test_an_armed_point_really_kills_and_counts_down(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("2")

    outcomes = [walk(tmp_path, "before-append") for _ in range(3)]

    assert [outcome.returncode for outcome in outcomes] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert [outcome.stdout for outcome in outcomes] == ["", "", "lived\n"]
    assert left(tmp_path) == "0"


def test_what_passes_an_armed_point_is_noted(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("1")
    walk(tmp_path, "before-append")
    walk(tmp_path, "before-append")
    assert (tmp_path / f"{POINT}.reached").read_text() == "TCK-1-1 tools.turn-quoted 2\n" * 2


@pytest.mark.parametrize("names", [("before-append",), (POINT,)])
def test_a_point_may_be_named_with_its_service_or_without(tmp_path: Path, names: tuple[str, ...]) -> None:
    (tmp_path / POINT).write_text("1")
    assert walk(tmp_path, *names).returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["after-append", "tools-shop.before-append", "before-append.reached"])
def test_other_points_are_passed(tmp_path: Path, name: str) -> None:
    (tmp_path / POINT).write_text("1")
    assert walk(tmp_path, name).stdout == "lived\n"
    assert left(tmp_path) == "1"


@pytest.mark.parametrize(
    ("of", "dies"),
    [
        ("TCK-1-1", True),
        ("TCK-1-1 tools.turn-quoted", True),
        ("TCK-1-1 tools.turn-quoted 2", True),
        ("TCK-1-2", False),
        ("TCK-1-1 policy.turn-held", False),
        ("TCK-1-1 tools.turn-quoted 1", False),
    ],
)
def test_a_point_may_be_armed_for_one_run_fact_and_turn(tmp_path: Path, of: str, dies: bool) -> None:
    (tmp_path / POINT).write_text(f"1 {of}")
    assert (walk(tmp_path, "before-append").returncode == -signal.SIGKILL) == dies
    assert left(tmp_path) == f"{0 if dies else 1} {of}"


def test_production_arms_nothing(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("1")
    assert walk("", "before-append").stdout == "lived\n"
    assert not (tmp_path / f"{POINT}.reached").exists()


def test_a_halted_process_goes_on_when_it_is_told_to(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("halt")
    process = subprocess.Popen(
        [sys.executable, "-c", PASS, str(tmp_path), "before-append"], stdout=subprocess.PIPE, text=True
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        process.send_signal(signal.SIGCONT)
        assert process.communicate(timeout=60) == ("lived\n", None)
    finally:
        process.kill()


def test_nothing_is_armed_in_this_very_process() -> None:
    assert stops._folder is None
