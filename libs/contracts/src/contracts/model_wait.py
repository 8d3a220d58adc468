"""What a run that waits for its model says of it: no fact, but sent while it lasts, and forgotten."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from contracts.parts import Part

SENT_EVERY = 3.0  # seconds, while it lasts
# Seconds without a word of it after which it is over: whoever waited may have died.
KEPT_FOR = 4 * SENT_EVERY


class ModelWait(Part):
    """Since when a run waits for its model, and for which request of its step. waiting: nothing has come of it yet.
    away: the last request failed, and `status` says in a word how: `529`, `no connection`."""

    state: Literal["waiting", "away"]
    since: AwareDatetime
    attempt: Annotated[int, Field(ge=1, le=2**31)]
    status: Annotated[str, Field(max_length=64)] | None = None


def in_words(wait: ModelWait, since: str) -> str:
    """For a person; `since` is the time as they read it."""
    if wait.state == "away":
        return f"The model is away ({wait.status or 'no answer'}) since {since}, attempt {wait.attempt}"
    return f"Waiting for the model since {since}, attempt {wait.attempt}"


def utc(at: datetime) -> str:
    """A time of day for whoever's zone is not known."""
    return f"{at:%H:%M:%S} UTC"
