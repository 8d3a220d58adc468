"""The rows of a run's page: what one says, and the turn that it may hold."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.events import Event
from contracts.parts import CallQuote


@dataclass(frozen=True, slots=True)
class Line:
    """One call of a turn: proposed, then quoted, then with its result, and in a word or two what that is."""

    call_id: str
    tool: str
    arguments: dict[str, Any]
    quote: CallQuote | None = None
    result: str | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """What became of a turn."""

    tone: str
    icon: str
    word: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TurnBox:
    number: int
    words: str
    lines: tuple[Line, ...]
    strips: tuple[Strip, ...] = ()
    reads_only: bool = False

    @property
    def running(self) -> bool:
        return any(line.result is None for line in self.lines)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the trajectory. `opened` and `seq` are the sequences of the facts that opened and last changed it.

    day: it says that the next rows are of another day.
    """

    id: str
    opened: int
    seq: int
    at: datetime
    icon: str
    title: str
    detail: str = ""
    quoted: str = ""
    says: str = ""
    meta: str = ""
    amount: str = ""
    tone: str = ""
    turn: TurnBox | None = None
    day: bool = False


def row(event: Event, icon: str, title: str, *, part: str = "", **more: Any) -> Row:
    number = event.sequence
    return Row(f"e-{number}{part and '-' + part}", number, number, event.time, icon, title, **more)
