"""Cursors of lists: opaque to the caller, the last row's time and name to us."""

import base64
import re
from datetime import UTC, datetime

from gateway.problems import Problem

LARGEST = 200
LONGEST_CURSOR = 200
# Times beyond these are taken for them: what is computed from them stays a time, and no row has one.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
Place = tuple[datetime, str]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")


def write(place: Place) -> str:
    text = f"{place[0].isoformat()} {place[1]}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str | None) -> Place | None:
    """Raises a 400 for what was not written here."""
    if not cursor:
        return None
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        at, _, name = text.partition(" ")
        time = datetime.fromisoformat(at)
    except ValueError as error:
        raise _not_ours() from error
    if time.tzinfo is None or not _NAME.fullmatch(name):
        raise _not_ours()
    return within_range(time), name


def within_range(time: datetime) -> datetime:
    """The time, or the earliest or latest that there is in lists."""
    return min(max(time, EARLIEST), LATEST)


def _not_ours() -> Problem:
    return Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.")
