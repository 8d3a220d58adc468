"""What a stolen credential is good for: all that its service should not have, tried on a running system.

`python -m tests.attack` starts a system, attacks it, and writes the table of docs/threat-model.md from what came of it.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path

import structlog
from turngate.running import RunningSystem, temporary_system

from .attack_broker import SERVICES, at_the_broker
from .attack_database import in_the_database
from .attempts import BROKER, TABLES, Attempt
from .world import DONE, open_case, refund, turn

PAGE = Path(__file__).parents[1] / "docs" / "threat-model.md"
BEGIN, END = "<!-- the attack: written by `make attack` -->\n", "<!-- end of the attack -->\n"


def attack(system: RunningSystem, run: str) -> list[Attempt]:
    """All of it, with each service's own credentials. `run` is one of acme's, which waits for a person."""
    return [*asyncio.run(at_the_broker(system, run)), *in_the_database(system)]


def table(attempts: list[Attempt]) -> str:
    """Markdown: each kind of attempt with each service's credentials, and what came of it."""
    lines = ["| with the credentials of | " + " | ".join(SERVICES) + " |", "|---|" + "---|" * len(SERVICES)]
    for what in (*BROKER, *TABLES):
        cells = [_cell([attempt for attempt in attempts if (attempt.who, attempt.what) == (who, what)])
                 for who in SERVICES]  # fmt: skip
        lines.append(f"| {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(attempts: list[Attempt]) -> str:
    through = [attempt for attempt in attempts if attempt.refused is None]
    if not attempts:
        return "has no credential"
    return f"**{len(through)} went through**" if through else "all refused"


def written(page: str, attempts: list[Attempt]) -> str:
    """The page with the table of these attempts in its place."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + table(attempts) + END + rest.split(END)[1]


def a_held_run(system: RunningSystem) -> str:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    run.holds()
    return run.run


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with temporary_system() as own:
        tried = attack(own, a_held_run(own))
    PAGE.write_text(written(PAGE.read_text(), tried))
    went = [attempt for attempt in tried if attempt.refused is None]
    print(json.dumps({"tried": len(tried), "went through": [f"{one.who}: {one.operation}" for one in went]}, indent=2))
    sys.exit(1 if went else 0)
