"""The broker's accounts and users: `python -m turngate.broker > deploy/nats.conf`.

Every service has an account of its own, and what it may publish and hear is imported from the account of the streams.
Permissions alone would not do. The broker checks what a user publishes, but not which reply subject it names: in one
account for all, a service could have the log answer a read of its own words to another author's subject, or to
`$JS.API.STREAM.UPDATE.RUNS`, and the broker would deliver that with its own rights. Across accounts an answer reaches
nobody but who asked.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from contracts import topology
from contracts.topology import AUTHORS, READER

HUB = "LOG"
SUBSCRIBERS = "subscribers-"  # and the tenant
SETUP, READER_USER = "setup", "reader"
# The broker's own account, for the supervisor of an embedded one: it asks for the broker's health, and sees no message.
SYSTEM, SUPERVISOR = "SYS", "supervisor"
# What the streams may hold, in bytes: as much as the disk does. By default it is three quarters of what was free when
# the broker started, so one that started on a full disk would take nothing even once there is room.
MAX_FILE_STORE = 2**50
SERVICES = tuple(AUTHORS)
# Whose models' words stream: straight from its account to who listens.
STREAMS_TEXT = "agent-runner"
# What each tenant's subscribers are given their part of. Offered to every account, as no account imports but what its
# configuration says: so the account of the streams stays as it is, and subscribers can stand in a file of their own.
# No other export may cover what they import: the broker looks at whichever it comes upon.
FOR_SUBSCRIBERS = (
    ("service", "$JS.API.CONSUMER.MSG.NEXT.RUNS.*"),
    ("service", "$JS.ACK.RUNS.*.>"),
    ("service", "subscribers.*"),
    ("stream", "log.run.>"),
)
# So long the broker keeps a way back for answers that come in several messages. A read's come at once.
WAY_BACK = {"$JS.API.DIRECT.GET.": "2s", "$JS.API.CONSUMER.MSG.NEXT.": "2m"}

Json = dict[str, Any]
# The ways in which a user proves who it is: `{"nkey": …}` or `{"user": …, "password": …}`.
Logins = Callable[[str], list[Json]]


@dataclass(frozen=True)
class Subscriber:
    """Another system, which hears one tenant's facts."""

    name: str
    tenant: str
    nkey: str

    @property
    def user(self) -> str:
        return topology.subscriber(self.name)


def accounts(logins: Logins) -> Json:
    """The `accounts` of the server's configuration, but for the subscribers'."""
    hub = _Hub()
    found: Json = {
        name: hub.account(name, [(may, logins(name))])
        for name, may in {READER_USER: READER, **{name: topology.permissions(name) for name in SERVICES}}.items()
    }
    return {HUB: {"jetstream": "enabled", "users": logins(SETUP), **hub.shared()}, **found}


def accounts_of_subscribers(tenants: Iterable[str], subscribers: Iterable[Subscriber]) -> Json:
    """One account a tenant for all its subscribers, also where there is none yet: a server that runs takes new imports
    only where there were some before."""
    told = list(subscribers)
    return {
        f"{SUBSCRIBERS}{tenant}": _of_subscribers(tenant, [one for one in told if one.tenant == tenant])
        for tenant in sorted({*tenants, *(one.tenant for one in told)})
    }


def _of_subscribers(tenant: str, subscribers: list[Subscriber]) -> Json:
    imports = [_import("service", HUB, f"subscribers.{tenant}")]
    users: list[Json] = []
    for one in subscribers:
        may = topology.subscriber_permissions(one.name, tenant)
        users.append({"nkey": one.nkey, "permissions": _permissions(may)})
        imports += [_import("service", HUB, subject) for subject in may["publish"]]
    if subscribers:
        imports.append(_import("stream", HUB, f"log.run.{tenant}.>"))
    return {"users": users, "imports": imports}


class _Hub:
    """What the account of the streams exports to the others, and the requests that it hands on to who answers them."""

    def __init__(self) -> None:
        self._only_for: dict[tuple[str, str], list[str]] = {}
        self._imports: list[Json] = []

    def shared(self) -> Json:
        return {
            "exports": [
                *(_export(*shared, {"accounts": names}) for shared, names in self._only_for.items()),
                *(_export(kind, subject, {}) for kind, subject in FOR_SUBSCRIBERS),
            ],
            "imports": self._imports,
        }

    def account(self, name: str, users: list[tuple[Json, list[Json]]]) -> Json:
        """The account of users who may so much and log in so. What one may not, its account does not import."""
        imports: dict[tuple[str, str], Json] = {}
        exports: list[Json] = []
        for may, _ in users:
            for subject in may["publish"]:
                if subject.startswith("live."):
                    exports.append({"stream": subject})
                    self._imports.append(_import("stream", name, subject))
                else:
                    imports["service", subject] = self._shared("service", subject, name)
            for subject in may["subscribe"]:
                if subject.startswith("ask."):
                    exports.append({"service": subject, "accounts": [HUB]})
                    self._imports.append(_import("service", name, subject))
                elif subject.startswith("live."):
                    imports["stream", subject] = _import("stream", STREAMS_TEXT, subject)
                elif not subject.startswith("_INBOX_"):
                    imports["stream", subject] = self._shared("stream", subject, name)
        return {
            "users": [login | {"permissions": _permissions(may)} for may, logins in users for login in logins],
            "imports": list(imports.values()),
            "exports": exports,
        }

    def _shared(self, kind: str, subject: str, with_account: str) -> Json:
        if (kind, subject) not in FOR_SUBSCRIBERS:
            names = self._only_for.setdefault((kind, subject), [])
            if with_account not in names:
                names.append(with_account)
        return _import(kind, HUB, subject)


def _import(kind: str, account: str, subject: str) -> Json:
    return {kind: {"account": account, "subject": subject}}


def _export(kind: str, subject: str, to: Json) -> Json:
    way_back = [kept for start, kept in WAY_BACK.items() if subject.startswith(start)]
    several = {"response_type": "stream", "response_threshold": way_back[0]} if way_back else {}
    return {kind: subject, **to, **several}


def _permissions(may: Json) -> Json:
    return {
        "publish": {"allow": list(may["publish"])},
        "subscribe": {"allow": list(may["subscribe"])},
        **({"allow_responses": True} if may["allow_responses"] else {}),
    }


# The composed system's

_HEAD = """# The broker of the composed system, written by `python -m turngate.broker`; a test compares them.
# Who may what is said in contracts/topology.py, why each service has its own account in turngate/broker.py.
# Public keys and the two passwords come from the environment of the container: `turngate keys` makes them.
"""
_SUBSCRIBERS_HEAD = """# The other systems that hear a tenant's facts: `turngate subscriber users` prints this file.
# Once the file is changed, the broker has to read it again: docker compose kill --signal HUP nats
"""
_INCLUDED = "    include ./subscribers.conf\n"


def variable(user: str) -> str:
    """What a user's variables are called: TURNGATE_NATS_AGENT_RUNNER, with _NKEY, _PUBLIC or _PASSWORD behind it."""
    return f"TURNGATE_NATS_{user.upper().replace('-', '_')}"


def composed() -> str:
    """deploy/nats.conf."""

    def logins(user: str) -> list[Json]:
        if user in SERVICES:
            return [{"nkey": f"${variable(user)}_PUBLIC"}]
        return [{"user": user, "password": f"${variable(user)}_PASSWORD"}]

    whole = {
        "server_name": "turngate",
        "host": "0.0.0.0",  # noqa: S104 - inside its container
        "port": 4222,
        "http": "127.0.0.1:8222",
        "jetstream": {"store_dir": "/data/jetstream", "sync_interval": "always", "max_file_store": MAX_FILE_STORE},
        "accounts": accounts(logins),
    }
    text = re.sub(r'"(\$TURNGATE_\w+)"', r"\1", json.dumps(whole, indent=2))
    head, end = text[: -len("\n  }\n}")], "\n  }\n}\n"
    return f"{_HEAD}{head},\n{_INCLUDED.rstrip()}{end}"


def composed_subscribers(tenants: Iterable[str], subscribers: Iterable[Subscriber] = ()) -> str:
    """deploy/subscribers.conf."""
    accounts = accounts_of_subscribers(tenants, subscribers)
    return _SUBSCRIBERS_HEAD + "".join(
        f"{json.dumps(name)}: {json.dumps(accounts[name], indent=2)}\n" for name in accounts
    )


if __name__ == "__main__":
    print(composed(), end="")
