"""Ports that a system chose once and keeps: services find NATS and Postgres where they were after a restart."""

import errno
import json
import random
import socket
from pathlib import Path

from turngate.embedded.trouble import Trouble

# Below what kernels hand to outgoing connections, so that nobody's client (least of all our own, reconnecting) sits on
# a port while its server is away.
CHOICE = range(20_000, 32_000)


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    return why_not_free(port, host) is None


def why_not_free(port: int, host: str) -> str | None:
    """Why nobody can listen there, None if one can."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        return "is taken by another program" if taken else f"cannot be used: {error.strerror}"
    return None


def free_port(avoid: frozenset[int] = frozenset()) -> int:
    for _ in range(1000):
        port = random.choice(CHOICE)  # noqa: S311 - a port is no secret
        if port not in avoid and is_free(port):
            return port
    raise Trouble("No free port was found between 20000 and 32000 on 127.0.0.1. Nothing was started.")


class Ports:
    """The ports of one data directory, by name, in a file. One that is taken by now when it is first asked for is
    replaced by another; from then on it stays while this object lives. No two of them are equal, and none is one that
    `another` gave or that is `meant` for something else."""

    def __init__(self, file: Path, *, running: bool = False, meant: int | None = None) -> None:
        self.file = file
        self._running = running
        self._given = {meant} if meant else set()
        self._known: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
        self._chosen: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        if name not in self._chosen:
            port = self._known.get(name)
            if port is None or not (self._running or (port not in self._given and is_free(port))):
                port = self.another()
                self._known[name] = port
                self.file.write_text(json.dumps(self._known, indent=2) + "\n")
            self._chosen[name] = port
        return self._chosen[name]

    def another(self) -> int:
        """A free port that is none of these, and given only once: nobody listens there yet."""
        port = free_port(avoid=frozenset(self._known.values()) | self._given)
        self._given.add(port)
        return port
