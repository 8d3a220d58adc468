"""The five services, the embedded issuer and the stand-in, as children of the supervisor."""

import http.client
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from contracts.identity import ROLES
from contracts.unreal import model_behind

from turngate.databases import DATABASE, KEEPS
from turngate.embedded import environment, state
from turngate.embedded.child import Child
from turngate.embedded.nats import Nats
from turngate.embedded.passwords import Passwords
from turngate.embedded.ports import Ports
from turngate.embedded.postgres import Postgres
from turngate.issuer import AUDIENCE, CLIENT, CLIENT_SECRET, ISSUER, Issuer, real_issuers
from turngate.people import STAFF, tenants, tenants_directory

SERVICES = ("agent-runner", "policy", "tools-shop", "approvals", "gateway")
CONSOLE_URL = "TURNGATE_CONSOLE_URL"
STAND_IN = STAND_IN_KEY = "stand-in"
PACE_MS = "15"  # between a few words and the next, so that people see the stand-in write


@dataclass(frozen=True)
class Place:
    """Where everything of one system is, and the environment that its services find it by."""

    data: Path
    tenants: Path
    host: str
    http_port: int
    ports: Ports
    passwords: Passwords
    postgres: Postgres
    nats: Nats
    environ: Mapping[str, str]

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host  # noqa: S104 - shown, not bound
        return f"http://{host}:{self.http_port}"

    @property
    def issuer(self) -> Issuer | None:
        """None where tokens are issued elsewhere."""
        return None if real_issuers(self.environ) else Issuer(self.data / "issuer")

    @property
    def issuer_url(self) -> str | None:
        return f"http://127.0.0.1:{self.ports['issuer']}" if self.issuer else None

    @property
    def model_key(self) -> str | None:
        return self.environ.get("TURNGATE_MODEL_API_KEY") or self.environ.get("ANTHROPIC_API_KEY")

    @property
    def stand_in_url(self) -> str | None:
        """None where a real model answers."""
        return None if self.model_key else f"http://127.0.0.1:{self.ports['standin']}"

    @property
    def model_url(self) -> str | None:
        """Where a real model is asked, if it was said."""
        return self.environ.get("TURNGATE_MODEL_BASE_URL") or self.environ.get("ANTHROPIC_BASE_URL")

    @property
    def model_is(self) -> str:
        """What people are told of the model; empty where it is not known."""
        if self.stand_in_url:
            return STAND_IN
        return model_behind(self.model_url) or self.environ.get("TURNGATE_MODEL_IS", "")

    def environment(self, service: str, role: str | None = None) -> dict[str, str]:
        """All that the service may know: its own broker user, its own database role (or the given one), and what it
        must reach."""
        env = environment.base(self.environ) | {
            "TURNGATE_NATS_URL": self.nats.url,
            "TURNGATE_NATS_NKEY": self.nats.seed(service),
            "TURNGATE_TENANTS_DIR": str(self.tenants),
            "TURNGATE_HEALTH_PORT": str(self.ports[f"{service}-health"]),
        }
        role = role or next((keep.role for keep in KEEPS if keep.service == service), None)
        if role:
            env["TURNGATE_POSTGRES_DSN"] = self.postgres.dsn(DATABASE, role, self.passwords[role])
        if service in ("gateway", "approvals", "tools-shop", "agent-runner"):
            env |= self._identity()
        if service in ("gateway", "policy"):
            env |= self._known_people()
        if service == "approvals":
            env |= {CONSOLE_URL: self.console_url} | environment.notifying(self.environ)
        if service == "gateway":
            env |= {"TURNGATE_HTTP_HOST": self.host, "TURNGATE_HTTP_PORT": str(self.http_port)}
            env |= {CONSOLE_URL: self.console_url} | self._sign_in()
            env |= {"TURNGATE_MODEL_IS": self.model_is, "TURNGATE_SHOP_IS": "demo"}
            if self.stand_in_url:
                env["TURNGATE_MODEL"] = STAND_IN  # so that runs say who answered
        if service == "agent-runner":
            env |= self._model()
        return env

    def _identity(self) -> dict[str, str]:
        if self.issuer is None:
            return {}  # TURNGATE_ISSUERS is handed on as it was given
        issuer = {"issuer": ISSUER, "jwks": str(self.issuer.jwks), "tenants": tenants(self.tenants)}
        return {"TURNGATE_ISSUERS": json.dumps([issuer]), "TURNGATE_AUDIENCE": AUDIENCE}

    @property
    def console_url(self) -> str:
        """Where people open the console: as it was given for a proxy before it, else where it listens."""
        return self.environ.get(CONSOLE_URL) or self.url

    def _known_people(self) -> dict[str, str]:
        """Who decides, where that is known: of a real issuer's people it is known only as far as it is given."""
        if self.issuer is None:
            return {}
        there = tenants(self.tenants)
        deciding: dict[str, list[dict[str, str]]] = {}
        for one in STAFF:
            if one.tenant in there and "decide" in ROLES[one.role]:
                person = {"subject": one.subject, "issuer": ISSUER, "role": one.role}
                deciding.setdefault(one.tenant, []).append(person)
        return {"TURNGATE_KNOWN_PEOPLE": json.dumps(deciding)}

    def _sign_in(self) -> dict[str, str]:
        """How the console signs people in: at the embedded issuer, or as it was given for a real one."""
        if self.issuer_url:
            return {"TURNGATE_SIGN_IN_URL": self.issuer_url, "TURNGATE_SIGN_IN_CLIENT_ID": CLIENT} | self.client_secret
        return {CLIENT_SECRET: self.environ[CLIENT_SECRET]} if CLIENT_SECRET in self.environ else {}

    @property
    def client_secret(self) -> dict[str, str]:
        """What the console and the embedded issuer know each other by."""
        return {CLIENT_SECRET: self.passwords["sign-in"]}

    def _model(self) -> dict[str, str]:
        if self.stand_in_url:
            return {"TURNGATE_MODEL_API_KEY": STAND_IN_KEY, "TURNGATE_MODEL_BASE_URL": self.stand_in_url}
        return (
            environment.outbound(self.environ)
            | {"TURNGATE_MODEL_API_KEY": self.model_key or ""}
            | ({"TURNGATE_MODEL_BASE_URL": self.model_url} if self.model_url else {})
        )


def place_of(data: Path, host: str, http_port: int, *, running: bool = False) -> Place:
    """The places of a data directory. Ports that are taken by now are chosen anew, except where the system is
    `running`: then it is itself that has them."""
    ports = Ports(data / "ports.json", running=running, meant=http_port or None)
    passwords = Passwords(data / "passwords.json")
    where = tenants_directory()
    return Place(
        data=data,
        tenants=where,
        host=host,
        http_port=http_port or ports.another(),
        ports=ports,
        passwords=passwords,
        postgres=Postgres(data, ports["postgres"], passwords["superuser"]),
        nats=Nats(data, passwords, ports["nats"], tenants=tenants(where)),
        environ=os.environ,
    )


def environment_of(data: Path, service: str) -> dict[str, str]:
    """What the service of the running system knows."""
    parts = urlsplit(state.read(data).url)
    place = place_of(data.absolute(), parts.hostname or "127.0.0.1", parts.port or 0, running=True)
    return place.environment(service)


def beside(place: Place) -> list[Child]:
    """What needs neither Postgres nor NATS: the issuer and the stand-in, where this system has them."""
    children = []
    if place.issuer and (url := place.issuer_url):
        where = ("--home", str(place.issuer.home), "--tenants", str(place.tenants))
        argv = ("turngate.provider", *where, "--port", port_of(url), "--console", place.console_url)
        env = environment.base(place.environ) | place.client_secret | {"TURNGATE_MODEL_IS": place.model_is}
        children.append(_python(place, "issuer", argv, url, env=env))
    if url := place.stand_in_url:
        pace = {"TURNGATE_STANDIN_PACE_MS": PACE_MS} | environment.base(place.environ)
        children.append(_python(place, "standin", ("standin", "--port", port_of(url)), url, "/healthz", pace))
    return children


def services(place: Place) -> list[Child]:
    return [
        _python(
            place,
            name,
            (name.replace("-", "_"),),
            place.url if name == "gateway" else f"http://127.0.0.1:{place.ports[f'{name}-health']}",
            env=place.environment(name),
        )
        for name in SERVICES
    ]


def _python(
    place: Place,
    name: str,
    module: tuple[str, ...],
    url: str,
    path: str = "/readyz",
    env: Mapping[str, str] | None = None,
) -> Child:
    return Child(
        name=name,
        argv=(sys.executable, "-m", *module),
        log=place.data / "logs" / f"{name}.log",
        ready=answers(f"{url}{path}", name),
        env=env or environment.base(place.environ),
        cwd=place.data,
        health_url=f"{url}{path}",
    )


def answers(url: str, name: str) -> Callable[[], bool]:
    """Whether a GET of the URL is answered with a 200 by what bears the name, and within two seconds."""
    return lambda: conditions(url, name) is not None


def conditions(url: str, name: str) -> list[str] | None:
    """What stands behind the first line of such an answer, a line each; None where there is none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=2)
    try:
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        said = answer.read(10_000).decode(errors="replace")
        return said.splitlines()[1:] if answer.status == 200 and name in said else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def port_of(url: str) -> str:
    return str(urlsplit(url).port)
