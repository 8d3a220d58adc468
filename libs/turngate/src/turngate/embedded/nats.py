"""nats-server from its wheel, with JetStream, and an account and a user a service."""

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from contracts import nkeys

from turngate import broker
from turngate.broker import SERVICES, Json
from turngate.embedded import environment
from turngate.embedded.binaries import nats_server
from turngate.embedded.child import Child
from turngate.embedded.passwords import Passwords, write_private
from turngate.embedded.subscribers import Subscribers

SETUP, READER = broker.SETUP, broker.READER_USER


class Nats:
    """A server under `data/nats`. Without a port it takes a free one and keeps it from then on.

    passwords_too: the services' users may enter by a password as well. For servers that tests throw away.
    """

    def __init__(
        self,
        data: Path,
        passwords: Passwords,
        port: int | None = None,
        *,
        tenants: Iterable[str] = (),
        durable: bool = True,
        passwords_too: bool = False,
        tls: Json | None = None,
    ) -> None:
        self.data, self.passwords, self.port, self.durable = data, passwords, port, durable
        self.home = data / "nats"
        self.subscribers = Subscribers(data / "subscribers.json")
        self._tenants, self._passwords_too, self._tls = tuple(tenants), passwords_too, tls

    @property
    def url(self) -> str:
        return f"{'tls' if self._tls else 'nats'}://127.0.0.1:{self.port}"

    def password(self, user: str) -> str:
        return self.passwords[f"nats/{user}"]

    def seed(self, service: str) -> str:
        """What the service proves with who it is."""
        return self.passwords.seed(f"nkey/{service}")

    def child(self) -> Child:
        self.configure()
        return Child(
            name="nats",
            argv=(str(nats_server()), "--config", str(self.configuration)),
            log=self.data / "logs" / "nats.log",
            ready=self.answers,
            env=environment.base(),
        )

    @property
    def configuration(self) -> Path:
        return self.home / "nats.conf"

    def configure(self) -> None:
        """Writes what the server reads when it starts, and when it is told to read it again."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(self.configuration, json.dumps(self._configuration(), indent=2) + "\n")

    def read_again(self, pid: int) -> None:
        """Has the running server take the subscribers of now. Nobody is disconnected but who may no longer enter."""
        self._tenants = tuple(self.known_tenants())
        self.configure()
        os.kill(pid, signal.SIGHUP)

    def known_tenants(self) -> list[str]:
        """Those that the server was started with: only they can have subscribers until it is started again."""
        accounts = json.loads(self.configuration.read_text())["accounts"]
        return [name.removeprefix(broker.SUBSCRIBERS) for name in accounts if name.startswith(broker.SUBSCRIBERS)]

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
            "jetstream": {"store_dir": str(self.home / "store"), "max_file_store": broker.MAX_FILE_STORE, **sync},
            "system_account": broker.SYSTEM,
            "accounts": {
                broker.SYSTEM: {"users": self._logins(broker.SUPERVISOR)},
                **broker.accounts(self._logins),
                **broker.accounts_of_subscribers(self._tenants, self.subscribers.all()),
            },
            **ports,
            **({"tls": self._tls} if self._tls else {}),
        }

    def _logins(self, user: str) -> list[Json]:
        by_key = [{"nkey": nkeys.public_key(self.seed(user))}] if user in SERVICES else []
        by_password = user not in SERVICES or self._passwords_too
        return [*by_key, *([{"user": user, "password": self.password(user)}] if by_password else [])]

    def _port_that_it_took(self) -> int | None:
        for file in self.home.glob("nats-server_*.ports"):
            with contextlib.suppress(ValueError, KeyError, IndexError):
                return int(json.loads(file.read_text())["nats"][0].rsplit(":", 1)[1])
        return None
