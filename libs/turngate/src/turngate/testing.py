"""What tests are given: a nats-server with its streams and users, and migrated PostgreSQL databases."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from contracts.subjects import DEAD, KEYS, RUNS, TENANTS, TIMERS

from turngate import containers, databases, migrations
from turngate.broker import SERVICES
from turngate.embedded import binaries
from turngate.embedded.child import start, stop
from turngate.embedded.nats import READER, SETUP, Nats
from turngate.embedded.passwords import Passwords
from turngate.embedded.ports import free_port
from turngate.embedded.postgres import Postgres
from turngate.embedded.trouble import Trouble
from turngate.running import reachable_directory
from turngate.setup import in_database, in_thread, prepare_nats

TEMPLATE = "turngate_template"


@dataclass(frozen=True)
class NatsAccess:
    """A server with the streams of set-up. Each service may enter by its NKey as ever, and here by a password too:
    `user("policy")` is the name and the password of that service's user, `seed("policy")` its seed."""

    url: str
    passwords: dict[str, str]
    seeds: dict[str, str] = field(default_factory=dict)

    def user(self, name: str) -> tuple[str, str]:
        return name, self.passwords[name]

    def seed(self, service: str) -> str:
        return self.seeds[service]


def access_to(server: Nats) -> NatsAccess:
    return NatsAccess(
        server.url,
        {user: server.password(user) for user in (SETUP, READER, *SERVICES)},
        {service: server.seed(service) for service in SERVICES},
    )


@dataclass(frozen=True)
class OneUser(NatsAccess):
    """A server that was given, with one user for all."""

    name: str = ""
    password: str = ""

    def user(self, name: str) -> tuple[str, str]:
        return self.name, self.password


@dataclass(frozen=True)
class Database:
    """A migrated database: the DSNs of the superuser, the owner, and the services' own roles."""

    superuser: str
    owner: str
    runner: str
    tools: str
    gateway: str

    def of(self, service: str) -> str:
        return {"agent-runner": self.runner, "tools-shop": self.tools, "gateway": self.gateway}[service]


@dataclass(frozen=True)
class Cluster:
    """A PostgreSQL with a migrated template in it, and the passwords of our roles."""

    superuser: str
    passwords: Passwords

    @contextmanager
    def database(self) -> Iterator[Database]:
        """A migrated database of the caller's own."""
        name = f"turngate_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            databases.create_database(connection, name, TEMPLATE)
        try:
            roles = (databases.OWNER, *(keep.role for keep in databases.KEEPS))
            yield Database(in_database(self.superuser, name), *(self.dsn(name, role) for role in roles))
        finally:
            with psycopg.connect(self.superuser, autocommit=True) as connection:
                connection.execute(f"drop database if exists {name} with (force)".encode())

    def dsn(self, database: str, role: str) -> str:
        return in_database(self.superuser, database, role, self.passwords[role])

    def make_template(self) -> None:
        with psycopg.connect(self.superuser, autocommit=True) as connection:
            databases.create_roles(connection, self.passwords.__getitem__)
            connection.execute(f"drop database if exists {TEMPLATE} with (force)".encode())
            databases.create_database(connection, TEMPLATE)
        with psycopg.connect(in_database(self.superuser, TEMPLATE), autocommit=True) as connection:
            databases.create_schemas(connection)
        migrations.migrate_all(self.dsn(TEMPLATE, databases.OWNER))


def directory() -> AbstractContextManager[Path]:
    """For an embedded system or server: pytest's own directories are closed to PostgreSQL where we are root."""
    return reachable_directory("turngate-test-")


@contextmanager
def nats_server(directory: Path) -> Iterator[NatsAccess]:
    """NATS_URL where set (its streams are removed and made anew), else the embedded server, else a container."""
    if url := os.environ.get("NATS_URL"):
        yield _emptied(
            OneUser(url, {}, name=os.environ.get("NATS_USER", ""), password=os.environ.get("NATS_PASSWORD", ""))
        )
        return
    if _only_containers():
        with containers.nats() as url:
            yield _emptied(OneUser(url, {}))
        return
    passwords = Passwords(directory / "nats-passwords.json")
    server = Nats(directory, passwords, durable=False, passwords_too=True)
    child = server.child()
    process = start(child)
    try:
        access = access_to(server)
        _create_streams(access)
        yield access
    finally:
        stop(child, process)


class Server:
    """A nats-server with a fixed port and a store, which a test may kill and start again."""

    def __init__(self, directory: Path) -> None:
        passwords = Passwords(directory / "nats-passwords.json")
        self._nats = Nats(directory, passwords, durable=False, passwords_too=True)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def access(self) -> NatsAccess:
        return access_to(self._nats)

    def start(self) -> None:
        self._process = start(self._nats.child())

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        self.kill()
        self.start()

    def create_streams(self) -> None:
        _create_streams(self.access)


@contextmanager
def postgres_cluster(directory: Path) -> Iterator[Cluster]:
    """POSTGRES_URL where set (a superuser's), else the embedded server, else a container."""
    passwords = Passwords(directory / "postgres-passwords.json")
    if url := os.environ.get("POSTGRES_URL"):
        yield _with_template(Cluster(url, passwords))
        return
    if _only_containers():
        with containers.postgres() as url:
            yield _with_template(Cluster(url, passwords))
        return
    server = Postgres(directory, free_port(), passwords["superuser"], durable=False)
    child = server.child()
    process = start(child)
    try:
        yield _with_template(Cluster(server.dsn(), passwords))
    finally:
        stop(child, process)


def _only_containers() -> bool:
    """Whether the embedded servers are not there, and containers may be."""
    try:
        binaries.postgres_directory(), binaries.nats_server()
    except Trouble:
        return containers.available()
    return False


def _with_template(cluster: Cluster) -> Cluster:
    cluster.make_template()
    return cluster


def _emptied(access: NatsAccess) -> NatsAccess:
    in_thread(_remove_streams(access))
    _create_streams(access)
    return access


def _create_streams(access: NatsAccess) -> None:
    user, password = access.user(SETUP)
    prepare_nats(access.url, user or None, password or None)


async def _remove_streams(access: NatsAccess) -> None:
    import nats

    user, password = access.user(SETUP)
    client = await nats.connect(access.url, user=user or None, password=password or None)
    ours = {RUNS, TENANTS, DEAD, TIMERS, KEYS}
    for stream in await client.jetstream().streams_info():
        if stream.config.name in ours:
            await client.jetstream().delete_stream(str(stream.config.name))
    await client.close()
