"""`turngate setup` on servers that somebody else runs, as in the composed system."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import nats
import psycopg
from turngate.commands.operations import ROLE_PASSWORDS
from turngate.embedded.child import start, stop
from turngate.embedded.ports import free_port
from turngate.embedded.postgres import Postgres
from turngate.setup import in_database
from turngate.testing import NatsAccess

SETUP = [sys.executable, "-m", "turngate", "setup"]


def test_without_its_settings_it_names_what_is_missing_and_changes_nothing() -> None:
    done = subprocess.run(SETUP, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 1
    assert "TURNGATE_SETUP_POSTGRES_DSN" in done.stderr
    assert "TURNGATE_TOOLS_PASSWORD" in done.stderr


def test_it_makes_everything_and_may_be_repeated(data_dir: Path, fresh_nats: NatsAccess) -> None:
    server = Postgres(data_dir, free_port(), "super/secret@", durable=False)
    child = server.child()
    process = start(child)
    try:
        user, password = fresh_nats.user("setup")
        superuser = in_database(
            f"host=127.0.0.1 port={server.port} dbname=postgres", "postgres", "postgres", "super/secret@"
        )
        env = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ},
            "TURNGATE_SETUP_POSTGRES_DSN": superuser,
            "TURNGATE_NATS_URL": fresh_nats.url,
            "TURNGATE_NATS_USER": user,
            "TURNGATE_NATS_PASSWORD": password,
            **{variable: f"of {role}!" for role, variable in ROLE_PASSWORDS.items()},
        }
        for _ in range(2):
            done = subprocess.run(SETUP, env=env, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
        for role in ROLE_PASSWORDS:
            with psycopg.connect(in_database(superuser, "turngate", role, f"of {role}!")) as connection:
                assert connection.execute("select current_user").fetchone() == (role,)
        assert asyncio.run(streams(fresh_nats)) >= {"RUNS", "TIMERS", "DEAD"}
    finally:
        stop(child, process)


async def streams(access: NatsAccess) -> set[str]:
    user, password = access.user("setup")
    client = await nats.connect(access.url, user=user, password=password)
    found = {str(stream.config.name) for stream in await client.jetstream().streams_info()}
    await client.close()
    return found
