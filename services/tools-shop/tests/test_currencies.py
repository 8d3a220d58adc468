"""A shop that sells in another currency: what its model and its people are told of amounts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contracts.facts import TurnProposed
from contracts.parts import ToolCall, Usage
from contracts.subjects import RunKey
from pydantic import ValidationError
from tools_shop import demo
from tools_shop.demo import DemoShop
from tools_shop.stop_switch import Stop
from tools_shop.turn import Executed, Turn
from tools_shop.unit import Unit

from .shops import TENANTS, Shop, started_for
from .test_turns import look, refund

NNBSP, NBSP = "\u202f", "\u00a0"
XOF = Unit("XOF", "fr_SN")
Open = Callable[[DemoShop], Shop]


def sells_in(open_shop: Open, currency: str) -> Shop:
    entries = demo.read(TENANTS / "acme" / "demo.yaml")
    return open_shop(entries.model_copy(update={"currency": currency}))


def asked(shop: Shop, unit: Unit, *calls: tuple[str, dict[str, Any]]) -> Turn:
    """As a run of a tenant with this currency and locale has it."""
    started = started_for(shop.email).model_copy(update={"currency": unit.currency, "locale": unit.locale})
    proposed = TurnProposed(
        turn=1,
        agent="support",
        content=[],
        calls=[ToolCall(call_id=f"c{n}", tool=tool, arguments=given) for n, (tool, given) in enumerate(calls)],
        stop_reason="tool_use",
        usage=Usage(),
        cost_micro_usd=0,
        request_digest="0" * 64,
        tools_digest="0" * 64,
    )
    key, proposal = RunKey(shop.tenant, "TCK-1-1"), "5a6cdd30-1a66-53a8-9f60-6a1f0c5b8a5e"
    return Turn.of(key, started, shop.toolset, proposal, proposed, {})


@pytest.mark.parametrize(
    ("unit", "shown", "left"),
    [
        (XOF, f"4{NNBSP}000{NBSP}XOF", f"14{NNBSP}000{NBSP}XOF (14000 minor units)"),
        (Unit("JPY", "ja_JP"), "￥4,000", "￥14,000 (14000 minor units)"),
        (Unit("KWD", "en_GB"), f"KWD{NBSP}4.000", f"KWD{NBSP}14.000 (14000 minor units)"),
        (Unit("GBP", "en_GB"), "£40.00", "£140.00 (14000 pence)"),
        (Unit("XOF"), "XOF 4,000", "XOF 14,000 (14000 minor units)"),
    ],
)
async def test_what_the_model_reads_and_what_people_release_is_in_the_shops_currency(
    open_shop: Open, unit: Unit, shown: str, left: str
) -> None:
    shop = sells_in(open_shop, unit.currency)
    turn = asked(shop, unit, refund(4000), look())
    quotes = await shop.quote(turn)
    assert quotes[0].effect is not None
    assert quotes[0].effect.summary == f"Refund {shown} for ORD-10042 to the original payment method"
    executed = await shop.execute(turn, quotes)
    assert isinstance(executed, Executed)
    paid, seen = executed.results
    assert paid.content.startswith(f"Refunded {shown} (4000 ")
    assert f"Still refundable: {left}." in paid.content
    assert f"ALREADY REFUNDED: {shown} (4000 " in seen.content
    assert "40.00" not in paid.content + seen.content or unit.currency == "GBP"
    assert shop.refunds() == [4000]


async def test_a_run_from_before_there_were_locales_has_the_digests_that_it_had(open_shop: Open) -> None:
    shop = sells_in(open_shop, "XOF")
    before, now = [await shop.quote(asked(shop, unit, refund(4000))) for unit in (Unit(), XOF)]
    assert before[0].digest == now[0].digest


@pytest.mark.parametrize(
    ("unit", "example"),
    [
        (XOF, f"1250 is 1{NNBSP}250{NBSP}XOF"),
        (Unit("JPY", "en_US"), "1250 is ¥1,250"),
        (Unit("KWD", ""), "1250 is KWD 1.250"),
        (Unit("GBP", "en_GB"), "1250 is £12.50"),
        (Unit("USD", "en_US"), "1250 is $12.50"),
        (Unit(), "the order's currency, as get_order shows it in brackets"),
        (Unit("XXX", "en_GB"), "the order's currency, as get_order shows it in brackets"),
    ],
)
async def test_schema_and_explanations_speak_of_the_tenants_currency(acme: Shop, unit: Unit, example: str) -> None:
    toolset = acme.toolset.of(unit)
    [tool] = [one for one in toolset.catalogue["tools"] if one["name"] == "issue_refund"]
    assert example in tool["description"]
    assert example in tool["input_schema"]["properties"]["amount_pence"]["description"]
    wrong: list[dict[str, Any]] = [{}, {"amount_pence": "12.50"}, {"amount_pence": 12.5}, {"amount_pence": "1" * 50}]
    calls = [("issue_refund", {"order_reference": "ORD-10042", "reason": "r"} | one) for one in wrong]
    for quote in await acme.quote(asked(acme, unit, *calls)):
        assert quote.will_fail is not None
        assert example in quote.will_fail
    [none] = await acme.quote(asked(acme, unit, refund(0)))
    assert none.will_fail is not None
    assert "must be positive: at least 1" in none.will_fail
    if "12.50" not in example:
        assert "12.50" not in json.dumps(toolset.catalogue, ensure_ascii=False)


def test_a_toolset_is_made_once_for_each_currency_and_says_so_by_its_digest(acme: Shop) -> None:
    digests = {acme.toolset.of(unit).catalogue["digest"] for unit in (Unit(), XOF, Unit("JPY", "ja_JP"))}
    assert len(digests) == 3
    assert acme.toolset.of(XOF) is acme.toolset.of(XOF)


def test_a_stop_gives_its_amount_as_the_run_writes_amounts() -> None:
    assert (
        Stop(None, 18000)
        .text("XOF", "fr_SN")
        .startswith(f"Everything that changes something above 18{NNBSP}000{NBSP}XOF to one customer")
    )


@pytest.mark.parametrize("currency", ["EURO", "XXX", "gbp"])
def test_a_demo_shop_in_a_currency_that_nobody_knows_is_refused(tmp_path: Path, currency: str) -> None:
    text = (TENANTS / "acme" / "demo.yaml").read_text().replace("currency: GBP", f"currency: {currency}")
    (tmp_path / "demo.yaml").write_text(text)
    with pytest.raises(ValidationError, match=f"{currency}' is no currency that ISO 4217 has a minor unit for"):
        demo.read(tmp_path / "demo.yaml")
