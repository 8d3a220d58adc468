"""Containers as the last resort: only tried where an engine answers."""

import shutil
import subprocess

import psycopg
import pytest
from turngate import containers


def engine_answers() -> bool:
    docker = shutil.which("docker")
    return docker is not None and subprocess.run([docker, "info"], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.skipif(not containers.available(), reason="testcontainers is not installed"),
    pytest.mark.skipif(not engine_answers(), reason="no container engine answers here"),
]


def test_a_contained_postgres_knows_the_vector_type() -> None:
    with containers.postgres() as dsn, psycopg.connect(dsn) as connection:
        connection.execute("create extension vector")


def test_a_contained_nats_has_a_url() -> None:
    with containers.nats() as url:
        assert url.startswith("nats://")
