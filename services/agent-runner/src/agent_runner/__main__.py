"""`python -m agent_runner` runs the service; `… erase` is what `turngate erase` needs of it, about runs on stdin."""

import json
import sys

import psycopg
from contracts import service

from agent_runner import app
from agent_runner.run import READS
from agent_runner.settings import Settings


def main(arguments: list[str]) -> None:
    match arguments:
        case []:
            service.run("agent-runner", Settings(), app.start, reads=READS, outages=(psycopg.OperationalError,))
        case ["erase"]:
            from contracts.settings import DatabaseSettings

            from agent_runner.erasure import Runs, erase

            asked = Runs.model_validate_json(sys.stdin.read())
            print(json.dumps({"answers": erase(DatabaseSettings().postgres_dsn.get_secret_value(), asked)}))
        case _:
            sys.exit("Use `python -m agent_runner` or `python -m agent_runner erase`.")


if __name__ == "__main__":
    main(sys.argv[1:])
