"""Approvals on a real nats-server, asked as the gateway asks."""

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from contracts.asks import CHECK_PACK, QUOTE
from contracts.facts import (
    CallDecided,
    DecisionRefused,
    TurnQuoted,
)
from contracts.log import JetStreamLog
from contracts.parts import Json, Needs
from contracts.subjects import TENANTS, TenantKey
from contracts.testing import World
from turngate.testing import NatsAccess

from .house import Gateway, answering, approvals, connected, held
from .tokens import Mint
from .told import KEY, PACK, TWO, hold, quote


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
    assert again == answer | {"repeated": True}


async def test_personal_data_is_sealed_in_the_log_and_open_to_who_judges_by_it(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold("a"), hold("b"))
    async with approvals(fresh_nats, mint):
        tom = mint.token("tom", "approver", email="tom@example.org", email_verified=True)
        own_ticket = await gateway.ask("tom", hold("a"), token=tom)
        answer = await gateway.ask("sam", hold("b"), note="Tom called.")
    async with connected(fresh_nats, "policy") as bus:
        without_keys = await JetStreamLog(bus.nc).read(KEY)

    assert own_ticket["status"] == 403
    assert "your own ticket" in own_ticket["detail"]
    assert answer["event"]["data"]["note"] == "Tom called."
    assert [fact.note for fact in without_keys.all(CallDecided)] == ["[sealed]"]


async def test_an_approval_that_stands_and_is_said_again_of_a_new_hold_is_answered_with_who_else_is_needed(
    fresh_nats: NatsAccess, others: World, gateway: Gateway, mint: Mint
) -> None:
    await held(others, hold())
    async with approvals(fresh_nats, mint):
        first = await gateway.ask("sam", hold())
        await held(others, hold(needs=TWO), attempt=2)
        again = await gateway.ask("sam", hold())

    assert (again["status"], again["event"], again["repeated"]) == (200, first["event"], True)
    assert "still waits for somebody else: a lead" in again["detail"]


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
        answering(fresh_nats, "tools-shop", QUOTE, lambda _: less),
    ):
        asks: list[tuple[str, dict[str, Any]]] = [
            (people[n % 5], {"edited": changed if n % 5 == 4 else None}) for n in range(200)
        ]
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
        answering(fresh_nats, "tools-shop", QUOTE, lambda _: answer) as asked,
    ):
        token = mint.token("sam", "approver")
        first = await gateway.ask("sam", hold(), token=token, edited=edited)
        again = await gateway.ask("sam", hold(), edited=edited)
        barred = await gateway.ask("alex", hold(), role="approver", edited=edited)

    assert first["status"] == 200
    assert first["event"]["data"]["edited"] == less.arguments
    assert again == first | {"repeated": True}
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
        answering(fresh_nats, "tools-shop", QUOTE, lambda _: answer),
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


async def test_a_subscriber_of_a_tenant_is_added_and_removed_by_who_may(
    fresh_nats: NatsAccess, gateway: Gateway, mint: Mint
) -> None:
    add, remove = ({"say": f"subscriber-{done}", "subscriber": "warehouse"} for done in ("added", "removed"))
    async with approvals(fresh_nats, mint):
        barred = await gateway.say("lee", "lead", add)
        said = [await gateway.say("ada", "admin", body) for body in (remove, add, add, remove, remove)]
    async with connected(fresh_nats, "gateway") as bus:
        history = await JetStreamLog(bus.nc, stream=TENANTS).read(TenantKey("acme"))

    assert barred["status"] == 403
    assert [answer["status"] for answer in said] == [409, 200, 409, 200, 409]
    assert [event.kind for event in history.events] == ["approvals.subscriber-added", "approvals.subscriber-removed"]


async def test_a_pack_is_promoted_once_policy_has_read_it(fresh_nats: NatsAccess, gateway: Gateway, mint: Mint) -> None:
    def check(body: Json) -> Json:
        if body["text"] == "nonsense":
            return {"status": 422, "title": "No pack", "detail": "line 1: a mapping is expected."}
        return {"status": 200, "pack": PACK.model_dump(mode="json")}

    promote = {"say": "policy-promoted", "text": "name: acme", "report": {"would_change": 1}, "request": "r-1"}
    async with (
        approvals(fresh_nats, mint),
        answering(fresh_nats, "policy", CHECK_PACK, check) as asked,
    ):
        first = await gateway.say("lee", "lead", promote)
        again = await gateway.say("lee", "lead", promote)
        wrong = await gateway.say("lee", "lead", promote | {"text": "nonsense", "request": "r-2"})
        barred = await gateway.say("sam", "approver", promote | {"request": "r-3"})

    assert (first["status"], wrong["status"], barred["status"]) == (200, 422, 403)
    assert again == first | {"repeated": True}
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
