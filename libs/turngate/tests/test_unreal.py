"""What the embedded system tells its console and its sign-in page of itself."""

from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from turngate.embedded.services import Place, beside, place_of
from turngate.issuer import Issuer
from turngate.people import everybody, tenants_directory
from turngate.provider import app

from .test_provider import ASKED

KEY = {"ANTHROPIC_API_KEY": "sk-ant-a-key"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_of(tmp_path, "127.0.0.1", 0)


@pytest.mark.parametrize(
    ("environ", "model"),
    [
        ({}, "stand-in"),
        ({"TURNGATE_MODEL_IS": "real"}, "stand-in"),
        (KEY, "real"),
        (KEY | {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}, "real"),
        (KEY | {"ANTHROPIC_BASE_URL": "http://127.0.0.1:8200"}, ""),
        (KEY | {"TURNGATE_MODEL_BASE_URL": "https://proxy.example"}, ""),
        (KEY | {"TURNGATE_MODEL_BASE_URL": "https://proxy.example", "TURNGATE_MODEL_IS": "real"}, "real"),
        ({"TURNGATE_MODEL_API_KEY": "a key"}, "real"),
    ],
)
def test_the_console_and_the_sign_in_page_are_told_what_answers(
    place: Place, environ: dict[str, str], model: str
) -> None:
    place = replace(place, environ=environ)
    gateway = place.environment("gateway")
    assert (gateway["TURNGATE_MODEL_IS"], gateway["TURNGATE_SHOP_IS"]) == (model, "demo")
    [issuer] = [child for child in beside(place) if child.name == "issuer"]
    assert issuer.env["TURNGATE_MODEL_IS"] == model


@pytest.mark.parametrize(
    ("model", "title"),
    [
        ("stand-in", "No real model, no real money."),
        ("real", "No real money."),
        (None, "No real money, not said whether the model is real."),
    ],
)
def test_the_embedded_sign_in_page_says_it_before_anybody_signs_in(tmp_path: Path, model: str, title: str) -> None:
    issuer = Issuer(tmp_path / "issuer")
    issuer.prepare()
    people = everybody(tenants_directory())
    served = app(issuer, people, "a secret", model=model)  # type: ignore[arg-type]
    client = TestClient(served, base_url="http://127.0.0.1:7000", follow_redirects=False)
    assert f"<b>{title}</b>" in client.get("/authorize", params=ASKED).text  # nobody may choose yet
    assert client.get("/enter", params={"key": issuer.secret}).status_code == 303
    chooser = client.get("/authorize", params=ASKED).text
    assert f"<b>{title}</b>" in chooser
    assert "alex" in chooser
