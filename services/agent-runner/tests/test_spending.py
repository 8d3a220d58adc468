"""What a tenant's model calls cost a day: what each figure counts, and who may see it."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import nats
import pytest
from agent_runner.ledger import Ledger, Pool
from agent_runner.settings import Settings
from agent_runner.spending import Spending
from contracts.asks import SPEND
from contracts.identity import ROLES, Issuer, Verifier
from contracts.parts import Json
from standin.director import Director
from turngate.issuer import ISSUER
from turngate.issuer import Issuer as Signing
from turngate.testing import Database, NatsAccess

from .conftest import Causes
from .house import LOOK, REPLY, House, change, end_of, running
from .test_model import request
from .told import answer, text

ASKED = replace(request(), at_most_micro_usd=1_000)


@pytest.fixture
def signing(data_dir: Path) -> Signing:
    signing = Signing(data_dir / "issuer")
    signing.prepare()
    return signing


def believed(signing: Signing, *tenants: str) -> Issuer:
    return Issuer(issuer=ISSUER, jwks=str(signing.jwks), tenants=list(tenants))


@pytest.fixture
def spending(pool: Pool, signing: Signing, tenant: str) -> Spending:
    return Spending(Ledger(pool).days, Verifier([believed(signing, tenant, "globex")], "turngate"))


@pytest.fixture
def token(signing: Signing, tenant: str) -> str:
    return signing.issue("alex", tenant, "operator")


def day(tenant: str, ago: int = 0, **figures: int) -> Json:
    names = ("reserved", "spent", "saved", "uncertain")
    date = (datetime.now(UTC) - timedelta(days=ago)).date().isoformat()
    return {"tenant": tenant, "day": date, **{f"{name}_micro_usd": figures.get(name, 0) for name in names}}


async def test_a_call_is_reserved_while_it_is_made_and_then_spent(
    pool: Pool, spending: Spending, token: str, tenant: str, another: Causes
) -> None:
    ledger, cause = Ledger(pool), another()
    await ledger.reserve(cause, ASKED)
    assert await spending.asked({"token": token}) == {"status": 200, "days": [day(tenant, reserved=1_000)]}
    await ledger.record(cause, answer(text("here"), cost=300))
    assert (await spending.asked({"token": token}))["days"] == [day(tenant, spent=300)]


async def test_an_answer_that_is_used_again_saves_what_it_cost_once_however_often(
    pool: Pool, spending: Spending, token: str, tenant: str, another: Causes
) -> None:
    ledger, cause, said = Ledger(pool), another(), answer(text("half \x00"), cost=300)
    await ledger.reserve(cause, ASKED)
    await ledger.record(cause, said)
    for first in (True, False):  # with the log away, say
        assert await ledger.reserve(cause, ASKED) == said
        assert await ledger.reused(cause, said) is first
    assert (await spending.asked({"token": token}))["days"] == [day(tenant, spent=300, saved=300)]


async def test_what_a_process_took_with_it_when_it_died_is_uncertain(
    pool: Pool, spending: Spending, token: str, tenant: str, another: Causes, postgres: Database
) -> None:
    ledger, cause = Ledger(pool), another()
    await ledger.reserve(cause, ASKED)
    change(postgres, tenant, "held_until = now() - interval '1 second'")
    assert (await spending.asked({"token": token}))["days"] == [day(tenant, uncertain=1_000)]
    await ledger.reserve(cause, ASKED)  # taken over
    await ledger.record(cause, answer(text("here"), cost=300))
    assert (await spending.asked({"token": token}))["days"] == [day(tenant, spent=300, uncertain=1_000)]


async def test_days_with_calls_are_told_the_oldest_first_as_far_back_as_was_asked(
    pool: Pool, spending: Spending, token: str, tenant: str, another: Causes, postgres: Database
) -> None:
    ledger = Ledger(pool)
    for cost, ago in ((3, 0), (2, 1), (1, 2)):
        cause = another()
        await ledger.reserve(cause, ASKED)
        await ledger.record(cause, answer(text("here"), cost=cost))
        change(postgres, tenant, "reserved_at = %s", datetime.now(UTC) - timedelta(days=ago), cause=cause)
    spent = [day(tenant, 2, spent=1), day(tenant, 1, spent=2), day(tenant, 0, spent=3)]
    assert (await spending.asked({"token": token, "days": 3}))["days"] == spent
    assert (await spending.asked({"token": token, "days": 2}))["days"] == spent[1:]
    assert (await spending.asked({"token": token, "days": 1}))["days"] == spent[2:]


@pytest.mark.parametrize("role", sorted(ROLES))
async def test_who_may_see_it(spending: Spending, signing: Signing, tenant: str, role: str) -> None:
    answered = await spending.asked({"token": signing.issue("somebody", tenant, role)})
    assert answered["status"] == (200 if "spend" in ROLES[role] else 403)
    narrowed = signing.issue("somebody", tenant, role, scope="read")
    assert (await spending.asked({"token": narrowed}))["status"] == 403


async def test_the_tenant_is_the_tokens(
    pool: Pool, spending: Spending, signing: Signing, another: Causes, tenant: str
) -> None:
    await Ledger(pool).reserve(another(), ASKED)
    theirs = await spending.asked({"token": signing.issue("gwen", "globex", "operator"), "tenant": tenant})
    assert [one["tenant"] for one in theirs.get("days", ())] == []


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "nonsense"}, 403),
        ({"token": ""}, 403),
        ({"token": None}, 422),
        ({"days": 0}, 422),
        ({"days": 91}, 422),
        ({"days": "30"}, 422),
    ],
)
async def test_what_is_no_question_is_refused_with_the_reason(
    spending: Spending, token: str, changes: Json, status: int
) -> None:
    answered = await spending.asked({"token": token, **changes})
    assert (answered["status"], set(answered)) == (status, {"status", "title", "detail"})
    assert token not in json.dumps(answered)


async def test_the_gateway_asks_and_the_runner_answers(
    home: House, told: Settings, director: Director, fresh_nats: NatsAccess, signing: Signing
) -> None:
    await director.script("TCK-80", [LOOK, REPLY])
    asked = {"token": signing.issue("alex", "acme", "operator")}
    user, password = fresh_nats.user("gateway")
    gateway = await nats.connect(fresh_nats.url, user=user, password=password, inbox_prefix=b"_INBOX_gateway")
    async with running(told.model_copy(update={"issuers": [believed(signing, "acme")]})):
        end = end_of(await home.ended(await home.starts("TCK-80-1")))
        answered: dict[str, Any] = json.loads((await gateway.request(SPEND, json.dumps(asked).encode(), 10)).data)
    await gateway.close()
    assert answered == {"status": 200, "days": [day("acme", spent=end.cost_micro_usd)]}
