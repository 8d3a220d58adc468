"""The passwords and seeds of one data directory: random, made once, readable by nobody else."""

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from contracts import nkeys


class Passwords:
    """`passwords["nats/policy"]` is the same at every start."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._known: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}

    def __getitem__(self, name: str) -> str:
        return self._made(name, lambda: secrets.token_urlsafe(24))

    def seed(self, name: str) -> str:
        """An NKey seed, likewise."""
        return self._made(name, nkeys.new_seed)

    def _made(self, name: str, make: Callable[[], str]) -> str:
        if name not in self._known:
            self._known[name] = make()
            write_private(self.file, json.dumps(self._known, indent=2) + "\n")
        return self._known[name]


def write_private(file: Path, text: str) -> None:
    """Replaces the file by one that only its owner can read; never half written."""
    beside = file.with_name(f"{file.name}.new")
    beside.unlink(missing_ok=True)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
        output.write(text)
    beside.replace(file)
