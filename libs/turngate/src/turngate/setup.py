"""Set-up of a system, embedded or composed: roles, database, schemas, streams, and the demo's rows. Safe to repeat."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from turngate import databases, migrations
from turngate.embedded.trouble import Trouble

Password = Callable[[str], str]
# What each seeds as: the shop's own role may not add customers or orders, so its owner does.
SEEDED = {"tools-shop": databases.OWNER, "gateway": "turngate_gateway"}


def prepare_postgres(superuser_dsn: str, password: Password) -> None:
    """Roles, database, schemas, migrations. `password(role)` is the one that the role shall have."""
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        databases.create_roles(connection, password)
        databases.create_database(connection)
    with psycopg.connect(in_database(superuser_dsn, databases.DATABASE), autocommit=True) as connection:
        databases.create_schemas(connection)
    owner = in_database(superuser_dsn, databases.DATABASE, databases.OWNER, password(databases.OWNER))
    migrations.migrate_all(owner)


def prepare_nats(url: str, user: str | None, password: str | None, replicas: int = 1) -> None:
    """Streams and consumers. They wait for workers as long as the services are told (TURNGATE_ACK_WAIT)."""
    from contracts import setup
    from contracts.settings import ServiceSettings

    ack_wait = ServiceSettings().ack_wait
    in_thread(setup.create_streams(url, user, password, replicas=replicas, ack_wait=ack_wait))


def seed(environments: Mapping[str, Mapping[str, str]]) -> None:
    """Runs `python -m <package> seed` of these services, all at once, each in its own environment."""
    running = {
        service: subprocess.Popen(  # noqa: S603 - our own modules
            [sys.executable, "-m", service.replace("-", "_"), "seed"],
            env=dict(environments[service]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for service in environments
    }
    for service, process in running.items():
        output, _ = process.communicate()
        if process.returncode:
            raise Trouble(f"{service} could not write the demo's rows (code {process.returncode}):\n{output[-3000:]}")


def in_database(dsn: str, database: str, user: str | None = None, password: str | None = None) -> str:
    """The DSN as a URL, for another database and another role."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    host, port = parts.pop("host", "127.0.0.1"), parts.pop("port", "5432")
    login = [user, password] if user else [parts.get("user", ""), parts.get("password", "")]
    rest = {name: value for name, value in parts.items() if name not in ("user", "password", "dbname")}
    credentials = ":".join(quote(str(part), safe="") for part in login)
    return f"postgresql://{credentials}@{host}:{port}/{quote(database, safe='')}" + (
        f"?{urlencode(rest)}" if rest else ""
    )


def in_thread(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end on a loop of its own, whatever loop this thread has."""
    failed: list[BaseException] = []

    def body() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
