"""What a running system says of itself in `system.json`: where it is reached, and its processes."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit

from turngate.embedded import hold
from turngate.embedded.passwords import write_private
from turngate.embedded.trouble import Trouble

FILE, PASSWORD_FILE = "system.json", "pgpass"


@dataclass
class State:
    """`ready` once everything answers. NATS and Postgres URLs carry the set-up's credentials: the file is private."""

    pid: int
    data: str
    url: str
    nats_url: str
    postgres_url: str
    issuer_url: str | None
    model: str
    ready: bool = False
    processes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def write(self) -> None:
        write_private(Path(self.data) / FILE, json.dumps(asdict(self), indent=2) + "\n")

    def write_password_file(self) -> None:
        """Writes the Postgres password where libpq finds it, for a URL that does not carry it.

        Source: https://www.postgresql.org/docs/current/libpq-pgpass.html
        """
        url = urlsplit(self.postgres_url)
        secrets = (unquote(part or "") for part in (url.username, url.password))
        user, password = (part.replace("\\", r"\\").replace(":", r"\:") for part in secrets)
        write_private(self._password_file, f"{url.hostname}:{url.port}:*:{user}:{password}\n")

    def urls_without_passwords(self) -> dict[str, str]:
        """The servers' URLs for everybody's eyes. The Postgres one works as it is for the owner of the data directory;
        for NATS, `nats/setup` in the directory's passwords.json is the password of the user `setup`."""
        postgres, nats = urlsplit(self.postgres_url), urlsplit(self.nats_url)
        return {
            "postgres_url": urlunsplit(
                postgres._replace(
                    netloc=f"{postgres.username}@{postgres.hostname}:{postgres.port}",
                    query=urlencode({"passfile": self._password_file}),
                )
            ),
            "nats_url": urlunsplit(nats._replace(netloc=f"{nats.hostname}:{nats.port}")),
        }

    @property
    def _password_file(self) -> Path:
        return Path(self.data) / PASSWORD_FILE


def read(data: Path) -> State:
    """The state of the system that runs on the directory. Raises Trouble where none does."""
    pid = hold.holder(data)
    if pid is not None:
        try:
            state = State(**json.loads((data / FILE).read_text()))
            if state.pid == pid:
                return state
        except PermissionError:
            raise Trouble(f"The system on {data} is another user's: only they, or root, may ask it.") from None
        except (OSError, ValueError, TypeError):
            pass  # being written for the first time
        raise Trouble(f"The system on {data} is only just starting. Ask again in a moment.")
    raise Trouble(f"No system runs on {data}. Start one with `turngate up --data {data}`.")
