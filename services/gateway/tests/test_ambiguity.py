"""What may be said once and stands twice in a request is refused, wherever it stands."""

import importlib
import inspect
import json
from typing import Any, get_origin

import httpx
import pytest
from fastapi.routing import APIRoute
from gateway.web import CONSOLE, PLAIN, ROUTERS

from .conftest import World
from .facts import refund, started, story_to_the_hold
from .test_api import problem

pytestmark = pytest.mark.timeout(60)
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def decision(**more: Any) -> dict[str, Any]:
    return {"turn": 2, "call_id": "c-2", "digest": refund("c-2").digest, "decision": "decline"} | more


def twice(said: dict[str, Any], key: str, other: Any) -> str:
    return f"{json.dumps(said)[:-1]}, {json.dumps(key)}: {json.dumps(other)}}}"


async def test_a_decision_that_is_there_twice_is_refused_and_nobody_is_asked(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    asked = await world.approvals({"status": 200, "event": {}})
    nested = json.dumps(decision(decision="approve", edited={"amount_pence": 1})).replace(
        '"amount_pence": 1', '"amount_pence": 1, "amount_pence": 18000'
    )
    async with world.client("sam") as sam:
        for body in (
            twice(decision(), "decision", "approve"),
            twice(decision(decision="approve"), "decision", "decline"),
            nested,
        ):
            for kind in ("application/json", "APPLICATION/JSON; charset=utf-8", "application/vnd.x+json"):
                answer = await sam.post("/v1/runs/TCK-2004-1/decisions", content=body, headers={"Content-Type": kind})
                said = problem(answer, 400)
                assert (said["title"], "stands twice" in said["detail"]) == ("Ambiguous request", True)
    assert asked == []


@pytest.mark.parametrize(
    ("person", "method", "path", "body"),
    [
        ("alex", "POST", "/v1/tickets", '{"customer_email": "a@b.example", "subject": "x", "body": "1", "body": "2"}'),
        ("alex", "POST", "/v1/tickets/TCK-2004/runs", '{"max_steps": 5, "max_steps": 6}'),
        ("sam", "POST", "/v1/runs/TCK-2004-1/quotes", '{"turn": 2, "call_id": "c-2", "edited": {"a": 1, "a": 2}}'),
        ("alex", "POST", "/v1/runs/TCK-2004-1/messages", '{"text": "one", "text": "two"}'),
        ("alex", "POST", "/v1/runs/TCK-2004-1/cancel", '{"reason": "one", "reason": "two"}'),
        ("lee", "POST", "/v1/policy", '{"text": "a", "report": {"x": [{"y": 1, "y": 2}]}}'),
        ("ada", "POST", "/v1/stops", '{"reason": "r", "above_minor": 1, "above_minor": null}'),
        ("ada", "PUT", "/v1/budget", '{"day_micro_usd": 1, "day_micro_usd": null}'),
        ("ada", "PUT", "/v1/budget", '{"day_micro_usd": NaN}'),
    ],
)
async def test_no_call_takes_a_key_twice(world: World, person: str, method: str, path: str, body: str) -> None:
    async with world.client(person) as client:
        problem(await client.request(method, path, content=body, headers=JSON), 400)


async def test_a_form_field_that_is_there_twice_is_refused(world: World) -> None:
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    asked = await world.approvals({"status": 200, "event": {}})
    fields = f"turn=2&call_id=c-2&digest={refund('c-2').digest}&note=worn&decision=decline&decision=approve"
    parts = [(name, (None, value)) for name, _, value in (field.partition("=") for field in fields.split("&"))]
    async with world.client("sam") as sam:
        answers = [
            await sam.post("/runs/TCK-2004-1/decisions", content=fields, headers=FORM),
            await sam.post("/runs/TCK-2004-1/decisions", files=parts),
        ]
    for answer in answers:
        assert "field 'decision' is there twice" in problem(answer, 400)["detail"]
    assert asked == []


async def test_a_query_parameter_that_is_there_twice_is_refused_but_for_lists(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with world.client("lee") as lee:
        for path in (
            "/v1/runs?limit=1&limit=2",
            "/v1/events?after=1&after=0",
            "/v1/audit?run=A&run=B",
            "/v1/runs/TCK-2004-1/events?after=0&after=1",
            "/v1/spend?days=1&d%61ys=2",
        ):
            problem(await lee.get(path), 400)
        answer = await lee.get("/v1/runs?status=running&status=resolved")
        assert answer.status_code == 200


async def test_a_header_that_names_what_is_done_or_who_does_it_stands_once(world: World) -> None:
    await world.ticket()
    token = f"Bearer {world.token('alex')}"
    async with httpx.AsyncClient(base_url=world.url) as client:
        for name, values in (
            ("Idempotency-Key", ("k-1", "k-2")),
            ("Authorization", (token, f"Bearer {world.token('lee')}")),
            ("Last-Event-ID", ("1", "2")),
            ("Content-Type", ("application/json", "text/plain")),
        ):
            headers = [(name, value) for value in values]
            if name != "Authorization":
                headers.append(("Authorization", token))
            answer = await client.post("/v1/tickets/TCK-2004/runs", headers=headers, content="{}")
            assert name.lower() in problem(answer, 400)["detail"]


async def test_what_is_nested_too_deep_or_no_json_is_the_senders_fault(world: World) -> None:
    async with world.client() as alex:
        for body in ('{"a":' * 20_000, "[" * 100_000, "{", b"\xff\xfe", "9" * 5000):
            answer = await alex.post("/v1/tickets", content=body, headers=JSON)
            assert answer.status_code in (400, 422), answer.text


def test_only_parameters_that_are_lists_may_be_repeated() -> None:
    ambiguity = importlib.import_module("gateway.ambiguity")
    lists = {
        name
        for router in (*ROUTERS, PLAIN, *CONSOLE)
        for route in router.routes
        if isinstance(route, APIRoute)
        for name, parameter in inspect.signature(route.endpoint).parameters.items()
        if "list[" in str(parameter.annotation) and get_origin(parameter.annotation) is not None
    }
    assert lists == ambiguity.LISTS
