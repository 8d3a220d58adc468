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
from contracts.connection import connect
from contracts.settings import BrokerSettings
from pydantic import SecretStr
from turngate import broker
from turngate.broker import variable
from turngate.commands.operations import ROLE_PASSWORDS
from turngate.databases import KEEPS
from turngate.embedded.binaries import nats_server
from turngate.people import tenants
from turngate.servers import NEEDED

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


def alternatives(settings: type[Any]) -> dict[str, set[str]]:
    """Each field, with the variables of which one is enough."""
    return {
        name: set(getattr(field.validation_alias, "choices", [f"TURNGATE_{name.upper()}"]))
        for name, field in settings.model_fields.items()
    }


# Settings that the composed system leaves alone, and why.
NOT_TOLD = {
    "nats_user": "services enter by their NKey",
    "nats_password": "services enter by their NKey",
    "tenants_dir": "the image says where it has them",
    "stops_dir": "for tests that end services where they stand",
    "notify_loopback": "for tests: nobody to be told is on the container's own machine",
    "notify_secrets": "collected from all variables that begin so: notify.env",
}


def broker_users() -> dict[str, dict[str, Any]]:
    """Each account with its one user, the way in as a variable."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "nats.conf").read_text(), flags=re.M)
    text = re.sub(r",\n +include .*\n", "\n", text)
    conf = json.loads(re.sub(r"(?<!\")\$(\w+)", r'"$\1"', text))
    return {name: account["users"][0] for name, account in conf["accounts"].items()}


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
    untold = {
        name
        for name, aliases in alternatives(settings_of(service)).items()
        if not aliases & set(composed["environment"])
    }
    assert untold - set(NOT_TOLD) == set(), "compose.yaml has to pass it, or NOT_TOLD to say why not"
    assert not {name for name, required in known.items() if required} - set(composed["environment"])


def test_what_compose_does_not_tell_is_known_and_told_to_nobody():
    fields = {name for service in SERVICES for name in alternatives(settings_of(service))}
    assert not set(NOT_TOLD) - fields
    told = {name for service in SERVICES for name in COMPOSE["services"][service]["environment"]}
    assert not {f"TURNGATE_{name.upper()}" for name in NOT_TOLD} & told


def test_what_a_tenants_notifications_name_as_theirs_comes_from_a_file_that_need_not_be_there():
    with_files = {name: one["env_file"] for name, one in COMPOSE["services"].items() if "env_file" in one}
    assert with_files == {"approvals": [{"path": "notify.env", "required": False}]}


def test_set_up_is_told_all_that_its_commands_read():
    told = set(COMPOSE["services"]["set-up"]["environment"])
    assert {*ROLE_PASSWORDS.values(), *NEEDED, "TURNGATE_DEMO", "TURNGATE_NATS_REPLICAS", "TURNGATE_TOKEN"} <= told
    entering = {f"TURNGATE_{name.upper()}" for name in BrokerSettings.model_fields}
    assert entering - {"TURNGATE_NATS_NKEY"} <= told


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_uses_its_own_broker_user_and_its_own_database_role(service: str):
    environment = COMPOSE["services"][service]["environment"]
    assert environment["TURNGATE_NATS_NKEY"].startswith(f"${{{variable(service)}_NKEY:?")
    assert broker_users()[service]["nkey"] == f"${variable(service)}_PUBLIC"
    assert "TURNGATE_NATS_PASSWORD" not in environment
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
        r"^ +(\w*(?:PASSWORD|KEY|SECRET|ISSUERS)\w*): (.*)$", (DEPLOY / "compose.yaml").read_text(), re.M
    ):
        assert re.fullmatch(r"\$\{\w+(:\?.+|:-)?\}", value), name


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


def test_the_brokers_configuration_is_the_one_that_the_code_writes():
    assert (DEPLOY / "nats.conf").read_text() == broker.composed(), "python -m turngate.broker > deploy/nats.conf"


def test_the_brokers_subscribers_are_none_to_begin_with_with_a_place_for_each_tenant():
    known = tenants(DEPLOY / "tenants")
    assert (DEPLOY / "subscribers.conf").read_text() == broker.composed_subscribers(known)
    mounts = COMPOSE["services"]["nats"]["volumes"]
    assert "./subscribers.conf:/etc/nats/subscribers.conf:ro" in mounts


def test_the_broker_shows_itself_to_its_own_container_only():
    assert '"http": "127.0.0.1:8222"' in (DEPLOY / "nats.conf").read_text()
    assert "ports" not in COMPOSE["services"]["nats"]


def test_the_demo_is_written_only_where_somebody_says_so():
    composed = COMPOSE["services"]["set-up"]
    assert composed["command"] == ["turngate", "setup"]
    assert composed["environment"]["TURNGATE_DEMO"] == "${TURNGATE_DEMO:-false}"


async def test_nats_server_takes_the_file_and_lets_each_user_in_by_what_turngate_keys_printed(tmp_path: Path):
    # given the file as it is, but for a free port and a folder of the test's own
    text = (DEPLOY / "nats.conf").read_text()
    text = text.replace('"port": 4222', '"port": -1').replace(
        '"http": "127.0.0.1:8222"', f'"ports_file_dir": "{tmp_path}"'
    )
    text = text.replace("/data/jetstream", str(tmp_path / "js")).replace("0.0.0.0", "127.0.0.1")
    (tmp_path / "nats.conf").write_text(text)
    shutil.copy(DEPLOY / "subscribers.conf", tmp_path)
    printed = subprocess.run([sys.executable, "-m", "turngate", "keys"], capture_output=True, text=True, check=True)
    keys = dict(line.split("=", 1) for line in printed.stdout.split())
    secrets = {variable: f"pw-{i}" for i, variable in enumerate(re.findall(r"\$(TURNGATE\w+PASSWORD)", text))}
    public = {name: value for name, value in keys.items() if name.endswith("_PUBLIC")}
    server = subprocess.Popen(
        [nats_server(), "--config", tmp_path / "nats.conf"], env=secrets | public, stderr=subprocess.DEVNULL
    )
    try:
        while not (ports := [f for f in tmp_path.glob("*.ports") if f.stat().st_size]):
            assert server.poll() is None
            await asyncio.sleep(0.02)
        url = json.loads(ports[0].read_text())["nats"][0]
        # when each user connects / then it is let in
        for user in broker_users().values():
            if "nkey" in user:
                seed = keys[user["nkey"][1:].replace("_PUBLIC", "_NKEY")]
                settings = BrokerSettings(nats_url=url, nats_nkey=SecretStr(seed))
            else:
                password = SecretStr(secrets[user["password"][1:]])
                settings = BrokerSettings(nats_url=url, nats_user=user["user"], nats_password=password)
            client = await connect(settings, allow_reconnect=False)
            assert client.is_connected
            await client.close()
    finally:
        server.terminate()
        server.wait()
