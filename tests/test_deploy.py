"""The composed system, held against what the services ask for. No container engine is needed, and none is used."""

import asyncio
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from contracts import topology
from nats.aio.client import Client
from turngate.databases import KEEPS
from turngate.embedded.binaries import nats_server

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = tuple(topology.AUTHORS)


def settings_of(service: str) -> type[Any]:
    settings: type[Any] = importlib.import_module(f"{service.replace('-', '_')}.settings").Settings
    return settings


def names(settings: type[Any]) -> dict[str, bool]:
    """Each variable that the settings read, and whether they must have it."""
    found = {}
    for name, field in settings.model_fields.items():
        aliases = getattr(field.validation_alias, "choices", [f"TURNGATE_{name.upper()}"])
        found |= {alias: field.is_required() for alias in aliases}
    return found


def broker_users() -> dict[str, dict[str, Any]]:
    text = re.sub(r"^#.*\n", "", (DEPLOY / "nats.conf").read_text(), flags=re.M)
    conf = json.loads(re.sub(r"(?<!\")\$(\w+)", r'"$\1"', text))
    return {user["user"]: user for user in conf["authorization"]["users"]}


def test_compose_runs_set_up_once_and_the_five_services():
    assert set(COMPOSE["services"]) == {"postgres", "nats", "set-up", *SERVICES}
    assert COMPOSE["services"]["set-up"]["restart"] == "no"
    for service in SERVICES:
        waits = COMPOSE["services"][service]["depends_on"]
        assert waits["set-up"]["condition"] == "service_completed_successfully"


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_is_told_what_it_asks_for_and_nothing_that_it_does_not_read(service: str):
    composed = COMPOSE["services"][service]
    known = names(settings_of(service))
    assert composed["command"] == ["python", "-m", service.replace("-", "_")]
    assert not set(composed["environment"]) - set(known)
    assert not {name for name, required in known.items() if required} - set(composed["environment"])


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_uses_its_own_broker_user_and_its_own_database_role(service: str):
    environment = COMPOSE["services"][service]["environment"]
    assert environment["TURNGATE_NATS_USER"] == service
    assert environment["TURNGATE_NATS_PASSWORD"] == broker_users()[service]["password"].replace("$", "${") + "}"
    role = next((keep.role for keep in KEEPS if keep.service == service), None)
    assert ("TURNGATE_POSTGRES_DSN" in environment) == (role is not None)
    if role:
        assert f"//{role}:" in environment["TURNGATE_POSTGRES_DSN"]


def test_only_the_runner_gets_a_model_key_and_without_one_compose_says_what_to_set():
    holders = [s for s, c in COMPOSE["services"].items() if "ANTHROPIC_API_KEY" in json.dumps(c)]
    assert holders == ["agent-runner"]
    key = COMPOSE["services"]["agent-runner"]["environment"]["TURNGATE_MODEL_API_KEY"]
    assert re.fullmatch(r"\$\{ANTHROPIC_API_KEY:\?Set ANTHROPIC_API_KEY.+\}", key)


def test_no_secret_stands_in_the_compose_file():
    for name, value in re.findall(
        r"^ +(\w*(?:PASSWORD|KEY|ISSUERS)\w*): (.*)$", (DEPLOY / "compose.yaml").read_text(), re.M
    ):
        assert re.fullmatch(r"\$\{\w+(:\?.+)?\}", value), name


def test_the_image_holds_what_runs_in_production_and_no_stand_in():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert "standin" not in dockerfile
    assert "--require-hashes" in dockerfile
    for service in SERVICES:
        assert f"./services/{service}" in dockerfile


def test_the_image_can_install_our_packages_from_what_is_copied_into_it(tmp_path: Path):
    # given what the Dockerfile copies
    steps = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    for *sources, target in (step.split()[1:] for step in steps if step.startswith("COPY")):
        for source in (DEPLOY.parent / name for name in sources):
            into = tmp_path / target / (source.name if target == "./" else "")
            shutil.copytree(source, into) if source.is_dir() else shutil.copy(source, into)
    # when its own command installs them, but into a folder of the test's own
    [command] = [step.removeprefix("RUN ").split() for step in steps if "./libs/contracts" in step]
    uv, site = Path(sys.executable).with_name("uv"), tmp_path / "site"
    where = ["--offline", "--python", sys.executable, "--target", site]
    done = subprocess.run([uv, *(w for w in command[1:] if w != "--system"), *where], cwd=tmp_path, capture_output=True)
    # then all of them are there, and nothing else
    assert done.returncode == 0, done.stderr.decode()
    packages = {service.replace("-", "_") for service in SERVICES} | {"contracts", "turngate"}
    assert {path.parent.name for path in site.glob("*/__init__.py")} == packages


def test_the_brokers_users_may_exactly_what_the_table_says():
    users = broker_users()
    assert set(users) == {"setup", "reader", *SERVICES}
    for name, user in users.items():
        if name == "setup":
            assert "permissions" not in user
            continue
        may = topology.READER if name == "reader" else topology.permissions(name)
        assert user["permissions"]["publish"]["allow"] == may["publish"]
        assert user["permissions"]["subscribe"]["allow"] == may["subscribe"]
        assert user["permissions"].get("allow_responses", False) == may["allow_responses"]


async def test_nats_server_takes_the_file_and_lets_each_user_in_by_its_password(tmp_path: Path):
    # given the file as it is, but for a free port and a folder of the test's own
    text = (DEPLOY / "nats.conf").read_text()
    text = text.replace('"port": 4222', '"port": -1').replace('"http": 8222', f'"ports_file_dir": "{tmp_path}"')
    text = text.replace("/data/jetstream", str(tmp_path / "js")).replace("0.0.0.0", "127.0.0.1")
    (tmp_path / "nats.conf").write_text(text)
    secrets = {variable: f"pw-{i}" for i, variable in enumerate(re.findall(r"(?<!\")\$(\w+)", text))}
    server = subprocess.Popen(
        [nats_server(), "--config", tmp_path / "nats.conf"], env=secrets, stderr=subprocess.DEVNULL
    )
    try:
        while not (ports := [f for f in tmp_path.glob("*.ports") if f.stat().st_size]):
            assert server.poll() is None
            await asyncio.sleep(0.02)
        url = json.loads(ports[0].read_text())["nats"][0]
        # when each user connects / then it is let in
        for name, user in broker_users().items():
            client = Client()
            await client.connect(url, user=name, password=secrets[user["password"][1:]], allow_reconnect=False)
            assert client.is_connected
            await client.close()
    finally:
        server.terminate()
        server.wait()
