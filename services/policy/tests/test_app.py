"""Policy on a real nats-server."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import nats
import pytest
from contracts import service
from contracts.asks import CHECK_PACK
from contracts.bus import Bus
from contracts.events import Draft, Event
from contracts.facts import CallDecided, TurnForwarded, TurnHeld, TurnQuoted, TurnRefused
from contracts.log import JetStreamLog
from contracts.parts import CallQuote, Needs, Pack, Person
from contracts.subjects import TENANTS, RunKey, TenantKey
from contracts.tenant_facts import PolicyPromoted
from contracts.testing import PATIENCE, World, person, started, world
from nats.aio.client import Client
from policy import app, domain
from policy.pack import parse
from policy.settings import Settings
from pydantic import SecretStr
from structlog.testing import capture_logs
from turngate.testing import NatsAccess

from .quotes import first_ever, read, refund
from .told import ALEX, KEY, LEE, SAM, SUE, by_address_only

DEPLOYED = Path(__file__).parents[3] / "deploy" / "tenants"


@asynccontextmanager
async def policy(server: NatsAccess) -> AsyncIterator[None]:
    user, password = server.user("policy")
    settings = Settings(nats_url=server.url, nats_user=user, nats_password=SecretStr(password), tenants_dir=DEPLOYED)
    async with service.running("policy", settings, app.start, reads=domain.READS):
        yield


@pytest.fixture
async def others(fresh_nats: NatsAccess) -> AsyncIterator[World]:
    """What they say is sealed as ever, and policy has no key to it."""
    async with world(fresh_nats.url, *fresh_nats.user("setup"), sealed=True) as others:
        yield others


@pytest.fixture
async def setup(fresh_nats: NatsAccess) -> AsyncIterator[Client]:
    user, password = fresh_nats.user("setup")
    client = await nats.connect(fresh_nats.url, user=user, password=password)
    yield client
    await client.close()


def paying(call_id: str, amount: int, **more: Any) -> CallQuote:
    return refund(call_id, amount, facts=first_ever(amount), **more)


async def quoted(others: World, key: RunKey, *quotes: CallQuote, turn: int = 1, attempt: int = 1) -> None:
    await others.say(key, TurnQuoted(turn=turn, attempt=attempt, quotes=list(quotes)))


def decision(by: Person, call_id: str, amount: int, **more: Any) -> CallDecided:
    """An approval, unless told otherwise."""
    said = {"turn": 1, "call_id": call_id, "digest": paying(call_id, amount).digest, "decision": "approve", "by": by}
    return CallDecided.model_validate(said | more)


async def test_a_small_turn_goes_through_and_a_large_refund_waits_for_a_person(
    fresh_nats: NatsAccess, others: World
) -> None:
    await others.say(KEY, started(ALEX))
    async with policy(fresh_nats):
        await quoted(others, KEY, read("a"))
        forward = await others.hear(KEY, "policy.turn-forwarded")

        await quoted(others, KEY, read("b"), paying("c", 18000), turn=2)
        held = await others.hear(KEY, "policy.turn-held")

    assert isinstance(forward.fact, TurnForwarded)
    assert isinstance(held.fact, TurnHeld)
    assert (held.fact.turn, [hold.call_id for hold in held.fact.holds], held.fact.will_run) == (2, ["c"], ["b"])


async def test_nothing_that_is_personal_is_readable_to_it_and_what_people_say_counts_all_the_same(
    fresh_nats: NatsAccess, others: World, setup: Client
) -> None:
    less = paying("b", 12_000, today=30_000, edited=paying("b", 18_000).digest)
    async with policy(fresh_nats):
        await others.say(KEY, started(ALEX))
        await quoted(others, KEY, paying("a", 18_000), paying("b", 18_000, today=36_000))
        await others.hear(KEY, "policy.turn-held")
        await others.say(KEY, decision(SAM, "a", 18_000, decision="decline", note="Mrs Miller lied to us."))
        await others.say(KEY, decision(SUE, "b", 18_000, edited={"amount_pence": 12_000}))
        await quoted(others, KEY, paying("a", 18_000), less, attempt=2)
        forward = await others.hear(KEY, "policy.turn-forwarded")

    without_a_key = str((await JetStreamLog(setup).read(KEY)).events)
    assert "Miller" not in without_a_key
    assert "tom@example.org" not in without_a_key
    assert isinstance(forward.fact, TurnForwarded)
    assert [verdict.verdict for verdict in forward.fact.verdicts] == ["declined", "run"]
    assert [verdict.reason for verdict in forward.fact.verdicts] == [
        "A person declined this, so it was not done.",
        "Released by sue.",
    ]


async def test_an_approver_who_is_the_customer_is_known_by_the_shops_id_where_the_ticket_names_an_address_only(
    fresh_nats: NatsAccess, others: World
) -> None:
    await others.say(KEY, by_address_only())
    async with policy(fresh_nats):
        await quoted(others, KEY, paying("a", 18_000))
        await others.hear(KEY, "policy.turn-held")
        await others.say(KEY, decision(person("C-1004", "approver"), "a", 18_000))
        await others.say(KEY, decision(SAM, "a", 18_000))
        forward = await others.hear(KEY, "policy.turn-forwarded")

    assert isinstance(forward.fact, TurnForwarded)
    assert forward.fact.verdicts[0].reason == "Released by sam."


async def test_decisions_that_come_at_once_release_the_turn_once(fresh_nats: NatsAccess, others: World) -> None:
    await others.say(KEY, started(ALEX))
    async with policy(fresh_nats), policy(fresh_nats):
        await quoted(others, KEY, paying("a", 18000), paying("b", 60000, today=78000))
        await others.hear(KEY, "policy.turn-held")
        await asyncio.gather(
            *(others.say(KEY, decision(by, "a", 18000)) for by in (SAM, LEE)),
            *(others.say(KEY, decision(by, "b", 60000)) for by in (SUE, LEE)),
        )
        await others.hear(KEY, "policy.turn-forwarded")
        later = RunKey("acme", "TCK-2005-1")
        await others.say(later, started(ALEX))
        await quoted(others, later, read())
        await others.hear(later, "policy.turn-forwarded")

    assert len((await others.history(KEY)).all(TurnForwarded)) == 1


async def test_a_hold_survives_a_restart_of_policy(fresh_nats: NatsAccess, others: World) -> None:
    await others.say(KEY, started(ALEX))
    async with policy(fresh_nats):
        await quoted(others, KEY, paying("a", 18000))
        await others.hear(KEY, "policy.turn-held")
    await others.say(KEY, decision(SAM, "a", 18000))

    async with policy(fresh_nats):
        forward = await others.hear(KEY, "policy.turn-forwarded")

    assert isinstance(forward.fact, TurnForwarded)
    assert forward.fact.verdicts[0].reason == "Released by sam."


async def test_a_tenant_without_a_pack_is_refused_at_once_and_holds_nobody_else_up(
    fresh_nats: NatsAccess, others: World
) -> None:
    nobodys = RunKey("nobody", "TCK-1-1")
    async with policy(fresh_nats):
        for key in (nobodys, KEY):
            await others.say(key, started(ALEX))
            await quoted(others, key, read())
        await others.hear(KEY, "policy.turn-forwarded")
        refused = await others.hear(nobodys, "policy.turn-refused")

    assert isinstance(refused.fact, TurnRefused)
    assert refused.fact.rule == "no-policy"


async def test_it_runs_as_a_process_and_ends_when_told_to(fresh_nats: NatsAccess, others: World) -> None:
    user, password = fresh_nats.user("policy")
    told = {
        "TURNGATE_NATS_URL": fresh_nats.url,
        "TURNGATE_NATS_USER": user,
        "TURNGATE_NATS_PASSWORD": password,
        "TURNGATE_TENANTS_DIR": str(DEPLOYED),
    }
    await others.say(KEY, started(ALEX))
    await quoted(others, KEY, read())

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "policy", env={"PATH": os.environ["PATH"], **told}, stderr=asyncio.subprocess.PIPE
    )
    await others.hear(KEY, "policy.turn-forwarded")
    process.send_signal(signal.SIGTERM)
    _, errors = await asyncio.wait_for(process.communicate(), 20)

    assert process.returncode == 0, errors.decode()


async def promote(nc: Client, text: str, pack: Pack | None = None) -> None:
    """What approvals says, once it has checked who asks for it."""
    line = JetStreamLog(nc, stream=TENANTS)
    fact = PolicyPromoted(pack=pack or parse(text).stamp, text=text, by=LEE)
    history = await line.read(TenantKey("acme"))
    await line.append(history, Draft(fact, cause=None, key=str(len(history.events))))


DEPLOYED_PACK = (DEPLOYED / "acme" / "policy.yaml").read_text()
STRICT = DEPLOYED_PACK.replace("automatic_up_to: 5000", "automatic_up_to: 100")
LOOSE = DEPLOYED_PACK.replace("automatic_up_to: 5000", "automatic_up_to: 40000")
TWO_FOR_ALL = DEPLOYED_PACK.replace("people: 1", "people: 2")


async def until_promoted(logs: Sequence[Mapping[str, Any]], times: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        while sum(log["event"] == "pack promoted" for log in logs) < times:
            await asyncio.sleep(0.01)


async def judged(others: World, run: str) -> Event:
    """What policy says of a refund of £9.00 in a run of its own."""
    key = RunKey("acme", run)
    await others.say(key, started(ALEX))
    await quoted(others, key, paying("a", 900))
    async with asyncio.timeout(PATIENCE):
        async for event in others.log.follow(tenant="acme"):
            if event.key == key and event.author == "policy":
                return event
    raise AssertionError("the log ended")


async def test_a_pack_that_was_promoted_before_the_start_is_judged_by_and_an_invalid_later_one_is_not(
    fresh_nats: NatsAccess, others: World, setup: Client
) -> None:
    await promote(setup, STRICT)
    await promote(setup, "name: nonsense\n", parse(STRICT).stamp)
    await others.say(KEY, started(ALEX))
    await quoted(others, KEY, paying("a", 900))

    async with policy(fresh_nats):
        held = await others.hear(KEY, "policy.turn-held")

    assert isinstance(held.fact, TurnHeld)
    assert held.fact.pack == parse(STRICT).stamp


async def test_every_process_uses_a_promoted_pack_at_once(fresh_nats: NatsAccess, others: World, setup: Client) -> None:
    async with policy(fresh_nats), policy(fresh_nats):
        before = await judged(others, "TCK-2002-1")
        with capture_logs() as logs:
            await promote(setup, STRICT)
            await until_promoted(logs, times=2)
        after = [await judged(others, f"TCK-2002-{n}") for n in range(2, 8)]

    assert before.kind == "policy.turn-forwarded"
    assert {event.kind for event in after} == {"policy.turn-held"}


async def test_a_pack_that_is_looser_than_the_shops_floor_leads_to_a_person_and_not_to_a_dead_end(
    fresh_nats: NatsAccess, others: World, setup: Client
) -> None:
    await promote(setup, LOOSE)
    await others.say(KEY, started(ALEX))
    quote = refund("a", 18_000, facts=first_ever(18_000) | {"decided_above_minor": 10_000})
    async with policy(fresh_nats):
        await quoted(others, KEY, quote)
        held = await others.hear(KEY, "policy.turn-held")
        await others.say(KEY, decision(SAM, "a", 18_000))
        forward = await others.hear(KEY, "policy.turn-forwarded")

    assert isinstance(held.fact, TurnHeld)
    assert (held.fact.holds[0].rule, held.fact.holds[0].needs) == ("shop-floor", Needs(amount_minor=18_000))
    assert isinstance(forward.fact, TurnForwarded)
    assert forward.fact.verdicts[0].reason == "Released by sam."


async def test_a_turn_that_waits_is_judged_by_the_pack_that_is_in_force_when_people_decide(
    fresh_nats: NatsAccess, others: World, setup: Client
) -> None:
    await others.say(KEY, started(ALEX))
    async with policy(fresh_nats):
        await quoted(others, KEY, paying("a", 18_000))
        held = await others.hear(KEY, "policy.turn-held")
        with capture_logs() as logs:
            await promote(setup, TWO_FOR_ALL)
            await until_promoted(logs)
        await others.say(KEY, decision(SAM, "a", 18_000))
        refused = await others.hear(KEY, "policy.turn-refused")

    assert isinstance(held.fact, TurnHeld)
    assert isinstance(refused.fact, TurnRefused)
    assert refused.fact.rule == "policy-changed"
    assert (held.fact.pack, refused.fact.pack) == (parse(DEPLOYED_PACK).stamp, parse(TWO_FOR_ALL).stamp)


async def test_approvals_may_ask_whether_a_text_is_a_pack(fresh_nats: NatsAccess) -> None:
    user, password = fresh_nats.user("approvals")
    settings = Settings(nats_url=fresh_nats.url, nats_user=user, nats_password=SecretStr(password))
    asker = await Bus.connect(settings, "approvals")
    try:
        async with policy(fresh_nats):
            good = await asker.ask(CHECK_PACK, {"tenant": "acme", "text": STRICT})
            bad = await asker.ask(CHECK_PACK, {"tenant": "acme", "text": "name: acme"})
    finally:
        await asker.close()

    assert good == {"status": 200, "pack": parse(STRICT).stamp.model_dump(mode="json")}
    assert bad["status"] == 422
    assert "line 1, version: is missing" in bad["detail"]
