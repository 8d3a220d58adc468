"""The subscribers as the embedded broker is told of them when it starts, before anybody can ask it who they are."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from turngate.broker import Subscriber
from turngate.embedded.passwords import write_private


class Subscribers:
    """Those of one system, in a file: names, tenants and public keys. Their seeds are nowhere here."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> list[Subscriber]:
        return [Subscriber(**one) for one in json.loads(self._file.read_text())] if self._file.exists() else []

    def are(self, all_of_them: Iterable[Subscriber]) -> None:
        write_private(self._file, json.dumps([asdict(one) for one in all_of_them], indent=2) + "\n")
