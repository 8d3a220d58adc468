"""What a running system says of itself in `system.json`: where it is reached, and its processes."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from turngate.embedded import hold
from turngate.embedded.passwords import write_private
from turngate.embedded.trouble import Trouble

FILE = "system.json"


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
