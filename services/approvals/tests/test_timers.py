"""Holds that nobody decides, on a real nats-server: their timers bring each fact once and in time, whoever was away."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from contracts.events import Event
from contracts.facts import HoldEscalated, HoldExpired, ReminderSent, RunCancelled, TurnHeld
from contracts.parts import Hold, Needs
from contracts.subjects import RunKey
from contracts.testing import World, started, world
from turngate.testing import NatsAccess, Server

from .house import Gateway, approvals, connected, held, own_server, stored
from .tokens import Mint
from .told import ALEX, KEY, hold

FAR = 3600.0
OTHER = RunKey("acme", "TCK-2005-1")
# What a hold owes, and the time of it that is near: so no timer that comes late finds two things due.
OWES = {
    "approvals.reminder-sent": "remind",
    "approvals.hold-escalated": "escalate",
    "approvals.hold-expired": "expire",
}


async def held_run(others: World, key: RunKey, near: str, seconds: float, *holds: Hold) -> datetime:
    """A run that owes one thing soon; when."""
    await others.say(key, started(ALEX))
    times: dict[str, Any] = {"remind": FAR, "escalate": FAR, "expire": 2 * FAR, near: seconds}
    await held(others, *holds, key=key, **times)
    due = (await others.history(key)).last(TurnHeld)
    assert due is not None
    return min(at for at in (due.remind_at, due.escalate_at, due.expires_at) if at is not None)


async def said(others: World, key: RunKey) -> list[Event]:
    return [event for event in (await others.history(key)).events if event.author == "approvals"]


async def timer_of(server: NatsAccess, key: RunKey) -> None:
    """Once the broker has a timer of the run's last moment."""
    await stored(server, "TIMERS", f"timer.set.approvals.{key.tenant}.{key.run}.>")


@pytest.mark.parametrize(
    ("kind", "fact"),
    [
        ("approvals.reminder-sent", ReminderSent(turn=1, call_ids=["a", "b"], role="approver")),
        ("approvals.hold-escalated", HoldEscalated(turn=1, call_ids=["a"], role="lead")),
        ("approvals.hold-expired", HoldExpired(turn=1, call_ids=["a", "b"], hands_over=True)),
    ],
)
async def test_a_hold_that_nobody_decides_brings_each_fact_by_a_timer_that_comes_early_in_time_late_and_twice(
    fresh_nats: NatsAccess, others: World, mint: Mint, kind: str, fact: ReminderSent | HoldEscalated | HoldExpired
) -> None:
    async with connected(fresh_nats, "approvals") as bus, approvals(fresh_nats, mint):
        due = await held_run(others, OTHER, OWES[kind], 0.5, hold("a"), hold("b", Needs(role="lead")))
        for number, seconds in enumerate((-5, -0.1, 0.01, 0.02)):
            body = {"tenant": OTHER.tenant, "run": OTHER.run, "hold": 1}
            await bus.set_timer(f"acme.{OTHER.run}.more-{number}", due + timedelta(seconds=seconds), body)
        event = await others.hear(OTHER, kind)
        await held(others, hold(), expire=0)
        await others.hear(KEY, "approvals.hold-expired")

    assert event.fact == fact
    assert event.time >= due
    assert await said(others, OTHER) == [event]


async def test_a_hold_that_began_and_expired_while_approvals_was_away_still_ends(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold(), remind=-20, expire=-10)

    async with approvals(fresh_nats, mint):
        expiry = await others.hear(KEY, "approvals.hold-expired")
        late = await gateway.ask("sue", hold())

    assert expiry.fact == HoldExpired(turn=1, call_ids=["a"], hands_over=True)
    assert (await others.history(KEY)).all(ReminderSent) == []
    assert late["status"] == 410


async def test_a_cancelled_runs_timers_say_nothing(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold(), remind=0, escalate=0, expire=0)
    await others.say(KEY, RunCancelled(by=ALEX))
    async with approvals(fresh_nats, mint):
        await held_run(others, OTHER, "expire", 0, hold())
        await others.hear(OTHER, "approvals.hold-expired")
        answer = await gateway.ask("sam", hold())

    assert answer["status"] == 409
    assert [event.name for event in await said(others, KEY)] == ["decision-refused"]


async def test_timers_outlive_approvals(fresh_nats: NatsAccess, others: World, mint: Mint) -> None:
    async with approvals(fresh_nats, mint):
        await held_run(others, OTHER, "expire", 1, hold())
        await timer_of(fresh_nats, OTHER)

    async with approvals(fresh_nats, mint):
        await others.hear(OTHER, "approvals.hold-expired")


@own_server
async def test_timers_outlive_the_broker_and_what_falls_due_meanwhile_comes_once(data_dir: Path, mint: Mint) -> None:
    server = Server(data_dir)
    kinds = {OTHER: "approvals.hold-escalated", RunKey("acme", "TCK-2006-1"): "approvals.hold-expired"}
    try:
        server.start()
        await asyncio.to_thread(server.create_streams)
        setup = server.access.user("setup")
        async with world(server.access.url, *setup, sealed=True) as others, approvals(server.access, mint):
            due = {key: await held_run(others, key, OWES[kind], 1, hold()) for key, kind in kinds.items()}
            for key in kinds:
                await timer_of(server.access, key)
        server.kill()
        # Both fall due while nothing runs.
        await asyncio.sleep(max(0, (max(due.values()) - datetime.now(UTC)).total_seconds()))
        server.start()
        async with world(server.access.url, *setup, sealed=True) as others, approvals(server.access, mint):
            heard = {key: await others.hear(key, kind) for key, kind in kinds.items()}
            all_said = {key: await said(others, key) for key in kinds}
    finally:
        server.kill()

    assert all_said == {key: [event] for key, event in heard.items()}
    assert all(event.time >= due[key] for key, event in heard.items())
