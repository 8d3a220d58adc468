"""The supervisor: what it starts, keeps alive, and leaves behind."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from turngate.embedded import state
from turngate.embedded.leftovers import end_leftovers
from turngate.embedded.ports import why_not_free
from turngate.embedded.processes import lives
from turngate.embedded.state import State
from turngate.embedded.trouble import Trouble

SMALL = Path(__file__).with_name("small_system.py")


@contextmanager
def supervisor(data: Path, port: int = 0) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, SMALL, data, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def until(condition: Callable[[], bool], within: float = 30.0) -> None:
    """For what no event tells: the state of processes that are not ours to wait for."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def ready(process: subprocess.Popen[str], data: Path) -> State:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "ready":
            return state.read(data)
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def pids(found: State) -> dict[str, int]:
    return {name: process["pid"] for name, process in found.processes.items()}


def test_a_killed_supervisor_leaves_no_process_behind_and_its_data_can_be_used_again(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        found = ready(process, data_dir)
        with psycopg.connect(found.postgres_url) as connection:
            connection.execute("create table kept (n int)")
            connection.execute("insert into kept values (7)")
        process.kill()
        process.wait()
        until(lambda: not any(lives(pid) for pid in pids(found).values()))

    with supervisor(data_dir) as process:
        again = ready(process, data_dir)
        assert again.nats_url == found.nats_url, "services would look for NATS where it was"
        assert again.postgres_url == found.postgres_url
        with psycopg.connect(again.postgres_url) as connection:
            assert connection.execute("select n from kept").fetchone() == (7,)


def test_the_next_start_waits_for_what_a_killed_system_left_and_ends_what_does_not_end(data_dir: Path) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    processes = [
        subprocess.Popen([sys.executable, "-c", stubborn], cwd=place, stdout=subprocess.PIPE)
        for place in (data_dir, Path("/"))
    ]
    ours, somebody = processes
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    written = {name: {"pid": process.pid} for name, process in zip(("ours", "reused"), processes, strict=True)}
    (data_dir / state.FILE).write_text(json.dumps({"processes": written}))
    try:
        end_leftovers(data_dir, within=0.1)
        assert ours.wait() == -signal.SIGKILL
        assert somebody.poll() is None
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_everything_killed_at_once_starts_again_on_the_same_data(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        found = ready(process, data_dir)
        for pid in (process.pid, *pids(found).values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
    with supervisor(data_dir) as process:
        ready(process, data_dir)


def test_a_postmaster_lock_that_names_somebody_elses_process_does_not_stop_the_next_start(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        ready(process, data_dir)
    (data_dir / "postgres" / "cluster" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    with supervisor(data_dir) as process:
        ready(process, data_dir)


@pytest.mark.parametrize("name", ["postgres", "nats", "issuer"])
def test_a_process_that_dies_is_started_again(data_dir: Path, name: str) -> None:
    with supervisor(data_dir) as process:
        before = pids(ready(process, data_dir))
        for _ in range(2):
            pid = pids(state.read(data_dir))[name]
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid: pids(state.read(data_dir))[name] != pid)
        after = state.read(data_dir)
        assert after.processes[name]["restarts"] == 2
        assert {other: pid for other, pid in pids(after).items() if other != name} == {
            other: pid for other, pid in before.items() if other != name
        }


def test_a_stop_ends_every_process_and_says_so_with_its_code(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        found = ready(process, data_dir)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert not any(lives(pid) for pid in pids(found).values())
        with pytest.raises(Trouble, match="No system runs"):
            state.read(data_dir)


def test_a_stop_in_the_middle_of_the_start_ends_every_process(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        until(lambda: (data_dir / "system.json").exists())
        started = pids(state.read(data_dir))
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert not any(lives(pid) for pid in started.values() if pid)


def test_a_second_system_on_the_same_data_is_refused_and_told_who_is_there(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        ready(process, data_dir)
        second = subprocess.run([sys.executable, SMALL, data_dir, "0"], capture_output=True, text=True)
        assert second.returncode == 1
        assert f"pid {process.pid}" in second.stderr
        assert "turngate down" in second.stderr


def test_a_taken_port_is_named_and_nothing_is_started(data_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        refused = subprocess.run([sys.executable, SMALL, data_dir, str(port)], capture_output=True, text=True)
    assert refused.returncode == 1
    assert f"Port {port} on 127.0.0.1 is taken" in refused.stderr
    assert "--port" in refused.stderr
    assert not (data_dir / "postgres").exists()


def test_an_address_that_is_not_here_is_not_called_taken() -> None:
    assert why_not_free(8100, "192.0.2.1") == "cannot be used: Cannot assign requested address"


@pytest.mark.parametrize("port", ["65536", "-1"])
def test_a_number_that_is_no_port_is_wrong_use(port: str, data_dir: Path) -> None:
    assert up("--data", str(data_dir), "--port", port).returncode == 2


@pytest.mark.parametrize("detach", [[], ["--detach"]])
def test_data_that_cannot_be_kept_there_is_a_sentence_not_a_traceback(detach: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = up("--data", str(tmp_path / "file"), "--port", "0", *detach)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"{tmp_path}/file cannot be used: ")
    assert len(refused.stderr.splitlines()) == 1


def up(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "turngate", "up", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_what_is_secret_is_readable_by_nobody_else(data_dir: Path) -> None:
    with supervisor(data_dir) as process:
        ready(process, data_dir)
        for private in ("passwords.json", "system.json", "nats/nats.conf", "issuer/private.pem"):
            assert (data_dir / private).stat().st_mode & 0o077 == 0, private
