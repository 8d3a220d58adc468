"""What tools-shop answers to whom: its catalogue, and what a changed call would do."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import nats
import pytest
from contracts.asks import CATALOGUE, LARGEST_ARGUMENTS, QUOTE
from contracts.bus import Bus
from contracts.edits import carries_over
from contracts.facts import CallDecided, RunCancelled
from contracts.parts import CallQuote, Json
from contracts.subjects import RunKey
from tools_shop import demo
from turngate.issuer import Issuer as Signing
from turngate.testing import NatsAccess

from .others import GET, SAM, Others, forwarded, held, quoted, refund
from .shops import OPERATOR, TENANTS, Shop, started_for

Ask = Callable[..., Awaitable[Json]]


@pytest.fixture
async def ask(nats_server: NatsAccess, running: Bus, acme: Shop, signing: Signing) -> AsyncIterator[Ask]:
    """Asks, as the gateway hands it on, for a quote of call b of turn 1 with £90.00 instead."""
    user, password = nats_server.user("gateway")
    client = await nats.connect(nats_server.url, user=user, password=password, inbox_prefix=b"_INBOX_gateway")
    gateway = Bus(client, "gateway")

    async def one(**other: Any) -> Json:
        body = {
            "token": signing.issue("sam", acme.tenant, "approver"),
            "run": "TCK-2004-1",
            "turn": 1,
            "call_id": "b",
            "edited": {**refund().arguments, "amount_pence": 9000},
        }
        return await gateway.ask(QUOTE, body | other)

    yield one
    await client.close()


async def waiting(others: Others, acme: Shop) -> tuple[CallQuote, Any, Any]:
    """A held refund of £180.00."""
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, GET, refund(minor=18000))
    return quotes.quotes[1], quotes, await others.say(held(quotes, "b"), event)


async def test_a_changed_call_is_quoted_beside_what_it_was_and_nothing_is_said_or_done(
    others: Others, acme: Shop, ask: Ask
):
    quote, _, _ = await waiting(others, acme)
    before = await others.events()
    answer = await ask(edited={**refund().arguments, "order_reference": " ord-10042", "amount_pence": 9000})
    assert answer["status"] == 200
    assert CallQuote.model_validate(answer["was"]) == quote
    now = CallQuote.model_validate(answer["quote"])
    assert now.effect.amount_minor == 9000
    assert now.arguments == {"order_reference": "ORD-10042", "amount_pence": 9000, "reason": "unworn"}
    assert carries_over(quote, now)
    assert await others.events() == before
    assert acme.refunds() == []


async def test_what_the_changed_call_would_fail_with_is_told(others: Others, acme: Shop, ask: Ask):
    await waiting(others, acme)
    answer = await ask(edited={**refund().arguments, "amount_pence": 18001})
    assert "the most is £180.00" in answer["quote"]["will_fail"]
    answer = await ask(edited={"amount": "all of it"})
    assert "does not take amount" in answer["quote"]["will_fail"]


async def test_calls_that_were_declined_are_not_counted_in(others: Others, acme: Shop, ask: Ask):
    await others.say(started_for(acme.email))
    event, quotes = await quoted(others, refund("a", 9000), refund("b", 8000))
    hold = await others.say(held(quotes, "a"), event)
    assert (await ask())["quote"]["duplicate_of"]
    digest = quotes.quotes[0].digest
    await others.say(CallDecided(turn=1, call_id="a", digest=digest, decision="decline", by=SAM), hold)
    assert (await ask())["quote"]["duplicate_of"] is None


@pytest.mark.parametrize("role", ["operator", "approver", "lead", "auditor", "admin"])
async def test_whoever_may_read_a_run_may_ask(others: Others, acme: Shop, ask: Ask, signing: Signing, role: str):
    await waiting(others, acme)
    assert (await ask(token=signing.issue("someone", acme.tenant, role)))["status"] == 200


async def test_who_is_not_signed_in_or_may_not_read_is_told_nothing(
    others: Others, acme: Shop, ask: Ask, signing: Signing, tmp_path: Any
):
    await waiting(others, acme)
    forger = Signing(tmp_path / "forger")
    forger.prepare()
    refused = {
        "no token": {"token": None},
        "nonsense": {"token": "nonsense"},
        "a key of their own": {"token": forger.issue("sam", acme.tenant, "approver")},
        "expired": {"token": signing.issue("sam", acme.tenant, "approver", lifetime=-70)},
        "another tenant, which the issuer may not name": {"token": signing.issue("gail", "globex", "lead")},
        "a customer": {"token": signing.issue("cust-C-1004", acme.tenant, "customer")},
        "a token without the scope": {"token": signing.issue("sam", acme.tenant, "approver", scope="decide")},
    }
    for what, other in refused.items():
        answer = await ask(**other)
        assert answer["status"] == 403, what
        assert set(answer) == {"status", "title", "detail"}, what


async def test_the_tenant_is_the_tokens_whatever_the_request_names(
    others: Others, acme: Shop, open_shop: Any, ask: Ask
):
    # given a run of the same name in another tenant
    globex = open_shop(demo.read(TENANTS / "globex" / "demo.yaml"))
    theirs = Others(others.world, RunKey(globex.tenant, "TCK-2004-7"))
    await theirs.say(started_for("imani.brooks@mail.example"))
    await quoted(theirs, GET, refund())
    # when it is asked for with a token of this one / then there is no such run
    assert (await ask(run="TCK-2004-7"))["status"] == 404
    # and a request that names a tenant is none
    assert (await ask(tenant=globex.tenant, run="TCK-2004-7"))["status"] == 422


@pytest.mark.parametrize(
    ("other", "status"),
    [
        ({"run": "TCK-2004-9"}, 404),
        ({"run": "run.>"}, 404),
        ({"run": None}, 422),
        ({"turn": 2}, 409),
        ({"turn": "1"}, 422),
        ({"call_id": "z"}, 404),
        ({"call_id": ["b"]}, 422),
        ({"edited": None}, 422),
        ({"edited": "£90"}, 422),
        ({"edited": {"reason": "x" * LARGEST_ARGUMENTS}}, 422),
    ],
)
async def test_what_cannot_be_quoted_is_said_so(
    others: Others, acme: Shop, ask: Ask, other: dict[str, Any], status: int
):
    await waiting(others, acme)
    assert (await ask(**other))["status"] == status


@pytest.mark.parametrize("how", ["forwarded", "cancelled"])
async def test_once_nobody_is_waited_for_nothing_is_quoted(others: Others, acme: Shop, ask: Ask, how: str):
    _, quotes, hold = await waiting(others, acme)
    if how == "forwarded":
        await others.say(forwarded(quotes), hold)
    else:
        await others.say(RunCancelled(by=OPERATOR))
    assert (await ask())["status"] == 409


async def test_the_catalogue_is_strict_and_says_which_tools_write(running: Bus, nats_server: NatsAccess):
    user, password = nats_server.user("agent-runner")
    client = await nats.connect(nats_server.url, user=user, password=password, inbox_prefix=b"_INBOX_agent-runner")
    asker = Bus(client, "agent-runner")
    catalogue = await asker.ask(CATALOGUE, {"tenant": "acme", "toolset": "shop"})
    await client.close()
    kinds = {tool["name"]: tool["kind"] for tool in catalogue["tools"]}
    assert kinds == {
        "find_customer": "read", "get_order": "read", "get_shipment_status": "read", "search_help_centre": "read",
        "issue_refund": "write", "cancel_subscription": "write", "escalate_to_human": "write",
    }  # fmt: skip
    assert all(tool["input_schema"]["additionalProperties"] is False for tool in catalogue["tools"])
    assert len(catalogue["digest"]) == 64
