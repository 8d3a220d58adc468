"""Agent-runners that are killed in the middle: another takes over, and no recorded answer is paid for twice."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from agent_runner.settings import Settings
from contracts.facts import TurnExecuted, TurnProposed
from contracts.setup import create_streams
from standin.director import Director
from turngate.testing import Database, NatsAccess

from .house import LOOK, REPLY, House, end_of, lines, running


@pytest.fixture
async def soon(told: Settings, fresh_nats: NatsAccess) -> Settings:
    """For a runner whose death is noticed after a second."""
    await create_streams(fresh_nats.url, *fresh_nats.user("setup"), ack_wait=1)
    return told.model_copy(update={"ack_wait": 1.0})


@asynccontextmanager
async def process(told: Settings, stops: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """An agent-runner as a process of its own."""
    assert told.nats_password is not None
    environment = {
        **os.environ,
        "TURNGATE_NATS_URL": told.nats_url,
        "TURNGATE_NATS_USER": told.nats_user or "",
        "TURNGATE_NATS_PASSWORD": told.nats_password.get_secret_value(),
        "TURNGATE_POSTGRES_DSN": told.postgres_dsn.get_secret_value(),
        "TURNGATE_MODEL_API_KEY": "test",
        "TURNGATE_MODEL_BASE_URL": told.model_base_url or "",
        "TURNGATE_ISSUERS": "[]",
        "TURNGATE_ACK_WAIT": str(told.ack_wait),
        "TURNGATE_STOPS_DIR": str(stops),
    }
    child = await asyncio.create_subprocess_exec(sys.executable, "-m", "agent_runner", env=environment)
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


@pytest.mark.parametrize(
    ("point", "asked"),
    [
        ("after-ledger", 1),
        ("after-answer", 2),
        pytest.param("before-ledger", 1, marks=pytest.mark.slow),
        pytest.param("before-answer", 1, marks=pytest.mark.slow),
        pytest.param("after-append", 1, marks=pytest.mark.slow),
        pytest.param("before-ack", 1, marks=pytest.mark.slow),
        pytest.param("after-ack", 1, marks=pytest.mark.slow),
    ],
)
async def test_a_runner_that_is_killed_is_taken_over_and_a_recorded_answer_is_not_paid_twice(
    home: House,
    soon: Settings,
    director: Director,
    fresh_database: Database,
    tmp_path: Path,
    point: str,
    asked: int,
) -> None:
    await director.script("TCK-50", [LOOK, REPLY])
    armed = tmp_path / f"agent-runner.{point}"
    armed.write_text("1")
    async with process(soon, tmp_path) as one:
        key = await home.starts("TCK-50-1")
        async with asyncio.timeout(60):
            assert await one.wait() == -9
    async with running(soon):
        events = await home.ended(key)
    assert sum(isinstance(event.fact, TurnProposed) for event in events) == 1
    assert sum(isinstance(event.fact, TurnExecuted) for event in events) == 1
    assert (end_of(events).status, end_of(events).steps) == ("resolved", 2)
    assert await director.asked("TCK-50") == {0: asked, 1: 1}
    first_line = lines(fresh_database)[0]
    assert (first_line["uncertain_micro_usd"] > 0) == (point in ("before-answer", "after-answer"))
    if point == "after-ledger":
        assert first_line["saved_micro_usd"] == first_line["spent_micro_usd"]
