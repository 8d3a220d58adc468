"""PostgreSQL from the wheel, wherever the data and the wheel lie."""

import importlib.util
import os
import shutil
import signal
from pathlib import Path

import psycopg
import pytest
from turngate.embedded import account, binaries, postgres
from turngate.embedded.child import start, stop
from turngate.embedded.ports import free_port, is_free
from turngate.embedded.postgres import Postgres
from turngate.embedded.trouble import Trouble

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as somebody else")


def answers(server: Postgres) -> bool:
    child = server.child()
    process = start(child)
    try:
        with psycopg.connect(server.dsn()) as connection:
            return connection.execute("select 1").fetchone() == (1,)
    finally:
        stop(child, process)


def test_it_asks_for_the_password_over_tcp(data_dir: Path) -> None:
    server = Postgres(data_dir, free_port(), "right", durable=False)
    child = server.child()
    process = start(child)
    try:
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.dsn(password="wrong"))
    finally:
        stop(child, process)


@pytest.mark.parametrize("carrier", binaries.CARRIERS)
def test_every_carrier_that_is_installed_brings_a_server_with_vectors(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, carrier: str
) -> None:
    if importlib.util.find_spec(carrier) is None:
        pytest.skip(f"{carrier} is not installed")
    monkeypatch.setattr(binaries, "CARRIERS", (carrier,))
    server = Postgres(data_dir, free_port(), "secret", durable=False)
    child = server.child()
    process = start(child)
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("create extension vector")
            assert connection.execute("select lower('ÄÖ')").fetchone() == ("äö",)
    finally:
        stop(child, process)


def test_a_lost_password_is_said_at_once_and_leaves_no_server_behind(data_dir: Path) -> None:
    port = free_port()
    assert answers(Postgres(data_dir, port, "right", durable=False))
    with pytest.raises(Trouble, match="has another password"):
        start(Postgres(data_dir, port, "wrong", durable=False).child())
    assert is_free(port)


def test_a_cluster_left_half_made_is_made_anew(data_dir: Path) -> None:
    server = Postgres(data_dir, free_port(), "secret", durable=False)
    (server.home / "cluster.unfinished").mkdir(parents=True)
    (server.home / "cluster.unfinished" / "PG_VERSION").write_text("18\n")
    assert answers(server)


def test_a_killed_server_starts_again_on_the_same_cluster(data_dir: Path) -> None:
    server = Postgres(data_dir, free_port(), "secret", durable=False)
    process = start(server.child())
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert answers(server)


@as_root
def test_data_below_a_closed_directory_is_kept_where_the_unprivileged_account_can_reach_it(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "ELSEWHERE", data_dir / "elsewhere")
    closed = data_dir / "root-only" / "data"
    closed.mkdir(parents=True)
    closed.parent.chmod(0o700)

    server = Postgres(closed, free_port(), "secret", durable=False)
    assert answers(server)
    assert server.home.is_relative_to(data_dir / "elsewhere")
    again = Postgres(closed, server.port, "secret", durable=False)
    assert again.home == server.home
    assert answers(again)


@as_root
def test_programs_below_a_closed_directory_are_copied_to_where_they_can_be_run(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = binaries.postgres_directory()
    closed = data_dir / "root-only"
    for carried in (installed.parent, installed.parent.with_name(f"{installed.parent.name}.libs")):
        if carried.exists():
            shutil.copytree(carried, closed / carried.name)
    closed.chmod(0o700)
    (closed / installed.parent.name / "pginstall" / "bin").chmod(0o700)
    monkeypatch.setattr(postgres, "postgres_directory", lambda: closed / installed.parent.name / "pginstall")

    server = Postgres(data_dir, free_port(), "secret", durable=False)
    assert answers(server)
    assert not server.programs.is_relative_to(closed)
