"""Calls a minute are limited: each person's by their tokens, everybody else's by their address."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from gateway.limits import MINUTE, RateLimit, site_of
from hypothesis import given
from hypothesis import strategies as st

from .conftest import World, free_port, gateway

CALLERS = st.sampled_from("abcde")
PAUSES = st.floats(0, 90) | st.just(0.0)


class Hand:
    """A clock that a test moves."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


# The bucket


@given(st.integers(1, 20), st.lists(st.tuples(PAUSES, CALLERS)))
def test_in_no_stretch_of_time_are_there_more_calls_than_a_minutes_and_what_has_come_in_since(
    per_minute: int, calls: list[tuple[float, str]]
) -> None:
    clock = Hand()
    limit, taken = RateLimit(per_minute, clock), defaultdict(list)
    for pause, caller in calls:
        clock.now += pause
        if limit.take(caller) == 0.0:
            taken[caller].append(clock.now)
    for times in taken.values():
        for first in range(len(times)):
            for last in range(first, len(times)):
                assert last - first + 1 <= per_minute + per_minute * (times[last] - times[first]) / MINUTE + 1e-3


@given(st.integers(1, 5_000), st.floats(0, 1e6), st.integers(1, 50))
def test_whoever_waits_as_long_as_they_were_told_is_let_through(per_minute: int, start: float, more: int) -> None:
    clock = Hand()
    clock.now = start
    limit = RateLimit(per_minute, clock)
    assert [limit.take("a") for _ in range(per_minute)] == [0.0] * per_minute
    for _ in range(more):
        wait = limit.take("a")
        assert 0 < wait <= MINUTE / per_minute + 1e-6
        assert limit.take("a") == wait, "a call that is turned away costs nothing"
        clock.now += wait
        assert limit.take("a") == 0.0


@given(st.lists(st.tuples(PAUSES, CALLERS)))
def test_one_callers_calls_are_no_others(calls: list[tuple[float, str]]) -> None:
    clock = Hand()
    together, alone = RateLimit(3, clock), {caller: RateLimit(3, clock) for caller in "abcde"}
    for pause, caller in calls:
        clock.now += pause
        assert together.take(caller) == pytest.approx(alone[caller].take(caller))


@given(st.lists(st.tuples(PAUSES, st.integers(0, 1_000)), max_size=300))
def test_no_more_callers_are_remembered_than_there_is_room_for(calls: list[tuple[float, int]]) -> None:
    clock = Hand()
    limit = RateLimit(2, clock, max_callers=7)
    for pause, caller in calls:
        clock.now += pause
        limit.take(caller)
        assert 1 <= len(limit) <= 7
    clock.now += 2 * MINUTE
    limit.take("the last")
    assert len(limit) == 1, "who has been away for a minute is as good as new"


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:" + "x" * 100, "unix:" + "x" * 59),
    ],
)
def test_one_address_is_one_however_it_is_written_and_of_ipv6_one_network(address: str, site: str) -> None:
    assert site_of(address) == site


# The gateway


@asynccontextmanager
async def limited(world: World, **limits: int) -> AsyncIterator[str]:
    settings = world.settings.model_copy(update={"http_port": free_port(), "health_port": None} | limits)
    async with gateway(settings):
        yield f"http://127.0.0.1:{settings.http_port}"


def by(world: World, person: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {world.token(person)}"}


def is_too_many(answer: httpx.Response) -> None:
    assert answer.status_code == 429
    assert answer.headers["content-type"] == "application/problem+json"
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    assert answer.json()["title"] == "Too many calls"
    assert "Nothing was done" in answer.json()["detail"]


async def test_a_persons_calls_are_counted_over_all_their_tokens_and_nobody_elses(world: World) -> None:
    await world.ticket()
    async with limited(world, max_calls_per_minute=4) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        for _ in range(4):
            assert (await client.get("/v1/tickets", headers=by(world, "alex"))).status_code == 200
        is_too_many(await client.get("/v1/tickets", headers=by(world, "alex")))
        started = await client.post("/v1/tickets/TCK-2004/runs", json={}, headers=by(world, "alex"))
        is_too_many(started)
        # nor as the console's cookie, nor by opening a stream
        cookie = {"Cookie": f"turngate_session={world.token('alex')}", "Sec-Fetch-Mode": "cors"}
        assert (await client.get("/tickets", headers=cookie)).status_code == 429
        is_too_many(await client.get("/v1/events", headers=by(world, "alex") | {"Accept": "text/event-stream"}))

        [ticket] = (await client.get("/v1/tickets", headers=by(world, "sam"))).json()["tickets"]
    assert ticket["status"] == "open", "what was one too many was not done"


async def test_who_waits_as_long_as_the_answer_says_is_answered_again(world: World) -> None:
    async with limited(world, max_calls_per_minute=60) as url, httpx.AsyncClient(base_url=url, timeout=20) as client:
        headers = by(world, "alex")
        answer = await client.get("/console/session", headers=headers)
        async with asyncio.timeout(30):
            while answer.status_code == 204:
                answer = await client.get("/console/session", headers=headers)
        assert answer.headers["retry-after"] == "1"
        await asyncio.sleep(1)
        assert (await client.get("/console/session", headers=headers)).status_code == 204


async def test_calls_without_a_valid_token_are_counted_by_address_and_hold_up_nobody_who_has_one(world: World) -> None:
    async with (
        limited(world, max_unauthenticated_calls_per_minute=6) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        assert (await client.get("/sign-in")).status_code == 303
        assert (await client.get("/signed-out")).status_code == 200
        assert (await client.get("/sign-in/done")).status_code == 403
        assert (await client.get("/v1/tickets")).status_code == 401
        false = {"Authorization": "Bearer false"}
        assert (await client.get("/v1/tickets", headers=false)).status_code == 401
        assert (await client.get("/v1/events", headers=false)).status_code == 401

        is_too_many(await client.get("/v1/tickets", headers=false))
        is_too_many(await client.get("/v1/tickets"))
        lie = {"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.8"}
        is_too_many(await client.get("/v1/tickets", headers=false | lie))
        page = await client.get("/sign-in", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["retry-after"]) == (429, "10")

        assert (await client.get("/v1/tickets", headers=by(world, "alex"))).status_code == 200
        assert (await client.get("/healthz")).status_code == 200


async def test_behind_a_trusted_proxy_each_caller_is_counted_by_their_own_address(world: World) -> None:
    settings = world.settings.model_copy(
        update={"http_port": free_port(), "health_port": None, "max_unauthenticated_calls_per_minute": 1}
    )
    trusting = type(settings).model_validate(settings.model_dump() | {"trusted_proxies": ["127.0.0.0/8"]})
    async with (
        gateway(trusting),
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{trusting.http_port}", timeout=20) as client,
    ):
        for address, status in (("192.0.2.1", 401), ("192.0.2.2", 401), ("198.51.100.9, 192.0.2.1", 429)):
            answer = await client.get("/v1/tickets", headers={"X-Forwarded-For": address})
            assert answer.status_code == status, address


async def test_the_description_says_that_calls_are_limited(world: World) -> None:
    async with world.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    for path, operations in paths.items():
        for operation in operations.values():
            assert not path.startswith("/v1") or "Retry-After" in operation["responses"]["429"]["headers"]
