"""Every row of the shared argument cases: an explanation and nothing written, but for the one ordinary effect."""

import asyncio
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from contracts.canonical import canonical
from contracts.parts import UNREADABLE
from tools_shop import demo

SHARED = Path(os.environ.get("TURNGATE_SHARED", Path(__file__).parents[4] / "shared"))
ROWS_FILE = SHARED / "cases" / "arguments.jsonl"
ROWS = [json.loads(line) for line in ROWS_FILE.read_text().splitlines()] if ROWS_FILE.exists() else []
ENTRIES = demo.read(Path(__file__).parent / "data" / "arguments_shop.yaml")

TEXTS = {
    "ORDER": "ORD-1042", "OTHER_ORDER": "ORD-2042", "UNKNOWN_ORDER": "ORD-9999", "ORDER_UNSHIPPED": "ORD-1043",
    "ORDER_TWO_PARCELS": "ORD-1044", "ORDER_REFUNDED": "ORD-1045", "ORDER_UNPAID": "ORD-1046", "ORDER_EUR": "ORD-1047",
    "ORDER_OLD": "ORD-1048", "ORDER_CHARGEBACK": "ORD-1049", "SUB": "SUB-301", "SUB_CANCELLED": "SUB-302",
    "SUB_MIN_TERM": "SUB-303", "OTHER_SUB": "SUB-304", "EMAIL": "sam.rivers@shop.example",
    "OTHER_EMAIL": "ola.brandt@shop.example", "OTHER_CUSTOMER": "C-2",
}  # fmt: skip
NUMBERS = {"PAID": 18000, "LEFT": 17000, "LIMIT": 5000, "OVER_LIMIT": 6000}
CHANGES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "en_dash": lambda text: text.replace("-", "–"),
    "nbsp_inside": lambda text: text.replace("-", "-\u00a0"),
    "zwsp_inside": lambda text: text.replace("-", "-\u200b"),
    "nul_inside": lambda text: text.replace("-", "-\x00"),
    "cyrillic": lambda text: text.translate(str.maketrans({"O": "О", "o": "о", "S": "Ѕ"})),
    "fullwidth": lambda text: text.translate(str.maketrans("0123456789", "０１２３４５６７８９")),
    "arabic_digits": lambda text: text.translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    "superscript": lambda text: text.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")),
    "underscore": lambda text: f"{text[:-1]}_",
    "plus_tag": lambda text: text.replace("@", "+tag@"),
    "dots": lambda text: text.replace(".", "", 1),
    "dotted_I": lambda text: text.replace("i", "İ"),
}
RENAMED = {("find_customer", "email"): "query", ("search_help_centre", "query"): "question"}
SENT = {"twice": 2, "twice_at_once": 2, "two_halves_at_once": 2, "same_call_twice": 2, "split_under_limit": 3}
AT_ONCE = ("twice_at_once", "two_halves_at_once")
# What each kind of expectation must have in its words.
SAYS = {
    r"not recognised": r"is not recognised|is expected",
    r"asks for the order": r"Which order\?",
    r"asks which": r"Which subscription\?",
    r"no such order|unknown order|order that does not exist": r"There is no order|does not take",
    r"unknown one": r"There is no subscription",
    r"one reference is expected": r"One order reference is expected",
    r"reference is text": r"reference is text",
    r"too long": r"too long",
    r"whole pence|whole number": r"whole number",
    r"asks for the amount": r"How much\?",
    r"must be (positive|at least)": r"must be positive: at least 1 penny",
    r"asks for a reason": r"Why\?",
    r"unknown key": r"does not take",
    r"person must approve": r"a person must approve",
    r"original payment method": r"original payment method",
    r"could not be read": r"could not be read|does not take",
    r"no such customer|asks for (an|the|one) address": r"No customer|One customer|address",
    r"nothing was found$": r"Nothing was found|\[",
    r"not been sent": r"has not been sent yet",
    r"both parcels": r"(?s)T-2.*T-3",
    r"how much is left|most that can be refunded": r"the most|could not be read",
    r"end date": r"It ends on",
    r"bank is returning": r"bank is returning.*escalate_to_human",
    r"time limit": r"time limit.*escalate_to_human",
    r"nothing was paid": r"Nothing was paid",
    r"order currency": r"order's currency",
    r"refunded already$": r"refunded already",
    r"was cancelled already": r"cancelled already. It ends on",
    r"when it can end": r"can end on .*escalate_to_human",
}

pytestmark = pytest.mark.skipif(not ROWS, reason=f"{ROWS_FILE} is not here: set TURNGATE_SHARED")


def filled(value: Any, *, as_text: bool = False) -> Any:
    """A row's value with its placeholders and large values written out."""
    match value:
        case {"$repeat": [text, times]}:
            return text * times
        case {"$repeat_pair": [before, middle, after, times]}:
            return before * times + middle + after * times
        case {"$int_digits": digits}:
            return 10 ** (digits - 1)
        case {"$concat": parts}:
            return "".join(filled(part) for part in parts)
        case dict():
            return {key: filled(item) for key, item in value.items()}
        case list():
            return [filled(item) for item in value]
        case str():
            number = re.fullmatch(r"\{(-?)([A-Z_]+)(/2)?([+-]1)?\}", value)
            if number and number[2] in NUMBERS and not as_text:
                whole = NUMBERS[number[2]] // (2 if number[3] else 1) + int(number[4] or 0)
                return -whole if number[1] else whole
            return re.sub(r"\{([A-Z_]+)(?:\|(\w+))?\}", _placeholder, value)
    return value


def _placeholder(found: re.Match[str]) -> str:
    if found[1] in NUMBERS:
        return str(NUMBERS[found[1]])
    return CHANGES[found[2]](TEXTS[found[1]]) if found[2] else TEXTS.get(found[1], found[0])


def as_heard(raw: str) -> dict[str, Any]:
    """A model's text as the runner hands it on: an object that the log can carry, or the mark that it is none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError("a name is given twice")
        return dict(pairs)

    try:
        value = json.loads(raw, object_pairs_hook=once)
        canonical(value)
        if isinstance(value, dict):
            return value
    except (ValueError, RecursionError):
        pass
    return {UNREADABLE: "not one JSON object"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['id']}-{row['tool']}-{row['category']}")
async def test_odd_arguments_get_an_explanation_and_write_no_more_than_they_should(
    row: dict[str, Any], open_shop
) -> None:
    shop = open_shop(ENTRIES)
    shop.email = TEXTS["EMAIL"]
    tool, expect = row["tool"], row["expect"]
    arguments = as_heard(filled(row["raw"], as_text=True)) if row["arguments"] is None else filled(row["arguments"])
    arguments = {RENAMED.get((tool, name), name): value for name, value in arguments.items()}
    if row["category"] == "amount_left_plus_one_after_partial":
        await shop.run(("issue_refund", {"order_reference": TEXTS["ORDER"], "amount_pence": 1000, "reason": "partial"}))
    before = written(shop)

    async def send(n: int) -> Any:
        turn = shop.turn((tool, arguments), run=f"TCK-{n}-1" if tool != "escalate_to_human" else "TCK-9-1", turn=10 + n)
        quotes = await shop.quote(turn)
        canonical([quote.model_dump(mode="json") for quote in quotes])
        executed = await shop.execute(turn, quotes)
        while not hasattr(executed, "results"):
            executed = await shop.execute(turn, await shop.quote(turn))
        canonical([result.model_dump(mode="json") for result in executed.results])
        return executed.results[0]

    times = range(SENT.get(row["category"], 1))
    results = await asyncio.gather(*map(send, times)) if row["category"] in AT_ONCE else [await send(n) for n in times]

    writes = written(shop) - before
    if expect["writes"] == "none":
        assert writes == 0, results[0].content
    else:
        assert writes == 1, [result.content for result in results]
    assert all(len(result.content) < 2500 for result in results)
    if expect["outcome"] == "refuse":
        assert all(result.is_error for result in results), results[0].content
    else:
        assert any(not result.is_error for result in results), results[0].content
    for said, must in SAYS.items():
        if re.search(said, expect["says"]):
            assert any(re.search(must, result.content) for result in results), (expect["says"], results[0].content)
    if expect["outcome"] == "accept_normalised" and tool in ("get_order", "get_shipment_status", "find_customer"):
        plain = {"find_customer": ("query", TEXTS["EMAIL"])}.get(tool, ("order_reference", TEXTS["ORDER"]))
        assert [result.content for result in await shop.run((tool, dict([plain])))] == [results[0].content]
    if "other_customer" in row["category"] and tool != "escalate_to_human":
        name, value = next(iter(arguments.items()))
        unknown = {"ORD-2042": "ORD-9999", "SUB-304": "SUB-999"}.get(value, "nobody@shop.example")
        same = await shop.run((tool, {**arguments, name: unknown}), run="TCK-8-1")
        assert same[0].content.replace(unknown, value) == results[0].content


def written(shop: Any) -> int:
    """How many rows the shop's writes have left."""
    counts = shop.rows(
        "select (select count(*) from shop.refunds) + (select count(*) from shop.escalations)"
        " + (select count(*) from shop.subscriptions where cancelled_at is not null) as total"
    )
    return int(counts[0]["total"])
