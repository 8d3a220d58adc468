"""An Idempotency-Key belongs to one request of one person, whichever call it was."""

from dataclasses import dataclass
from typing import Any

import httpx
import psycopg
import pytest
from gateway import authority

from .conftest import World
from .facts import refund, started, story_to_the_hold
from .test_api import problem
from .test_schema import the_rest_answers

pytestmark = pytest.mark.timeout(120)
KEY = {"Idempotency-Key": "k-1"}
HELD = {"turn": 2, "call_id": "c-2"}
DECISION = {**HELD, "digest": refund("c-2").digest}


@dataclass(frozen=True)
class Case:
    """Whoever may, a request of theirs, and another one to the same call; None where the call takes no body."""

    person: str
    first: dict[str, Any] | None = None
    other: dict[str, Any] | None = None
    wants: str = "run"  # what it is about: a run with a hold, a run that is a chat, a ticket, or nothing


CASES = {
    "POST /v1/tickets": Case(
        "alex",
        {"customer_email": "a@mail.example", "subject": "A lamp", "body": "Dark."},
        {"customer_email": "a@mail.example", "subject": "A lamp", "body": "Too bright."},
    ),
    "POST /v1/tickets/{reference}/runs": Case("alex", {"max_steps": 5}, {"max_steps": 6}, "ticket"),
    "POST /v1/runs/{run}/decisions": Case(
        "sam", DECISION | {"decision": "decline"}, DECISION | {"decision": "approve"}
    ),
    "POST /v1/runs/{run}/quotes": Case(
        "sam", HELD | {"edited": {"amount_pence": 1}}, HELD | {"edited": {"amount_pence": 2}}
    ),
    "POST /v1/runs/{run}/messages": Case("alex", {"text": "one"}, {"text": "two"}, "chat"),
    "POST /v1/runs/{run}/cancel": Case("alex", {"reason": "one"}, {"reason": "two"}),
    "POST /v1/runs/{run}/take-over": Case("alex", {"reason": "one"}, {"reason": "two"}),
    "POST /v1/stops": Case("ada", {"reason": "one"}, {"reason": "two"}),
    "POST /v1/stops/{stop_id}/lift": Case("ada", {"reason": "one"}, {"reason": "two"}),
    "POST /v1/policy": Case("lee", {"text": "one"}, {"text": "two"}),
    "PUT /v1/budget": Case("ada", {"day_micro_usd": 1}, {"day_micro_usd": 2}),
    "POST /tickets/{reference}/runs": Case("alex", wants="ticket"),
    "POST /runs/{run}/decisions": Case(
        "sam", DECISION | {"decision": "decline", "note": "worn"}, DECISION | {"decision": "approve"}
    ),
    "POST /runs/{run}/quotes": Case("sam", HELD, HELD | {"argument.reason": "worn"}),
    "POST /runs/{run}/messages": Case("alex", {"text": "one"}, {"text": "two"}, "chat"),
    "POST /runs/{run}/cancel": Case("alex", {"reason": "one"}, {"reason": "two"}),
    "POST /runs/{run}/take-over": Case("alex"),
    "POST /stops": Case("ada", {"reason": "one"}, {"reason": "two"}),
    "POST /stops/{stop_id}/lift": Case("ada", {"reason": "one"}, {"reason": "two"}),
}


async def send(client: httpx.AsyncClient, call: str, body: dict[str, Any] | None, n: str, key: str) -> httpx.Response:
    method, _, path = call.partition(" ")
    names = {"run": f"{n}-1", "reference": n, "stop_id": "stop-1"}
    form = not path.startswith("/v1")
    content: dict[str, Any] = {} if body is None else {"data" if form else "json": body}
    headers = {"Idempotency-Key": key, "Accept": "application/json"}
    return await client.request(method, path.format(**names), headers=headers, **content)


async def prepare(world: World, n: str, wants: str) -> None:
    if wants == "ticket":
        await world.ticket(n)
    elif wants == "chat":
        await world.others.say(f"{n}-1", started(n, channel="chat"))
    else:
        await world.others.say(f"{n}-1", started(n), *story_to_the_hold()[1:])


async def test_every_call_that_changes_something_refuses_another_requests_key(world: World) -> None:
    await the_rest_answers(world)
    calls = {str(call) for call in authority.calls() if call.scopes and call.method not in ("GET", "HEAD")}
    assert calls == set(CASES), "a new call says here what it takes"
    for number, (call, case) in enumerate(CASES.items()):
        n, key = f"TCK-{3000 + number}", f"k-{number}"
        await prepare(world, n, case.wants)
        async with world.client(case.person) as client:
            first = await send(client, call, case.first, n, key)
            assert first.status_code < 400, f"{call}: {first.text}"
            same = await send(client, call, case.first, n, key)
            assert same.status_code < 400, f"{call}: {same.text}"
            if case.other is not None:
                other = problem(await send(client, call, case.other, n, key), 422)
                assert other["title"] == "Idempotency-Key used before", call
            elsewhere = await send(client, call, case.first, f"{n}x", key)
            if "{run}" in call or "{reference}" in call:
                assert problem(elsewhere, 422)["title"] == "Idempotency-Key used before", call


async def test_two_decisions_with_one_key_are_one_and_a_refusal(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    asked = await world.approvals({"status": 200, "event": {}})
    async with world.client("sam") as sam:
        for decision, status in (("decline", 200), ("approve", 422), ("decline", 200)):
            body = DECISION | {"decision": decision}
            answer = await sam.post("/v1/runs/TCK-2004-1/decisions", json=body, headers=KEY)
            assert answer.status_code == status
    assert [one["decision"] for one in asked] == ["decline", "decline"]


async def test_a_key_is_each_persons_own(world: World) -> None:
    async with world.client("alex") as alex, world.client("gwen") as gwen:
        for client in (alex, gwen):
            body = {
                "customer_email": "a@mail.example",
                "subject": "A lamp",
                "body": client.headers["authorization"][-9:],
            }
            assert (await client.post("/v1/tickets", json=body, headers=KEY)).status_code == 201


async def test_what_was_refused_has_used_up_no_key(world: World) -> None:
    await world.ticket()
    async with world.client() as alex:
        problem(await alex.post("/v1/tickets/TCK-2004/runs", json={"max_steps": 0}, headers=KEY), 422)
        problem(await alex.post("/v1/tickets/TCK-2004/runs", json={"profile": "none"}, headers=KEY), 422)
        assert (await alex.post("/v1/tickets/TCK-2004/runs", json={}, headers=KEY)).status_code == 202
        problem(await alex.post("/v1/tickets/TCK-2004/runs", json={"max_steps": 5}, headers=KEY), 422)


async def test_the_same_request_is_the_same_in_whatever_order_it_is_written(world: World) -> None:
    await world.ticket()
    json = {"Content-Type": "application/json"}
    async with world.client() as alex:
        for body in ('{"max_steps": 5, "profile": "support"}', '{ "profile":"supp\\u006frt","max_steps":5 }'):
            answer = await alex.post("/v1/tickets/TCK-2004/runs", content=body, headers=KEY | json)
            assert answer.status_code in (200, 202), answer.text
        empty = {"Idempotency-Key": "k-2"}
        for content in (b"", b"{}"):
            assert (await alex.post("/v1/runs/TCK-2004-1/cancel", content=content, headers=empty | json)).is_success


async def test_no_words_of_a_request_are_kept_with_its_key(world: World) -> None:
    body = {"customer_email": "a@mail.example", "subject": "A lamp", "body": "Dark."}
    async with world.client() as alex:
        await alex.post("/v1/tickets", json=body, headers=KEY)
    async with await psycopg.AsyncConnection.connect(world.superuser) as connection:
        rows = await (await connection.execute("select key, request from desk.request_keys")).fetchall()
    assert [len(value) for row in rows for value in row] == [64, 64]
