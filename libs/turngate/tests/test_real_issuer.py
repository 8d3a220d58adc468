"""A system on one machine whose people are somebody else's: the embedded issuer is off, and tokens come from there."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from turngate import testing
from turngate.embedded import state
from turngate.issuer import ISSUER, Issuer
from turngate.people import STAFF

SMALL = Path(__file__).with_name("small_system.py")


@dataclass(frozen=True)
class House:
    data: Path
    theirs: Issuer
    environ: dict[str, str]

    def turngate(self, *words: str, token: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "turngate", *words, "--data", str(self.data)]
        env = self.environ | {"TURNGATE_TOKEN": token}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    def token(self, who: str) -> str:
        return self.theirs.issue_to(next(one for one in STAFF if one.subject == who))


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with testing.directory() as place:
        theirs = Issuer(place / "theirs")
        theirs.prepare()
        believed = {"issuer": ISSUER, "jwks": str(theirs.jwks), "tenants": ["acme", "globex"]}
        environ = os.environ | {"TURNGATE_ISSUERS": json.dumps([believed])}
        data = place / "data"
        command = [sys.executable, SMALL, data, "0", "approvals"]
        process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert any(line.strip() == "ready" for line in process.stdout)
            yield House(data, theirs, environ)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def test_the_embedded_issuer_is_off_and_issues_nothing(house: House) -> None:
    running = state.read(house.data)
    assert "issuer" not in running.processes
    assert running.issuer_url is None
    refused = house.turngate("token", "--as", "alex")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "TURNGATE_TOKEN" in refused.stderr


def test_what_asks_for_a_person_takes_the_token_of_the_real_issuer(house: House) -> None:
    without = house.turngate("subscriber", "add", "crm", "--tenant", "acme")
    assert (without.returncode, "TURNGATE_TOKEN" in without.stderr) == (1, True), without.stderr
    others = house.turngate("subscriber", "add", "crm", "--tenant", "acme", token=house.token("gia"))
    assert (others.returncode, "a token of globex" in others.stderr) == (1, True), others.stderr
    added = house.turngate("subscriber", "add", "crm", "--tenant", "acme", token=house.token("ada"))
    assert added.returncode == 0, added.stderr


def test_a_token_of_a_demo_key_opens_nothing(house: House, tmp_path: Path) -> None:
    demo = Issuer(tmp_path)
    demo.prepare()
    false = demo.issue("ada", "acme", "admin")
    refused = house.turngate("subscriber", "add", "false", "--tenant", "acme", token=false)
    assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
    erased = house.turngate("erase", "--customer", "C-1004", token=false)
    assert (erased.returncode, erased.stdout) == (1, "")
