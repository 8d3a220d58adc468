"""When an approval with changes also stands for what the changes came to."""

from typing import Any

import pytest
from contracts.canonical import sha256
from contracts.edits import carries_over
from contracts.parts import CallQuote, Effect
from hypothesis import given
from hypothesis import strategies as st

WAS = CallQuote(
    call_id="c-1",
    tool="issue_refund",
    kind="write",
    arguments={"amount_pence": 18_000},
    subject="C-1004",
    effect=Effect(summary="Refund", object="ORD-10042", amount_minor=18_000, currency="GBP"),
    digest=sha256("was"),
)


def now(effect: dict[str, Any] | None = None, **changes: Any) -> CallQuote:
    """`WAS`, changed into a refund of £120.00 by a person."""
    assert WAS.effect is not None
    changed = {"amount_minor": 12_000} | (effect or {})
    base: dict[str, Any] = {
        "effect": WAS.effect.model_copy(update=changed),
        "digest": sha256("now"),
        "edited": WAS.digest,
    }
    return WAS.model_copy(update=base | changes)


def test_less_money_on_the_same_object_is_approved_with_the_change() -> None:
    assert carries_over(WAS, now())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(now({"amount_minor": 18_001}), id="more money"),
        pytest.param(now({"amount_minor": 0}), id="nothing"),
        pytest.param(now({"amount_minor": -1}), id="less than nothing"),
        pytest.param(now({"amount_minor": None}), id="an unknown amount"),
        pytest.param(now({"object": "ORD-10041"}), id="another order"),
        pytest.param(now({"currency": "USD"}), id="another currency"),
        pytest.param(now(subject="C-1009"), id="another customer"),
        pytest.param(now(tool="cancel_subscription"), id="another tool"),
        pytest.param(now(call_id="c-2"), id="another call"),
        pytest.param(now(kind="read"), id="no write"),
        pytest.param(now().model_copy(update={"effect": None}), id="no effect"),
        pytest.param(now(will_fail="It was refunded."), id="it would fail"),
        pytest.param(now(edited=None), id="nobody changed it"),
        pytest.param(now(edited=sha256("another")), id="it was changed from another"),
    ],
)
def test_anything_else_is_another_call(other: CallQuote) -> None:
    assert not carries_over(WAS, other)


@given(st.integers(-(2**53) + 1, 2**53 - 1), st.integers(-(2**53) + 1, 2**53 - 1))
def test_never_more_than_was_asked(before: int, after: int) -> None:
    assert WAS.effect is not None
    was = WAS.model_copy(update={"effect": WAS.effect.model_copy(update={"amount_minor": before})})

    assert carries_over(was, now({"amount_minor": after})) is (0 < after <= before)
