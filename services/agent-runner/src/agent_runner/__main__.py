"""Runs the agent-runner: `python -m agent_runner`."""

import psycopg
from contracts import service

from agent_runner import app
from agent_runner.domain import READS
from agent_runner.settings import Settings

if __name__ == "__main__":
    service.run("agent-runner", Settings(), app.start, reads=READS, outages=(psycopg.OperationalError,))
