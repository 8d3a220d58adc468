"""The other systems that hear a tenant's facts: their names, tenants and public keys. Their seeds are nowhere here."""

import json
from dataclasses import asdict
from pathlib import Path

from contracts.subjects import BadToken, token

from turngate.broker import Subscriber
from turngate.embedded.passwords import write_private
from turngate.embedded.trouble import Trouble


class Subscribers:
    """Those of one system, in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> list[Subscriber]:
        return [Subscriber(**one) for one in json.loads(self._file.read_text())] if self._file.exists() else []

    def named(self, name: str) -> Subscriber:
        for one in self.all():
            if one.name == name:
                return one
        raise Trouble(f"There is no subscriber {name!r}. Nothing was changed; `turngate subscriber list` shows them.")

    def add(self, one: Subscriber) -> None:
        """Raises Trouble where the name is taken, or is none."""
        try:
            token(one.name)
        except BadToken as error:
            raise Trouble(f"{error} Nothing was changed.") from None
        if any(known.name == one.name for known in self.all()):
            raise Trouble(
                f"There is a subscriber {one.name!r} already; nothing was changed. Its seed is kept nowhere: for a new "
                f"one, `turngate subscriber remove {one.name}`, and add it again."
            )
        self._write([*self.all(), one])

    def remove(self, name: str) -> None:
        self._write([one for one in self.all() if one.name != name])

    def _write(self, all_of_them: list[Subscriber]) -> None:
        write_private(self._file, json.dumps([asdict(one) for one in all_of_them], indent=2) + "\n")
