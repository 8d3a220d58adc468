"""The stop switch, the policy pack and the budget: asked of approvals, folded from the tenant's own facts, shown."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from contracts.canonical import sha256
from contracts.events import Draft, Event
from contracts.facts import Fact
from contracts.log import JetStreamLog
from contracts.parts import Json, Pack, Person
from contracts.subjects import TENANTS, TenantKey
from contracts.tenant_facts import BudgetSet, PolicyPromoted, StopLifted, StopSet
from gateway.feed import Feed, Heard
from gateway.tenant_facts import TenantFacts, TenantView, evolve

from .conftest import World, connect
from .facts import ISSUER, LEE, started
from .test_api import problem
from .test_console import browser

pytestmark = pytest.mark.timeout(60)
ADA = Person(subject="ada", issuer=ISSUER, role="admin")
CATALOGUE: Json = {
    "tools": [
        {"name": name, "description": "", "input_schema": {}, "kind": kind}
        for name, kind in (("get_order", "read"), ("issue_refund", "write"), ("cancel_subscription", "write"))
    ]
}
PACK = Pack(name="acme", version=2, digest=sha256("text"))


async def tenant_line(world: World) -> Any:
    """Approvals' voice in the tenants' own lines."""
    bus = await connect(world.nats, "approvals")
    world.stack.push_async_callback(bus.close)
    log = JetStreamLog(bus.nc, stream=TENANTS)

    async def say(fact: Fact, tenant: str = "acme") -> Json:
        history = await log.read(TenantKey(tenant))
        event = await log.append(history, Draft(fact, None, key=str(len(history.events))))
        return event.document()

    return say


async def approvals(world: World) -> list[Json]:
    """Answers as approvals would: what is asked is said."""
    say = await tenant_line(world)

    async def answer(body: Json) -> Json:
        match body["say"]:
            case "stop-set":
                fields = {name: body[name] for name in ("stop_id", "tool", "above_minor", "reason")}
                return {"status": 200, "event": await say(StopSet(**fields, by=ADA))}
            case "stop-lifted":
                fact = StopLifted(stop_id=body["stop_id"], reason=body["reason"], by=ADA)
                return {"status": 200, "event": await say(fact)}
            case "budget-set":
                return {"status": 200, "event": await say(BudgetSet(day_micro_usd=body["day_micro_usd"], by=ADA))}
            case _ if "version: nonsense" in body["text"]:
                return {"status": 422, "title": "Not a pack", "detail": "Line 2: version has to be a number."}
            case _:
                return {"status": 200, "event": await say(PolicyPromoted(pack=PACK, text=body["text"], by=LEE))}

    await world.answering("tools-shop", "ask.tools.catalogue", CATALOGUE)
    return await world.answering("approvals", "ask.approvals.tenant", answer)


def test_a_fact_that_is_in_the_view_changes_nothing() -> None:
    assert evolve(TenantView(sequence=7), Seen(3)) == TenantView(sequence=7)  # type: ignore[arg-type]


class Seen:
    def __init__(self, sequence: int) -> None:
        self.sequence = sequence
        self.time = datetime.now(UTC)


async def test_a_stop_is_set_and_lifted_by_who_may_and_read_by_all(world: World) -> None:
    asked = await approvals(world)
    async with world.client("ada") as ada, world.client("sam") as sam, world.client("gus") as gus:
        wanted = {"tool": "issue_refund", "above_minor": 10000, "reason": "a strange pattern"}
        first, again = [await ada.post("/v1/stops", json=wanted, headers={"Idempotency-Key": "k-1"}) for _ in range(2)]
        problem(await sam.post("/v1/stops", json=wanted), 403)
        problem(await ada.post("/v1/stops", json={"tool": "issue_refund"}), 422)
        [stop] = (await sam.get("/v1/stops")).json()["stops"]
        theirs = (await gus.get("/v1/stops")).json()["stops"]
        problem(await sam.post(f"/v1/stops/{stop['stop_id']}/lift", json={}), 403)
        lifted = await ada.post(f"/v1/stops/{stop['stop_id']}/lift", json={"reason": "it was a test"})
        after = (await sam.get("/v1/stops")).json()["stops"]
    assert first.json()["type"] == "turngate.approvals.stop-set.v1"
    assert again.status_code == lifted.status_code == 200
    assert {one["stop_id"] for one in asked[:2]} == {stop["stop_id"]}
    assert (stop["tool"], stop["above_minor"], stop["by"]["subject"]) == ("issue_refund", 10000, "ada")
    assert (theirs, after) == ([], [])


@pytest.mark.parametrize("tool", ["isue_refund", "get_order", " issue_refund"])
async def test_a_stop_of_what_changes_nothing_is_refused_with_what_there_is(world: World, tool: str) -> None:
    asked = await approvals(world)
    async with world.client("ada") as ada, browser(world, "ada") as console:
        said = problem(await ada.post("/v1/stops", json={"tool": tool, "reason": "a strange pattern"}), 422)
        page = await console.post("/stops", data={"tool": tool, "reason": "a strange pattern"})
        offered = (await console.get("/stops")).text
    assert "There is: cancel_subscription, issue_refund." in said["detail"]
    assert (page.status_code, "issue_refund" in page.text) == (422, True)
    assert asked == []
    assert re.findall(r"<option[^>]*>([^<]+)</option>", offered) == [
        "Every one that changes something",
        "cancel_subscription",
        "issue_refund",
    ]
    assert "name no customers" in offered


async def test_everything_is_stopped_and_what_was_known_is_named_while_the_tools_service_is_away(world: World) -> None:
    say = await tenant_line(world)
    fact = StopSet(stop_id="stop-1", reason="r", by=ADA)
    await world.answering("approvals", "ask.approvals.tenant", {"status": 200, "event": await say(fact)})
    async with world.client("ada") as ada:
        refused = problem(await ada.post("/v1/stops", json={"tool": "issue_refund", "reason": "r"}), 503)
        assert "Name no tool" in refused["detail"]
        assert (await ada.post("/v1/stops", json={"reason": "r"})).status_code == 200

        bus = await connect(world.nats, "tools-shop")
        await bus.answer("ask.tools.catalogue", answering(CATALOGUE))
        await bus.nc.flush()
        assert (await ada.post("/v1/stops", json={"tool": "issue_refund", "reason": "r"})).status_code == 200
        await bus.close()
        assert (await ada.post("/v1/stops", json={"tool": "issue_refund", "reason": "r"})).status_code == 200
        problem(await ada.post("/v1/stops", json={"tool": "isue_refund", "reason": "r"}), 422)


def answering(answer: Json) -> Any:
    async def reply(_: Json) -> Json:
        return answer

    return reply


async def test_an_amount_in_no_currency_stops_nothing(world: World) -> None:
    await approvals(world)
    async with browser(world, "ada") as ada:
        refused = await ada.post("/stops", data={"above": "100", "reason": "strange"})
        assert refused.status_code == 422
        assert "names no currency" in refused.text
        assert "Nothing is stopped" in (await ada.get("/stops")).text


async def test_a_stop_stands_on_every_page_while_it_is_set(world: World) -> None:
    world.pays_in_pounds()
    await world.ticket()
    await approvals(world)
    async with browser(world, "ada") as ada, browser(world, "sam") as sam:
        page = (await ada.get("/stops")).text
        assert "Nothing is stopped" in page
        form = {"tool": "issue_refund", "above": "£100", "reason": "<b>strange</b>"}
        set_ = await ada.post("/stops", data=form)
        assert (set_.status_code, set_.headers["location"]) == (303, "/stops")
        for path in ("/tickets", "/tickets/TCK-2004", "/approvals"):
            shown = (await sam.get(path)).text
            assert "above £100.00 to one customer in a day is stopped" in shown
            assert "&lt;b&gt;strange" in shown
            assert 'href="/stops"' not in shown
        assert (await sam.get("/stops")).status_code == 403
        assert (await sam.post("/stops", data=form)).status_code == 403
        page = (await ada.get("/stops")).text
        [action] = re.findall(r'action="(/stops/[\w-]+/lift\?for=\w+)"', page)
        await ada.post(action, data={})
        assert "is stopped" not in (await sam.get("/tickets")).text


async def test_a_restarted_gateway_knows_what_is_stopped(world: World) -> None:
    from .conftest import gateway

    say = await tenant_line(world)
    await say(StopSet(stop_id="stop-1", reason="an old one", by=ADA))
    await world.stop_gateway()
    async with gateway(world.settings), world.client("sam") as sam:
        [stop] = (await sam.get("/v1/stops")).json()["stops"]
    assert (stop["tool"], stop["above_minor"]) == (None, None)


async def test_a_pack_is_promoted_by_a_lead_and_one_that_cannot_be_read_is_not(world: World) -> None:
    folder = world.settings.tenants_dir / "acme"
    folder.mkdir(parents=True)
    (folder / "policy.yaml").write_text("name: acme\nversion: 1\n")
    await approvals(world)
    async with world.client("lee") as lee, world.client("ari") as ari, world.client("sam") as sam:
        before = (await ari.get("/v1/policy")).json()
        said = problem(await lee.post("/v1/policy", json={"text": "name: acme\nversion: nonsense"}), 422)
        done = await lee.post("/v1/policy", json={"text": "name: acme\nversion: 2\n"})
        after = (await lee.get("/v1/policy")).json()
        for client in (sam, ari):
            problem(await client.post("/v1/policy", json={"text": "name: acme"}), 403)
        assert (await sam.get("/v1/policy")).json() == after
    assert (before["text"], before["pack"]) == ("name: acme\nversion: 1\n", None)
    assert "Line 2" in said["detail"]
    assert done.json()["type"] == "turngate.approvals.policy-promoted.v1"
    assert (after["text"], after["pack"]["version"], after["by"]["subject"]) == ("name: acme\nversion: 2\n", 2, "lee")


async def test_a_budget_is_set_by_who_may_stop_and_read_by_who_sees_what_was_spent(world: World) -> None:
    asked = await approvals(world)
    async with world.client("ada") as ada, world.client("sam") as sam, world.client("cust-C-1004") as tom:
        before = (await sam.get("/v1/budget")).json()
        answer = await ada.put("/v1/budget", json={"day_micro_usd": 5_000_000}, headers={"Idempotency-Key": "k-1"})
        after = (await sam.get("/v1/budget")).json()
        problem(await sam.put("/v1/budget", json={"day_micro_usd": 1}), 403)
        problem(await tom.get("/v1/budget"), 403)
        for wrong in ({}, {"day_micro_usd": -1}, {"day_micro_usd": "5"}, {"day_micro_usd": 1, "tenant": "globex"}):
            problem(await ada.put("/v1/budget", json=wrong), 422)
        await ada.put("/v1/budget", json={"day_micro_usd": None})
        lifted = (await sam.get("/v1/budget")).json()
    assert (answer.status_code, answer.json()["data"]["day_micro_usd"]) == (200, 5_000_000)
    assert asked[0]["request"] == "k-1"
    assert [one["day_micro_usd"] for one in (before, after, lifted)] == [None, 5_000_000, None]


async def test_whatever_goes_wrong_on_the_way_what_is_set_for_a_tenant_is_heard_of(world: World) -> None:
    class Breaks(JetStreamLog):
        """Breaks off once in a way that nobody has foreseen."""

        broken = False

        async def follow(self, *given: Any, **more: Any) -> AsyncIterator[Event]:
            async for event in super().follow(*given, **more):
                yield event
                if not self.broken and more.get("live", True):
                    self.broken = True
                    raise KeyError("what nobody has foreseen")

    say = await tenant_line(world)
    bus = await connect(world.nats, "gateway")
    facts = TenantFacts(Breaks(bus.nc, stream=TENANTS))
    feed = Feed(bus, Breaks(bus.nc))
    following = [asyncio.create_task(one.run()) for one in (facts, feed)]
    with feed.listener("acme") as listener:
        for number in (1, 2):
            await say(StopSet(stop_id=f"stop-{number}", reason="r", by=ADA))
            await world.others.say(f"TCK-{number}-1", started(f"TCK-{number}"))
        heard: list[Heard] = []
        async with asyncio.timeout(20):
            while len(heard) < 2:
                heard += await listener.take()
    assert [stop.stop_id for stop in (await facts.reach("acme", within=20)).stops] == ["stop-1", "stop-2"]
    for task in following:
        task.cancel()
    await bus.close()
