"""Approvals on a real nats-server, asked as the gateway asks."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from approvals import app, domain
from approvals.settings import Settings
from contracts.bus import Bus
from contracts.facts import (
    CallDecided,
    DecisionRefused,
    Hold,
    HoldExpired,
    Json,
    ReminderSent,
    RunCancelled,
    TurnHeld,
)
from contracts.log import JetStreamLog
from contracts.settings import ServiceSettings
from contracts.subjects import RunKey
from contracts.testing import World, started, world
from pydantic import SecretStr
from turngate.testing import NatsAccess

from .tokens import Mint
from .told import ALEX, KEY, PACK, TWO, hold


@asynccontextmanager
async def approvals(server: NatsAccess, mint: Mint) -> AsyncIterator[None]:
    user, password = server.user("approvals")
    settings = Settings(nats_url=server.url, nats_user=user, nats_password=SecretStr(password), issuers=[mint.issuer])
    async with AsyncExitStack() as stack:
        bus = await Bus.connect(settings, "approvals")
        stack.push_async_callback(bus.close)
        log = JetStreamLog(bus.nc, domain.READS)
        bus.on_error.append(log.on_error)
        await app.start(bus, log, settings, stack)
        await bus.nc.flush()  # the broker knows the subscriptions
        yield


class Gateway:
    """Hands on decisions with people's tokens."""

    def __init__(self, bus: Bus, mint: Mint) -> None:
        self.bus, self.mint = bus, mint

    async def ask(
        self,
        who: str,
        held: Hold,
        decision: str = "approve",
        *,
        role: str = "approver",
        token: str | None = None,
        **more: Any,
    ) -> Json:
        body = {
            "token": token or self.mint.token(who, role),
            "run": KEY.run,
            "turn": 1,
            "call_id": held.call_id,
            "digest": held.digest,
            "decision": decision,
            "note": "",
            "edited": None,
        }
        return await self.bus.ask("ask.approvals.decide", body | more)


@pytest.fixture
def mint(tmp_path: Path) -> Mint:
    return Mint.at(tmp_path)


@pytest.fixture
async def others(fresh_nats: NatsAccess) -> AsyncIterator[World]:
    async with world(fresh_nats.url, *fresh_nats.user("setup")) as others:
        await others.say(KEY, started(ALEX))
        yield others


@pytest.fixture
async def gateway(fresh_nats: NatsAccess, mint: Mint) -> AsyncIterator[Gateway]:
    user, password = fresh_nats.user("gateway")
    settings = ServiceSettings(nats_url=fresh_nats.url, nats_user=user, nats_password=SecretStr(password))
    bus = await Bus.connect(settings, "gateway")
    yield Gateway(bus, mint)
    await bus.close()


async def held(others: World, *holds: Hold, remind: float = 3600, expire: float = 7200, key: RunKey = KEY) -> None:
    now = datetime.now(UTC)
    fact = TurnHeld(
        turn=1,
        attempt=1,
        pack=PACK,
        holds=list(holds),
        remind_at=now + timedelta(seconds=remind),
        expires_at=now + timedelta(seconds=expire),
    )
    await others.say(key, fact)


async def test_a_persons_decision_is_recorded_with_their_token_and_answered_with_the_fact(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold())
    async with approvals(fresh_nats, mint):
        answer = await gateway.ask("sam", hold(), note="Seen the jacket.")
        again = await gateway.ask("sam", hold())

    [decided] = (await others.history(KEY)).all(CallDecided)
    assert (decided.by.subject, decided.by.role, decided.by.token_id) == ("sam", "approver", "token-of-sam")
    assert answer["status"] == 200
    assert answer["event"]["type"] == "turngate.approvals.call-decided.v1"
    assert answer["event"]["data"]["note"] == "Seen the jacket."
    assert again == answer


async def test_two_hundred_clicks_of_five_people_on_one_hold_make_one_decision(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold())
    people = ["sam", "sue", "sid", "sal", "lee"]
    async with approvals(fresh_nats, mint), approvals(fresh_nats, mint):
        answers = await asyncio.gather(
            *(gateway.ask(people[n % 5], hold(), "decline" if n % 2 else "approve") for n in range(200))
        )

    [decided] = (await others.history(KEY)).all(CallDecided)
    assert {answer["status"] for answer in answers} == {200, 409}
    assert {json.dumps(a["event"]) for a in answers if a["status"] == 200} == {
        json.dumps(next(a["event"] for a in answers if a["status"] == 200))
    }
    assert all(decided.by.subject in a["detail"] or "You" in a["detail"] for a in answers if a["status"] == 409)


async def test_two_people_fill_the_two_seats_of_one_hold_whoever_else_clicks(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold(needs=TWO))
    asks = [("sam", "approver"), ("sue", "approver"), ("lee", "lead"), ("lia", "lead"), ("alex", "operator")]
    async with approvals(fresh_nats, mint):
        await asyncio.gather(*(gateway.ask(*(who, hold()), role=role) for who, role in asks * 5))

    decided = (await others.history(KEY)).all(CallDecided)
    assert len({fact.by.subject for fact in decided}) == len(decided) == 2
    assert "lead" in {fact.by.role for fact in decided}


async def test_decisions_on_two_holds_of_one_turn_both_count(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold("a"), hold("b"))
    async with approvals(fresh_nats, mint), approvals(fresh_nats, mint):
        answers = await asyncio.gather(gateway.ask("sam", hold("a")), gateway.ask("sue", hold("b"), "decline"))

    assert [answer["status"] for answer in answers] == [200, 200]
    assert {fact.call_id for fact in (await others.history(KEY)).all(CallDecided)} == {"a", "b"}


async def test_who_may_not_decide_is_told_so_and_nothing_is_decided(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint, tmp_path: Path
) -> None:
    await held(others, hold())
    (tmp_path / "other").mkdir()
    forger = Mint.at(tmp_path / "other")
    long_ago = datetime.now(UTC) - timedelta(hours=1)
    asks: dict[str, Json] = {
        "the operator who asked": {"role": "operator"},
        "an auditor": {"role": "auditor"},
        "a role that was made up": {"role": "king"},
        "a token without the scope": {"token": mint.token("sam", "approver", scope="read run")},
        "a token of another key": {"token": forger.token("sam", "approver")},
        "a token for another audience": {"token": mint.token("sam", "approver", aud="elsewhere")},
        "a token that has expired": {"token": mint.token("sam", "approver", exp=long_ago)},
        "a tenant that the issuer may not speak for": {"token": mint.token("sam", "approver", tenant="globex")},
        "no token at all": {"token": "nonsense"},
    }
    async with approvals(fresh_nats, mint):
        answers = {who: await gateway.ask("alex", hold(), **more) for who, more in asks.items()}

    assert {who: answer["status"] for who, answer in answers.items()} == dict.fromkeys(asks, 403)
    assert all(answer["detail"] for answer in answers.values())
    history = await others.history(KEY)
    assert history.all(CallDecided) == []
    assert history.all(DecisionRefused) == [], "who may decide nothing at all leaves no record"


async def test_another_tenants_run_and_one_that_does_not_exist_are_the_same(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, tmp_path: Path
) -> None:
    await held(others, hold())
    mint = Mint.at(tmp_path, tenants=("acme", "globex"))
    gateway.mint = mint
    async with approvals(fresh_nats, mint):
        foreign = await gateway.ask("gail", hold(), token=mint.token("gail", "lead", tenant="globex"))
        unknown = await gateway.ask("lee", hold(), role="lead", run="TCK-9999-1")
        unspeakable = await gateway.ask("lee", hold(), role="lead", run="TCK-1.>")

    assert [answer["status"] for answer in (foreign, unknown, unspeakable)] == [404, 404, 404]
    assert foreign["title"] == unknown["title"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"decision": "maybe"}, "decision"),
        ({"digest": "abc"}, "digest"),
        ({"turn": 0}, "turn"),
        ({"turn": "1"}, "turn"),
        ({"note": "x" * 2001}, "note"),
        ({"call_id": ""}, "call_id"),
        ({"edited": {"amount_pence": 100}, "decision": "decline"}, "a decline changes nothing"),
        ({"edited": {"reason": "x" * 20_000}}, "edited"),
        ({"tenant": "globex"}, "tenant"),
    ],
)
async def test_what_is_no_decision_is_answered_with_what_is_wrong(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint, more: Json, says: str
) -> None:
    async with approvals(fresh_nats, mint):
        answer = await gateway.ask("sam", hold(), **more)

    assert answer["status"] == 422
    assert says in answer["detail"]


async def test_a_hold_reminds_and_then_expires_by_its_timers(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    async with approvals(fresh_nats, mint):
        await held(others, hold("a"), hold("b"), remind=0.5, expire=1.2)
        await gateway.ask("sam", hold("a"))
        reminder = await others.hear(KEY, "approvals.reminder-sent")
        expiry = await others.hear(KEY, "approvals.hold-expired")
        late = await gateway.ask("sue", hold("b"))

    assert reminder.fact == ReminderSent(turn=1, call_ids=["b"], role="approver")
    assert expiry.fact == HoldExpired(turn=1, call_ids=["b"])
    assert late["status"] == 410


async def test_a_hold_that_began_and_expired_while_approvals_was_away_still_ends(
    fresh_nats: NatsAccess, others: World, mint: Mint
) -> None:
    await held(others, hold(), remind=-20, expire=-10)

    async with approvals(fresh_nats, mint):
        expiry = await others.hear(KEY, "approvals.hold-expired")

    assert expiry.fact == HoldExpired(turn=1, call_ids=["a"])
    assert (await others.history(KEY)).all(ReminderSent) == []


async def test_timers_outlive_approvals(fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint) -> None:
    async with approvals(fresh_nats, mint):
        await held(others, hold(), remind=0.5, expire=1)
        await others.hear(KEY, "approvals.reminder-sent")

    async with approvals(fresh_nats, mint):
        await others.hear(KEY, "approvals.hold-expired")


async def test_a_cancelled_runs_timers_say_nothing(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    other = RunKey("acme", "TCK-2005-1")
    async with approvals(fresh_nats, mint):
        await held(others, hold(), remind=0.3, expire=0.6)
        await others.say(KEY, RunCancelled(by=ALEX))
        await others.say(other, started(ALEX))
        await held(others, hold(), remind=0.8, expire=1, key=other)
        await others.hear(other, "approvals.hold-expired")
        answer = await gateway.ask("sam", hold())

    assert answer["status"] == 409
    assert {event.author for event in (await others.history(KEY)).events} == {"desk", "policy", "approvals"}
    assert (await others.history(KEY)).all(HoldExpired) == []


async def test_it_runs_as_a_process_and_ends_when_told_to(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold(), remind=0.1)
    user, password = fresh_nats.user("approvals")
    told = {
        "TURNGATE_NATS_URL": fresh_nats.url,
        "TURNGATE_NATS_USER": user,
        "TURNGATE_NATS_PASSWORD": password,
        "TURNGATE_ISSUERS": json.dumps([mint.issuer.model_dump()]),
    }

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "approvals", env={"PATH": os.environ["PATH"], **told}, stderr=asyncio.subprocess.PIPE
    )
    await others.hear(KEY, "approvals.reminder-sent")
    answer = await gateway.ask("sam", hold())
    process.send_signal(signal.SIGTERM)
    _, errors = await asyncio.wait_for(process.communicate(), 20)

    assert answer["status"] == 200
    assert process.returncode == 0, errors.decode()
