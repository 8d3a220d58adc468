"""Whatever is put into a query parameter, a cursor, a header or a path: it is answered, and never with a 5xx."""

import base64
import json
from contextlib import suppress
from typing import Any

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from gateway import paging
from gateway.problems import Problem
from gateway.web import CONSOLE, ROUTERS
from hypothesis import given
from hypothesis import strategies as st

from .conftest import World
from .facts import started, story_to_the_hold
from .test_api import problem
from .test_schema import the_rest_answers

pytestmark = pytest.mark.timeout(240)
NAMES = {"run": "TCK-2004-1", "reference": "TCK-2004", "stop_id": "stop-1"}


def cursor(value: str) -> str:
    return base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")


VALUES = [
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01", "9999-12-31",
    "-1", "0", "9" * 17, "9" * 18, "9" * 5000, "-" + "9" * 400, "1e400", "NaN", "true", "%00", "a%00b", "%ED%A0%80",
    "%F0%9F", "٣", "..", "%2e%2e%2f", "x" * 6000, "'; drop table desk.runs; --", "[" * 3000, "\u202e", "==", "AAAA",
    cursor("[" * 4000), cursor('{"a":' * 500), cursor('["0001-01-01T00:00:00+14:00", "x"]'),
    cursor("0001-01-01T00:00:00+14:00 x"), cursor("9999-12-31T23:59:59.999999-14:00 x"),
    cursor("2026-01-01T00:00:00+00:00 \x00"), cursor("2026-01-01T00:00:00+00:00 " + "9" * 18),
    cursor("2026-01-01T00:00:00 x"), cursor("2026-01-01T00:00:00+00:00 -5"), cursor("2026-01-01T00:00:00+23:59:59 1"),
]  # fmt: skip


def parameters(dependant: Dependant) -> list[str]:
    own = [field.alias for field in dependant.query_params]
    return own + [name for inner in dependant.dependencies for name in parameters(inner)]


def queries() -> list[tuple[str, str, list[str]]]:
    """Every call that is read, and its query parameters."""
    return [
        (method, route.path, parameters(route.dependant))
        for router in (*ROUTERS, *CONSOLE)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
        if method == "GET" and not route.path.startswith("/sign-in")
    ]


async def status_of(client: httpx.AsyncClient, url: str, **headers: str) -> int:
    async with client.stream("GET", url, headers=headers) as answer:  # a stream has no end
        return answer.status_code


async def test_no_value_of_a_parameter_or_a_name_is_answered_with_a_5xx(world: World) -> None:
    await world.ticket()
    await world.others.say("TCK-2004-1", *story_to_the_hold())
    await the_rest_answers(world)
    wrong = []
    async with world.client("ada", follow_redirects=False) as ada:
        for _, path, parameters in queries():
            there = path.format(**NAMES)
            extra = ["after", "for", "all", "run"] if path.startswith(("/console", "/tickets", "/v1/events")) else []
            urls = [f"{there}?{name}={value}" for name in {*parameters, *extra, "nothing"} for value in VALUES]
            if "{" in path:
                urls += [path.format(**dict.fromkeys(NAMES, value.replace("/", "%2f"))) for value in VALUES]
            for url in urls:
                try:
                    status = await status_of(ada, url)
                except httpx.InvalidURL:
                    continue
                if status >= 500 or status == 429:
                    wrong.append((status, url[:120]))
    assert wrong == []


async def test_a_time_before_all_times_is_the_beginning_and_one_behind_them_the_end(world: World) -> None:
    await world.others.say("TCK-2004-1", started())
    async with world.client("ari") as ari:
        for since, until, rows in (
            ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00", 1),
            ("0001-01-01T00:00:00+14:00", None, 1),
            ("9999-12-31T23:59:59Z", None, 0),
            (None, "0001-01-01T00:00:00Z", 0),
        ):
            for run in (None, "TCK-2004-1"):
                asked = {"since": since, "until": until, "run": run}
                answer = await ari.get("/v1/audit", params={k: v for k, v in asked.items() if v})
                assert (answer.status_code, len(answer.json()["rows"])) == (200, rows), asked
            page = await ari.get("/audit", params={"since": (since or "")[:10], "until": (until or "")[:10]})
            assert page.status_code == 200


@pytest.mark.parametrize("value", ["[" * 20_000, '["' + "[" * 3000, json.dumps([["x"] * 3]), "2026-01-01 x", "\x00"])
async def test_a_cursor_that_is_none_of_ours_is_refused(world: World, value: str) -> None:
    async with world.client("ari") as ari:
        for path in ("/v1/runs", "/v1/tickets", "/v1/audit"):
            said = await ari.get(path, params={"cursor": cursor(value)})
            problem(said, 422 if len(cursor(value)) > paging.LONGEST_CURSOR else 400)


@given(st.datetimes(timezones=st.timezones()), st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True))
def test_a_cursor_is_read_as_it_was_written(at: Any, name: str) -> None:
    assert paging.read(paging.write((at, name))) == (paging.within_range(at), name)
    assert len(paging.write((at, name))) <= paging.LONGEST_CURSOR


@given(st.text() | st.binary().map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_whatever_a_cursor_is_it_is_read_or_refused(text: str) -> None:
    with suppress(Problem):
        paging.read(text)
