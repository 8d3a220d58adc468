"""The agent-runner at work: a real nats-server, a real PostgreSQL, the real SDK, a scripted model."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from agent_runner.settings import Settings
from contracts.events import Event
from contracts.facts import ReplyGiven, RunCancelled, RunEnded, TurnExecuted, TurnProposed
from contracts.parts import Json, Limits
from nats.aio.msg import Msg
from standin.director import Director
from turngate.testing import Database, NatsAccess

from .house import House, house, kinds, running, settings
from .told import ALEX, ticket

LOOK = {"text": "I will look.", "tool_calls": [{"name": "get_order", "input": {"order_reference": "ORD-1"}}]}
REPLY = {"text": "Your parcel is on its way."}


@pytest.fixture
async def home(fresh_nats: NatsAccess) -> AsyncIterator[House]:
    async with house(fresh_nats) as at_home:
        yield at_home


@pytest.fixture
def told(fresh_nats: NatsAccess, fresh_database: Database, standin_url: str) -> Settings:
    return settings(fresh_nats, fresh_database, standin_url)


def lines(database: Database, tenant: str = "acme") -> list[dict[str, Any]]:
    """The ledger, as a service of that tenant sees it."""
    with psycopg.connect(database.runner, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute("select set_config('turngate.tenant', %s, true)", [tenant])
        return connection.execute("select * from ledger.calls order by reserved_at").fetchall()


def end_of(events: list[Event]) -> RunEnded:
    [end] = [event.fact for event in events if isinstance(event.fact, RunEnded)]
    return end


# Working a ticket


async def test_a_ticket_is_worked_from_its_start_to_its_end(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-10", [LOOK, REPLY])
    async with running(told):
        key = await home.starts("TCK-10-1")
        events = await home.ended(key)
    assert kinds(events) == [
        "desk.run-started",
        "agent.turn-proposed",
        "tools.turn-quoted",
        "policy.turn-forwarded",
        "tools.turn-executed",
        "agent.reply-given",
        "agent.run-ended",
    ]
    end = end_of(events)
    assert (end.status, end.steps) == ("resolved", 2)
    first, second = lines(fresh_database)
    assert end.cost_micro_usd == first["spent_micro_usd"] + second["spent_micro_usd"] > 0
    assert first["reserved_micro_usd"] >= first["spent_micro_usd"]
    assert [str(line["cause"]) for line in (first, second)] == [events[0].id, events[4].id]
    assert await director.asked("TCK-10") == {0: 1, 1: 1}


async def test_the_models_words_are_heard_while_it_speaks_and_are_no_facts(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-11", [REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-11-1"))
    assert {subject for subject, _ in home.live} == {"live.acme.TCK-11-1"}
    assert "".join(body.get("text", "") for _, body in home.live) == REPLY["text"]
    assert home.live[-1][1] == {"step": 1, "done": True}
    assert len(events) == 3


async def test_a_longer_run_costs_no_more_reads_of_the_log(home: House, told: Settings, director: Director) -> None:
    read: list[str] = []

    async def asked(message: Msg) -> None:
        if message.reply.startswith("_INBOX_agent-runner"):
            read.append(message.data.decode())

    await home.nc.subscribe("$JS.API.DIRECT.GET.RUNS", cb=asked)
    await director.script("TCK-18", [*([LOOK] * 8), REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-18-1"))
        await home.nothing_in_hand()
    assert len(events) == 1 + 8 * 4 + 2
    # One a turn at most, where the answer to an append and what follows from it come together.
    assert len(read) <= 8, read


async def test_a_looping_agent_is_asked_exactly_twelve_times(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-12", [LOOK], repeat=True)
    async with running(told):
        events = await home.ended(await home.starts("TCK-12-1"))
    end = end_of(events)
    assert (end.status, end.steps) == ("budget_exhausted", 12)
    assert sum((await director.asked("TCK-12")).values()) == 12


async def test_a_run_whose_money_is_gone_ends_before_the_call_that_it_cannot_pay(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-13", [LOOK], repeat=True)
    limits = Limits(max_steps=100, max_cost_micro_usd=60_000)
    async with running(told):
        events = await home.ended(await home.starts("TCK-13-1", limits=limits))
    end = end_of(events)
    assert end.status == "budget_exhausted"
    assert end.cost_micro_usd <= 60_000
    assert 0 < end.steps < 100


async def test_many_runs_go_on_at_once(home: House, told: Settings, director: Director) -> None:
    runs = [f"TCK-2{n:02}-1" for n in range(20)]
    for run in runs:
        await director.script(run.removesuffix("-1"), [{**LOOK, "delay_ms": 30}, REPLY])
    async with running(told), running(told):
        keys = [await home.starts(run) for run in runs]
        ends = [end_of(await home.ended(key)) for key in keys]
    assert {end.status for end in ends} == {"resolved"}
    for run in runs:
        assert await director.asked(run.removesuffix("-1")) == {0: 1, 1: 1}


# Chats, and facts that come while the model speaks


async def test_a_message_while_the_model_speaks_neither_asks_again_nor_gets_lost(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-30", [{**REPLY, "gate": "speak"}, {"text": "And the refund is there."}])
    async with running(told):
        key = await home.starts("TCK-30-1", ticket=ticket(channel="chat"))
        await director.asked("TCK-30", at_least=1)
        await home.customer_says(key, "And my refund?", "m1")
        await director.open("speak")
        events = await home.until(key, ReplyGiven, 2)
    assert kinds(events)[:4] == ["desk.run-started", "desk.customer-said", "agent.reply-given", "agent.reply-given"]
    assert await director.asked("TCK-30") == {0: 1, 1: 1}
    _, second = await director.bodies("TCK-30")
    assert second["messages"][-1]["content"] == [{"type": "text", "text": "And my refund?"}]


async def test_a_customer_who_never_stops_typing_gets_answers_each_paid_once(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-31", [{**REPLY, "delay_ms": 150}], repeat=True)
    limits = Limits(max_steps=100, max_cost_micro_usd=1_000_000)
    async with running(told):
        key = await home.starts("TCK-31-1", ticket=ticket(channel="chat"), limits=limits)
        for n in range(15):
            await home.customer_says(key, f"#{n}", f"m{n}")
            await asyncio.sleep(0.05)  # the customer's own pace
        await home.says(key, RunCancelled(by=ALEX))
        events = await home.ended(key)
    replies = [event for event in events if isinstance(event.fact, ReplyGiven)]
    assert len(replies) >= 2
    assert {count for count in (await director.asked("TCK-31")).values()} == {1}
    assert len({event.cause for event in replies}) == len(replies)


async def test_a_run_that_is_cancelled_while_the_model_speaks_says_no_more_and_the_answer_is_kept(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-32", [{**LOOK, "gate": "cancelled"}])
    async with running(told):
        key = await home.starts("TCK-32-1")
        await director.asked("TCK-32", at_least=1)
        await home.says(key, RunCancelled(by=ALEX))
        await director.open("cancelled")
        after = await home.starts("TCK-33-1")
        await home.until(after, RunEnded)
    assert kinds((await home.history(key)).events) == ["desk.run-started", "desk.run-cancelled"]  # type: ignore[arg-type]
    assert lines(fresh_database)[0]["answer"]["stop_reason"] == "tool_use"


async def test_a_chat_whose_customer_falls_silent_ends(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, standin_url: str, director: Director
) -> None:
    await director.script("TCK-34", [REPLY])
    async with running(settings(fresh_nats, fresh_database, standin_url, chat_idle_s=1)):
        key = await home.starts("TCK-34-1", ticket=ticket(channel="chat"))
        events = await home.ended(key)
    assert end_of(events).status == "resolved"


# What goes wrong


async def test_an_overloaded_model_is_waited_for_and_not_counted(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    busy = {"fault": {"status": 529, "retry_after": 0.01}}
    await director.script("TCK-40", [[busy] * 5 + [REPLY]])
    async with running(told):
        events = await home.ended(await home.starts("TCK-40-1"))
    assert (end_of(events).status, end_of(events).steps) == ("resolved", 1)
    [line] = lines(fresh_database)
    assert line["uncertain_micro_usd"] == 0


async def test_an_answer_that_broke_off_is_asked_for_again_and_counted(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-41", [[{**LOOK, "fault": {"cut": "connection"}}, LOOK], REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-41-1"))
    assert kinds(events)[1:3] == ["agent.answer-unfinished", "agent.turn-proposed"]
    assert end_of(events).steps == 3


async def test_a_refusal_of_the_models_hands_over_to_a_person(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-42", [{"text": "I", "stop_reason": "refusal"}])
    async with running(told):
        events = await home.ended(await home.starts("TCK-42-1"))
    assert (end_of(events).status, end_of(events).steps) == ("escalated", 1)


async def test_without_a_key_a_run_fails_and_says_what_to_set(
    home: House, fresh_nats: NatsAccess, fresh_database: Database
) -> None:
    async with running(settings(fresh_nats, fresh_database, None)):
        end = end_of(await home.ended(await home.starts("TCK-43-1")))
    assert end.status == "failed"
    assert "Set ANTHROPIC_API_KEY" in end.reason


async def test_a_refused_key_fails_the_run_and_appears_in_no_fact(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, standin_url: str
) -> None:
    async with running(settings(fresh_nats, fresh_database, standin_url, model_api_key="invalid-quokka")):
        events = await home.ended(await home.starts("TCK-44-1"))
    assert "Set ANTHROPIC_API_KEY" in end_of(events).reason
    assert not any(b"quokka" in event.payload for event in events)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"profile": "sales"}, "There is no profile 'sales'; there is support."),
        ({"prompt_version": "support-v0"}, "There is no prompt 'support-v0'"),
        ({"model": "gpt-9"}, "prices.yaml"),
    ],
)
async def test_a_run_that_is_set_up_wrong_fails_and_says_how(
    home: House, told: Settings, changes: Json, says: str
) -> None:
    async with running(told):
        end = end_of(await home.ended(await home.starts("TCK-45-1", **changes)))
    assert (end.status, end.steps) == ("failed", 0)
    assert says in end.reason


async def test_an_exception_fails_the_run_and_its_text_stays_in_the_log_file(home: House, told: Settings) -> None:
    home.catalogue = {"tools": "secret-quokka", "version": "1", "digest": "x"}
    async with running(told):
        events = await home.ended(await home.starts("TCK-46-1"))
    assert end_of(events).status == "failed"
    assert f"Reference: {events[0].id[:8]}" in end_of(events).reason
    assert not any(b"quokka" in event.payload or b"indices" in event.payload for event in events)


async def test_a_dead_letter_ends_its_run_without_its_error(home: House, told: Settings, director: Director) -> None:
    home.willing = False
    await director.script("TCK-47", [LOOK])
    async with running(told):
        key = await home.starts("TCK-47-1")
        proposed = (await home.until(key, TurnProposed))[-1]
        letter = {
            "service": "tools-shop",
            "subject": key.subject(proposed.kind),
            "sequence": proposed.sequence,
            "error": "KeyError: secret-quokka",
            "event": proposed.payload.decode(),
        }
        await home.nc.request("dead.tools-shop", json.dumps(letter).encode())
        events = await home.until(key, RunEnded)
    end = end_of(events)
    assert (end.status, end.steps) == ("failed", 1)
    assert f"tools-shop-{proposed.sequence}" in end.reason
    assert not any(b"quokka" in event.payload for event in events)


async def test_a_dead_letter_of_a_timer_or_an_ended_run_changes_nothing(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-48", [REPLY])
    async with running(told):
        key = await home.starts("TCK-48-1")
        events = await home.ended(key)
        for subject in ("timer.due.approvals.x", key.subject("desk.run-started")):
            letter = {"service": "approvals", "subject": subject, "sequence": 1, "error": "x", "event": "?"}
            await home.nc.request("dead.approvals", json.dumps(letter).encode())
        await home.ended(await home.starts("TCK-49-1"))
    assert (await home.history(key)).head == events[-1]


# Killed


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
    told: Settings,
    director: Director,
    fresh_database: Database,
    tmp_path: Path,
    point: str,
    asked: int,
) -> None:
    await director.script("TCK-50", [LOOK, REPLY])
    armed = tmp_path / f"agent-runner.{point}"
    armed.write_text("1")
    async with process(told, tmp_path) as one, process(told, tmp_path) as other:
        key = await home.starts("TCK-50-1")
        ends = {asyncio.create_task(one.wait()), asyncio.create_task(other.wait())}
        killed, _ = await asyncio.wait(ends, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in killed] == [-9]
        events = await home.ended(key)
    assert sum(isinstance(event.fact, TurnProposed) for event in events) == 1
    assert sum(isinstance(event.fact, TurnExecuted) for event in events) == 1
    assert (end_of(events).status, end_of(events).steps) == ("resolved", 2)
    assert await director.asked("TCK-50") == {0: asked, 1: 1}
    first_line = lines(fresh_database)[0]
    assert (first_line["uncertain_micro_usd"] > 0) == (point in ("before-answer", "after-answer"))
