"""The system that is evaluated: a fresh one of our own, or one that runs already."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from turngate.api import Api
from turngate.embedded.trouble import Trouble
from turngate.running import RunningSystem, temporary_system

People = Callable[[str], Api]
"""The gateway as a person of the tenant sees it."""


@contextmanager
def people(tenant: str, data: Path | None, url: str | None) -> Iterator[People]:
    """Whoever is asked for, on the system that is meant: a fresh one unless `data` or `url` names one.

    For a `url` the tokens come from the environment: TURNGATE_TOKEN_ALEX for alex, and so on.
    """
    if url is not None:
        yield lambda who: Api(url, _token(who))
    elif data is not None:
        system = RunningSystem(data)
        yield lambda who: system.api(who, tenant)
    else:
        with temporary_system() as system:
            yield lambda who: system.api(who, tenant)


def _token(who: str) -> str:
    name = f"TURNGATE_TOKEN_{who.upper()}"
    token = os.environ.get(name)
    if not token:
        raise Trouble(f"Set {name} to a token of {who}'s. Nothing was started.")
    return token
