"""Approvals on a real nats-server, asked as the gateway asks."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from contracts.facts import (
    CallDecided,
    DecisionRefused,
    HoldEscalated,
    HoldExpired,
    ReminderSent,
    RunCancelled,
    TurnHeld,
    TurnQuoted,
)
from contracts.log import JetStreamLog
from contracts.parts import Json, Needs
from contracts.subjects import TENANTS, RunKey, TenantKey
from contracts.testing import World, started, world
from turngate.testing import NatsAccess

from .house import Gateway, Server, answering, approvals, connected, held, own_server
from .tokens import Mint
from .told import ALEX, KEY, PACK, TWO, hold, quote


@pytest.fixture
async def gateway(fresh_nats: NatsAccess, mint: Mint) -> AsyncIterator[Gateway]:
    async with connected(fresh_nats, "gateway") as bus:
        yield Gateway(bus, mint)


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
            *(gateway.ask(people[n % 5], hold(), "decline" if n % 2 else "approve", patience=60) for n in range(200))
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


@pytest.mark.parametrize("changed", [None, {"amount_pence": 12000}])
async def test_of_two_hundred_decisions_by_five_people_on_one_hold_exactly_the_needed_ones_count(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint, changed: Json | None
) -> None:
    """Two are needed where all approve what was asked for; the first change ends it."""
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[quote()]))
    await held(others, hold(needs=Needs(people=2)))
    less = {"status": 200, "quote": quote(pence=12000, edited=hold().digest).model_dump(mode="json")}
    people = ["sam", "sue", "sid", "sal", "lee"]
    async with (
        approvals(fresh_nats, mint),
        approvals(fresh_nats, mint),
        answering(fresh_nats, "tools-shop", "ask.tools.quote", lambda _: less),
    ):
        asks = [(people[n % 5], {"edited": changed if n % 5 == 4 else None}) for n in range(200)]
        answers = await asyncio.gather(*(gateway.ask(who, hold(), patience=60, **more) for who, more in asks))

    decided = (await others.history(KEY)).all(CallDecided)
    by = [fact.by.subject for fact in decided]
    assert len(set(by)) == len(by) <= 2
    assert len(by) == 2 or decided[-1].edited is not None
    assert all(fact.edited is None for fact in decided[:-1])
    assert {answer["status"] for answer in answers} == {200, 409}
    for (who, more), answer in zip(asks, answers, strict=True):
        mine = [
            fact for fact in decided if fact.by.subject == who and (fact.edited is None) == (more["edited"] is None)
        ]
        assert (answer["status"] == 200) == bool(mine)


async def test_an_approval_with_changes_is_recorded_as_the_shop_reads_it_with_the_persons_own_token(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[quote()]))
    await held(others, hold())
    less = quote(pence=12000, edited=hold().digest)
    answer = {"status": 200, "was": quote().model_dump(mode="json"), "quote": less.model_dump(mode="json")}
    edited = {"amount_pence": 12000, "order_reference": "ord-10042"}
    async with (
        approvals(fresh_nats, mint),
        answering(fresh_nats, "tools-shop", "ask.tools.quote", lambda _: answer) as asked,
    ):
        token = mint.token("sam", "approver")
        first = await gateway.ask("sam", hold(), token=token, edited=edited)
        again = await gateway.ask("sam", hold(), edited=edited)
        barred = await gateway.ask("alex", hold(), role="approver", edited=edited)

    assert first["status"] == 200
    assert first["event"]["data"]["edited"] == less.arguments
    assert again == first
    assert barred["status"] == 403
    assert asked == [{"token": token, "run": KEY.run, "turn": 1, "call_id": "a", "edited": edited}]
    assert len((await others.history(KEY)).all(CallDecided)) == 1


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        ({"status": 409, "title": "Moved on", "detail": "Turn 1 waits for nobody."}, 409, "Turn 1 waits for nobody."),
        ({"status": 422, "title": "Not so", "detail": "amount_pence: a number"}, 422, "amount_pence: a number"),
        ({"status": 200, "quote": quote(pence=20000).model_dump(mode="json")}, 422, "Nothing was changed"),
        ({"status": 200, "quote": quote(pence=20000, edited=hold().digest).model_dump(mode="json")}, 422, "£200.00"),
    ],
)
async def test_a_change_that_the_shop_does_not_take_decides_nothing_and_the_reason_is_handed_on(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint, answer: Json, status: int, says: str
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[quote()]))
    await held(others, hold())
    async with (
        approvals(fresh_nats, mint),
        answering(fresh_nats, "tools-shop", "ask.tools.quote", lambda _: answer),
    ):
        refused = await gateway.ask("sam", hold(), edited={"amount_pence": 1})
        plain = await gateway.ask("sam", hold())

    assert refused["status"] == status
    assert says in refused["detail"]
    assert "Nothing was decided" in refused["detail"]
    assert plain["status"] == 200


async def test_what_a_person_says_of_their_tenant_is_a_fact_of_the_tenant_once(
    fresh_nats: NatsAccess, gateway: Gateway, mint: Mint
) -> None:
    stop = {"say": "stop-set", "tool": "issue_refund", "above_minor": None, "reason": "A wave.", "request": "r-1"}
    lift = {"say": "stop-lifted", "stop_id": "stop-1", "reason": "Over.", "request": "r-2"}
    async with approvals(fresh_nats, mint), approvals(fresh_nats, mint):
        stops = await asyncio.gather(*(gateway.say("ada", "admin", stop) for _ in range(10)))
        lifts = await asyncio.gather(*(gateway.say("ada", "admin", lift | {"request": f"l-{n}"}) for n in range(10)))
        unknown = await gateway.say("ada", "admin", lift | {"stop_id": "stop-9", "request": "r-9"})
        barred = await gateway.say("lee", "lead", stop | {"request": "r-10"})
        unreadable = await gateway.say("ada", "admin", stop | {"tenant": "globex"})
    async with connected(fresh_nats, "gateway") as bus:
        history = await JetStreamLog(bus.nc, stream=TENANTS).read(TenantKey("acme"))

    assert [event.kind for event in history.events] == ["approvals.stop-set", "approvals.stop-lifted"]
    assert {answer["status"] for answer in stops} == {200}
    assert {answer["event"]["id"] for answer in stops} == {history.events[0].id}
    assert sorted(answer["status"] for answer in lifts) == [200] + [409] * 9
    assert [answer["status"] for answer in (unknown, barred, unreadable)] == [404, 403, 422]
    assert "tenant" in unreadable["detail"]


async def test_a_pack_is_promoted_once_policy_has_read_it(fresh_nats: NatsAccess, gateway: Gateway, mint: Mint) -> None:
    def check(body: Json) -> Json:
        if body["text"] == "nonsense":
            return {"status": 422, "title": "No pack", "detail": "line 1: a mapping is expected."}
        return {"status": 200, "pack": PACK.model_dump(mode="json")}

    promote = {"say": "policy-promoted", "text": "name: acme", "report": {"would_change": 1}, "request": "r-1"}
    async with (
        approvals(fresh_nats, mint),
        answering(fresh_nats, "policy", "ask.policy.check", check) as asked,
    ):
        first = await gateway.say("lee", "lead", promote)
        again = await gateway.say("lee", "lead", promote)
        wrong = await gateway.say("lee", "lead", promote | {"text": "nonsense", "request": "r-2"})
        barred = await gateway.say("sam", "approver", promote | {"request": "r-3"})

    assert (first["status"], wrong["status"], barred["status"]) == (200, 422, 403)
    assert again == first
    assert first["event"]["data"]["pack"] == PACK.model_dump(mode="json")
    assert first["event"]["data"]["by"]["subject"] == "lee"
    assert wrong["detail"] == "line 1: a mapping is expected. Nothing was promoted."
    assert [body["tenant"] for body in asked] == ["acme", "acme"]


async def test_nobody_decides_while_the_shop_is_away_and_a_change_is_asked_for(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await others.say(KEY, TurnQuoted(turn=1, attempt=1, quotes=[quote()]))
    await held(others, hold())
    async with approvals(fresh_nats, mint):
        away = await gateway.ask("sam", hold(), edited={"amount_pence": 1})
        plain = await gateway.ask("sam", hold())

    assert away["status"] == 503
    assert plain["status"] == 200


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


async def test_a_hold_that_nobody_decides_is_told_of_to_the_next_role_before_it_ends(
    fresh_nats: NatsAccess, others: World, mint: Mint
) -> None:
    async with approvals(fresh_nats, mint):
        await held(others, hold("a"), hold("b", Needs(role="lead")), remind=0.4, escalate=1.9, expire=3.4)
        await others.hear(KEY, "approvals.hold-expired")

    said = [event.fact for event in (await others.history(KEY)).events if event.author == "approvals"]
    assert said == [
        ReminderSent(turn=1, call_ids=["a", "b"], role="lead"),
        HoldEscalated(turn=1, call_ids=["a"], role="lead"),
        HoldExpired(turn=1, call_ids=["a", "b"]),
    ]


async def test_timers_that_come_early_late_or_twice_bring_each_fact_once_and_in_time(
    fresh_nats: NatsAccess, others: World, mint: Mint
) -> None:
    async with connected(fresh_nats, "approvals") as bus, approvals(fresh_nats, mint):
        await held(others, hold(), remind=0.6, escalate=2.1, expire=3.6)
        due = (await others.history(KEY)).last(TurnHeld)
        assert due is not None
        body = {"tenant": KEY.tenant, "run": KEY.run, "hold": 1}
        for n, seconds in enumerate((-5, -5, -0.1, 0.01, 0.02, 1.51, 3.01, 3.02)):
            await bus.set_timer(f"acme.{KEY.run}.more-{n}", due.remind_at + timedelta(seconds=seconds), body)
        await others.hear(KEY, "approvals.hold-expired")
        other = RunKey("acme", "TCK-2005-1")
        await others.say(other, started(ALEX))
        await held(others, hold(), remind=0.3, escalate=0.4, expire=0.5, key=other)
        await others.hear(other, "approvals.hold-expired")

    said = [event for event in (await others.history(KEY)).events if event.author == "approvals"]
    assert [event.name for event in said] == ["reminder-sent", "hold-escalated", "hold-expired"]
    for event, at in zip(said, (due.remind_at, due.escalate_at, due.expires_at), strict=True):
        assert at is not None
        assert event.time >= at


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


@own_server
async def test_timers_outlive_the_broker_and_what_falls_due_meanwhile_comes_once(data_dir: Path, mint: Mint) -> None:
    server = Server(data_dir)
    try:
        server.start()
        await asyncio.to_thread(server.create_streams)
        async with world(server.access.url, *server.access.user("setup")) as others:
            await others.say(KEY, started(ALEX))
            async with approvals(server.access, mint):
                await held(others, hold(), remind=0.6, escalate=2, expire=8)
                await others.hear(KEY, "approvals.reminder-sent")
                due = (await others.history(KEY)).last(TurnHeld)
            server.kill()
            # The next role's timer falls due while nothing runs.
            assert due is not None
            assert due.escalate_at is not None
            await asyncio.sleep(max(0, (due.escalate_at - datetime.now(UTC)).total_seconds()))
            server.start()
        async with world(server.access.url, *server.access.user("setup")) as others, approvals(server.access, mint):
            await others.hear(KEY, "approvals.hold-expired")
            history = await others.history(KEY)
    finally:
        server.kill()

    said = [event for event in history.events if event.author == "approvals"]
    assert [event.name for event in said] == ["reminder-sent", "hold-escalated", "hold-expired"]
    assert said[-1].time >= due.expires_at


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
