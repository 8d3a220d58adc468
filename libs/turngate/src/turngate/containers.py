"""Servers in containers, for tests on a machine where the wheels' servers do not run but a container engine does."""

import importlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

POSTGRES_IMAGE = "pgvector/pgvector:pg18"
NATS_IMAGE = "nats:2.15"
CLIENT = 4222


def available() -> bool:
    """Whether testcontainers is installed; whether an engine answers shows when it is used."""
    return importlib.util.find_spec("testcontainers") is not None


@contextmanager
def postgres() -> Iterator[str]:
    """A superuser's DSN."""
    module: Any = importlib.import_module("testcontainers.postgres")
    with module.PostgresContainer(POSTGRES_IMAGE, username="postgres", driver=None) as container:
        yield container.get_connection_url()


@contextmanager
def nats() -> Iterator[str]:
    """The URL of a server with JetStream that asks nobody for a password."""
    core: Any = importlib.import_module("testcontainers.core.container")
    waiting: Any = importlib.import_module("testcontainers.core.waiting_utils")
    container = core.DockerContainer(NATS_IMAGE).with_command("--jetstream").with_exposed_ports(CLIENT)
    with container:
        waiting.wait_for_logs(container, "Server is ready")
        yield f"nats://{container.get_container_host_ip()}:{container.get_exposed_port(CLIENT)}"
