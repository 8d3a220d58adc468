"""Cursors of lists: opaque to the caller, the last row's time and name to us."""

import base64
import binascii
import json
from datetime import datetime

from gateway.problems import Problem

LARGEST = 200
Place = tuple[datetime, str]


def write(place: Place) -> str:
    text = json.dumps([place[0].isoformat(), place[1]])
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read(cursor: str | None) -> Place | None:
    """Raises a 400 for what was not written here."""
    if not cursor:
        return None
    try:
        at, name = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        place = (datetime.fromisoformat(at), str(name))
    except (binascii.Error, ValueError, TypeError) as error:
        raise Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.") from error
    if place[0].tzinfo is None:
        raise Problem(400, "No such page", "The cursor is not one of ours. Leave it out to begin again.")
    return place
