"""Which ports a system takes, and whom it finds there."""

import json
from pathlib import Path

import pytest
from contracts import health
from turngate.embedded import ports
from turngate.embedded.ports import Ports, free_port
from turngate.embedded.services import answers
from turngate.embedded.trouble import Trouble


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The only two ports there are."""
    first = free_port()
    both = [first, free_port(avoid=frozenset([first]))]
    monkeypatch.setattr(ports, "CHOICE", both)
    return set(both)


def test_a_port_given_without_a_name_is_not_chosen_again_for_a_name(tmp_path: Path, two: set[int]) -> None:
    """Nobody listens there yet, so it would pass for free: two services would meet on it."""
    chosen = Ports(tmp_path / "ports.json")

    assert {chosen.another(), chosen["policy-health"]} == two
    with pytest.raises(Trouble, match="No free port"):
        chosen["approvals-health"]


def test_a_port_that_is_meant_for_the_console_is_chosen_for_nothing_else(tmp_path: Path, two: set[int]) -> None:
    console, other = two
    (tmp_path / "ports.json").write_text(json.dumps({"policy-health": console}))

    assert Ports(tmp_path / "ports.json", meant=console)["policy-health"] == other


def test_who_answers_on_a_port_is_ready_only_under_its_own_name() -> None:
    server = health.serve("gateway", 0, lambda: True)
    url = f"http://127.0.0.1:{server.server_address[1]}/readyz"
    try:
        assert answers(url, "gateway")()
        assert not answers(url, "agent-runner")()
    finally:
        server.shutdown()
        server.server_close()
