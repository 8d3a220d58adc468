"""What liars write into the log is found out by who reads it, and nobody waits for ever."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from contracts import events
from contracts.canonical import canonical
from contracts.errors import CorruptLog
from contracts.events import TRAIL_LENGTH, Draft, Event
from contracts.handler import respond
from contracts.parts import Json
from contracts.subjects import RunKey
from nats.aio.client import Client

from .lines import grow, publish, said
from .servers import SOON, House


def rewritten(event: Event, **changes: object) -> bytes:
    return json.dumps(event.document() | changes).encode()


def sealed(document: Json, before: Event) -> Json:
    body = {name: value for name, value in document.items() if name != "chain"}
    return body | {"chain": hashlib.sha256(before.chain.encode() + canonical(body)).hexdigest()}


def after(event: Event, draft: Draft) -> Event:
    return events.write(event.key, draft, event, datetime.now(UTC))


@pytest.mark.parametrize(
    "trail",
    [
        lambda run: f"{run[1].sequence}:{run[0].kind} {run[1].sequence}:{run[1].kind}",  # the same for another
        lambda run: f"{run[0].sequence}:{run[0].kind} {run[0].sequence}:{run[0].kind}",  # another kind's number
        lambda run: f"{run[0].sequence}:{run[0].kind} 999999999:{run[1].kind}",  # what is not there
        lambda run: f"{run[1].sequence}:{run[1].kind} {run[0].sequence}:{run[0].kind}",  # swapped
        lambda run: "",
        lambda run: f"{run[0].sequence}:{run[0].kind}",
        lambda run: "not a trail",
        lambda run: ":",
    ],
)
async def test_a_trail_that_lies_is_found_out(
    house: House, nc: Client, key: RunKey, trail: Callable[[list[Event]], str]
) -> None:
    run = await grow(await house.log(), key, 2)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), trail=trail(run)))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_trail_into_another_run_is_found_out(house: House, nc: Client, key: RunKey) -> None:
    log = await house.log()
    run = await grow(log, key, 2)
    other = await grow(log, RunKey("globex", key.run), 2)
    trail = " ".join(f"{event.sequence}:{event.kind}" for event in other)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), trail=trail))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_trail_that_goes_round_in_a_circle_ends(house: House, nc: Client, key: RunKey) -> None:
    run = await grow(await house.log(), key, 40)
    lie = after(run[-1], said("lie"))
    own = run[-1].sequence + 1
    circle = " ".join(f"{own}:{lie.kind}" for _ in range(TRAIL_LENGTH))
    sequence = await publish(nc, lie, rewritten(lie, trail=circle))
    if sequence == own:  # nobody else wrote in between
        with pytest.raises(CorruptLog):
            await asyncio.wait_for((await house.log()).read(key), SOON)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": "TCK-1-1"},
        {"tenant": "globex"},
        {"type": "turngate.policy.turn-forwarded.v1"},
        {"type": "turngate.desk.customer-said.v2"},
        {"type": "somebody.elses"},
        {"ordinal": "2"},
        {"ordinal": -1},
        {"ordinal": 2.5},
        {"ordinal": True},
        {"ordinal": 7},
        {"chain": "0" * 63},
        {"chain": None},
        {"chain": "\ud800" * 64},
        {"time": "yesterday"},
        {"time": "2026-11-30T12:00:00"},
        {"id": 7},
        {"cause": ["x"]},
        {"cause": "x" * 129},
        {"traceparent": "x" * 800_000},
        {"data": {"text": "no message id"}},
        {"data": None},
        {"trail": 3},
    ],
    ids=lambda change: json.dumps(change)[:40],
)
async def test_a_body_that_is_not_what_its_subject_says_is_not_read(
    house: House, nc: Client, key: RunKey, change: dict[str, object]
) -> None:
    run = await grow(await house.log(), key, 2)
    await publish(nc, run[1], rewritten(after(run[1], said("lie")), **change))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 20_000, b'{"type": {}}'])
async def test_a_body_that_is_no_event_is_not_read(house: House, nc: Client, key: RunKey, payload: bytes) -> None:
    [event] = await grow(await house.log(), key, 1)
    await nc.request(key.subject(event.kind), payload, timeout=SOON)
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


@pytest.mark.parametrize("tail", ["tools", "tools.turn-executed.more", "tools.turn-executed"])
async def test_a_subject_that_is_no_facts_is_not_read(house: House, nc: Client, key: RunKey, tail: str) -> None:
    [event] = await grow(await house.log(), key, 1)
    await publish(nc, event, subject=f"run.acme.{key.run}.{tail}")
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_a_seal_that_does_not_fit_is_found_by_who_reads_both(house: House, nc: Client, key: RunKey) -> None:
    run = await grow(await house.log(), key, 2)
    lie = after(run[1], said("lie"))
    await publish(nc, lie, lie.payload.replace(b'"text":"lie"', b'"text":"LIE"'))
    with pytest.raises(CorruptLog):
        await (await house.log()).read(key)


async def test_who_claims_an_old_number_is_found_out_and_nobody_waits_for_ever(
    house: House, nc: Client, key: RunKey
) -> None:
    log = await house.log()
    run = await grow(log, key, 3)
    await publish(nc, after(run[0], said("I was second")))
    with pytest.raises(CorruptLog):
        await asyncio.wait_for(respond(log, run[2], lambda _, event: said("next", event)), SOON)


async def test_a_reader_meets_kinds_that_it_does_not_know(house: House, nc: Client, key: RunKey) -> None:
    [started] = await grow(await house.log(), key, 1)
    newer = sealed(after(started, said("hello")).document() | {"type": "turngate.desk.weather-changed.v1"}, started)
    sequence = await publish(nc, started, json.dumps(newer).encode(), key.subject("desk.weather-changed"))

    log = await house.log()
    history = await log.read(key)
    assert history.head is not None
    assert (history.head.sequence, history.head.fact) == (sequence, None)
    assert (await log.append(history, said("onwards"))).ordinal == 2
