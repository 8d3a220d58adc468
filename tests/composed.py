"""The composed system without its containers: each command of compose.yaml a process, each host this machine."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from contracts.topology import AUTHORS
from turngate import testing
from turngate.api import Api
from turngate.embedded.binaries import nats_server
from turngate.embedded.child import Child, stop
from turngate.embedded.ports import free_port
from turngate.embedded.postgres import Postgres
from turngate.embedded.services import answers
from turngate.issuer import ISSUER, Issuer
from turngate.people import STAFF, tenants, tenants_directory

from .world import until

DEPLOY = Path(__file__).parents[1] / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES = tuple(AUTHORS)
BARE = {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}
VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def filled(text: str, variables: Mapping[str, str]) -> str:
    """With its variables, as compose fills them in."""

    def one(match: "re.Match[str]") -> str:
        name, how, rest = match.groups()
        if variables.get(name):
            return variables[name]
        assert how != "?", rest
        return rest or ""

    return VARIABLE.sub(one, text)


@dataclass
class Composed:
    """A running one. `place` is a folder of its own, with the broker's two files in it."""

    place: Path
    postgres: Postgres
    issuer: Issuer
    variables: dict[str, str]
    ports: dict[str, int] = field(default_factory=dict)
    nats: "subprocess.Popen[bytes]" = field(init=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports['http']}"

    @property
    def subscribers(self) -> Path:
        """What stands beside compose.yaml."""
        return self.place / "subscribers.conf"

    def environment(self, service: str) -> dict[str, str]:
        """What the container would be told, by the names that this machine's programs know each other by."""
        told = {
            name: self._here(filled(str(value), self.variables))
            for name, value in COMPOSE["services"][service]["environment"].items()
        }
        if "TURNGATE_HEALTH_PORT" in told:
            told["TURNGATE_HEALTH_PORT"] = str(self.ports.setdefault(service, free_port()))
        if "TURNGATE_HTTP_PORT" in told:
            told["TURNGATE_HTTP_PORT"] = str(self.ports.setdefault("http", free_port()))
        return BARE | told | {"TURNGATE_TENANTS_DIR": str(tenants_directory())}

    def _here(self, value: str) -> str:
        hosts = {"postgres:5432": f"127.0.0.1:{self.postgres.port}", "nats:4222": f"127.0.0.1:{self.ports['nats']}"}
        for there, here in hosts.items():
            value = value.replace(f"@{there}", f"@{here}").replace(f"//{there}", f"//{here}")
        return "127.0.0.1" if value == "0.0.0.0" else value

    def command(self, service: str) -> tuple[str, ...]:
        program, *rest = COMPOSE["services"][service]["command"]
        return (sys.executable, *rest) if program == "python" else (sys.executable, "-m", program, *rest)

    def turngate(self, *words: str, token: str = "") -> "subprocess.CompletedProcess[str]":
        """`docker compose run --rm set-up turngate …`, with that token in the environment."""
        env = self.environment("set-up") | {"TURNGATE_TOKEN": token}
        command = [sys.executable, "-m", "turngate", *words]
        return subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, timeout=240)

    def token(self, who: str) -> str:
        return self.issuer.issue_to(next(one for one in STAFF if one.subject == who))

    def api(self, who: str) -> Api:
        return Api(self.url, self.token(who))

    def broker_reads_again(self) -> None:
        """`docker compose kill --signal HUP nats`."""
        self.nats.send_signal(signal.SIGHUP)


@contextmanager
def composed() -> Iterator[Composed]:
    """Set up with the demo's rows, all five services ready, a stand-in where the model is."""
    with testing.directory() as place, ExitStack() as stack:

        def started(*children: Child) -> "subprocess.Popen[bytes]":
            """All at once; the last one's process."""
            running = [child.spawn() for child in children if child.prepare() is None]
            for child, process in zip(children, running, strict=True):
                stack.callback(stop, child, process)
            for child, process in zip(children, running, strict=True):
                until(child.ready)
                assert process.poll() is None, child.last_words()
            return running[-1]

        keys = subprocess.run([sys.executable, "-m", "turngate", "keys"], capture_output=True, text=True, check=True)
        issuer = Issuer(place / "issuer")
        issuer.prepare()
        model = free_port()
        believed = {"issuer": ISSUER, "jwks": str(issuer.jwks), "tenants": tenants(tenants_directory())}
        passwords = re.findall(r"\$\{(TURNGATE_\w+_PASSWORD):\?", (DEPLOY / "compose.yaml").read_text())
        variables = {
            **dict(line.split("=", 1) for line in keys.stdout.split()),
            **{name: f"of{number}" for number, name in enumerate(dict.fromkeys(passwords))},
            "TURNGATE_ISSUERS": json.dumps([believed]),
            "TURNGATE_DEMO": "true",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{model}",
        }
        postgres = Postgres(place, free_port(), variables["TURNGATE_POSTGRES_PASSWORD"], durable=False)
        system = Composed(place, postgres, issuer, variables)
        started(postgres.child())
        system.nats = started(_broker(system))
        done = subprocess.run(
            system.command("set-up"), env=system.environment("set-up"), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        page = f"http://127.0.0.1:{model}/healthz"
        standin = (sys.executable, "-m", "standin", "--port", str(model))
        started(_child(system, "standin", standin, page, BARE), *(_service(system, service) for service in SERVICES))
        yield system


def _child(system: Composed, name: str, argv: tuple[str, ...], page: str, env: Mapping[str, str]) -> Child:
    log = system.place / "logs" / f"{name}.log"
    return Child(name=name, argv=argv, log=log, ready=answers(page, name), env=env, cwd=system.place)


def _service(system: Composed, name: str) -> Child:
    told = system.environment(name)
    page = f"http://127.0.0.1:{told['TURNGATE_HEALTH_PORT']}/readyz"
    return _child(system, name, system.command(name), page, told)


def _broker(system: Composed) -> Child:
    """nats-server on the files of deploy/, but for its port and its folder."""
    system.ports["nats"] = free_port()
    text = (DEPLOY / "nats.conf").read_text().replace('"port": 4222', f'"port": {system.ports["nats"]}')
    text = text.replace('  "http": "127.0.0.1:8222",\n', "").replace("/data/jetstream", str(system.place / "js"))
    (system.place / "nats.conf").write_text(text)
    system.subscribers.write_text((DEPLOY / "subscribers.conf").read_text())

    told = {
        name: filled(str(value), system.variables) for name, value in COMPOSE["services"]["nats"]["environment"].items()
    }
    log = system.place / "logs" / "nats.log"

    def ready() -> bool:
        return log.exists() and "Server is ready" in log.read_text()

    return Child(
        name="nats",
        argv=(str(nats_server()), "--config", str(system.place / "nats.conf")),
        log=log,
        ready=ready,
        env=BARE | told,
        cwd=system.place,
    )
