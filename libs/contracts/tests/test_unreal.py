"""What people are told where not everything is real."""

import itertools

import pytest
from contracts.unreal import model_behind, notice

MODELS, SHOPS = ("real", "stand-in", None), ("real", "demo", None)


def test_only_where_both_are_known_to_be_real_nothing_is_said() -> None:
    silent = [one for one in itertools.product(MODELS, SHOPS) if notice(*one) is None]
    assert silent == [("real", "real")]


def test_a_stand_in_and_the_demo_are_named_in_plain_words() -> None:
    found = notice("stand-in", "demo")
    assert found is not None
    assert found.title == "No real model, no real money."
    assert "stand-in" in found.detail
    assert "nobody is paid" in found.detail


@pytest.mark.parametrize(("model", "shop"), list(itertools.product(MODELS, SHOPS)))
def test_what_is_said_is_so(model: str | None, shop: str | None) -> None:
    found = notice(model, shop)  # type: ignore[arg-type]
    if found is None:
        return
    text = f"{found.title} {found.detail}".lower()
    assert ("no real model" in text) is (model == "stand-in")
    assert ("no real money" in text) is (shop == "demo")
    assert ("a real model answers, and" in text) is (model == "real")
    assert ("the shop is real:" in text) is (shop == "real")
    assert ("not said whether" in text) is (None in (model, shop))


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        (None, "real"),
        ("", "real"),
        ("https://api.anthropic.com", "real"),
        ("https://api.anthropic.com/", "real"),
        ("http://api.anthropic.com", None),
        ("http://127.0.0.1:8200", None),
        ("https://api.anthropic.com.example", None),
        ("https://api.anthropic.com@example.org", None),
    ],
)
def test_only_the_makers_own_address_is_known_to_be_a_real_model(base_url: str | None, model: str | None) -> None:
    assert model_behind(base_url) == model
