"""The servers of a system, for whoever set it up: an embedded system's, or those that the environment names.

`turngate setup` makes a system on servers that somebody else runs; the same environment is enough to work on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from contracts.settings import BrokerSettings

from turngate import records
from turngate.broker import Subscriber
from turngate.databases import DATABASE, OWNER
from turngate.embedded import environment, state
from turngate.embedded.nats import Nats
from turngate.embedded.passwords import Passwords
from turngate.embedded.ports import Ports
from turngate.embedded.trouble import Trouble
from turngate.people import tenants, tenants_directory
from turngate.records import Broker
from turngate.setup import in_database

SUPERUSER_DSN = "TURNGATE_SETUP_POSTGRES_DSN"
NEEDED = (SUPERUSER_DSN, "TURNGATE_OWNER_PASSWORD", "TURNGATE_NATS_URL")


@dataclass(frozen=True)
class Servers:
    """The broker, entered as set-up; the database, as a superuser and as the owner of all tables."""

    broker: Broker
    superuser: str
    owner: str
    data: Path | None = None

    def environment(self) -> dict[str, str]:
        """For a module of a service that does one thing for set-up, as the tables' owner."""
        return environment.plain() | {
            **self.broker.environment(),
            "TURNGATE_POSTGRES_DSN": self.owner,
            "TURNGATE_TENANTS_DIR": str(tenants_directory()),
            "TURNGATE_ISSUERS": "[]",  # whose token it is, approvals finds out
        }

    def tenants(self) -> list[str]:
        """Those that may have subscribers. An embedded broker that runs takes no others."""
        return embedded_nats(self.data).known_tenants() if self.data else tenants(tenants_directory())

    def tell(self, subscribers: Iterable[Subscriber]) -> bool:
        """Has the broker let in these and no others; False where somebody else has to."""
        if self.data is None:
            return False
        found, server = state.read(self.data), embedded_nats(self.data)
        server.subscribers.are(subscribers)
        server.read_again(int(found.processes["nats"]["pid"]))
        return True


def named_by(environ: Mapping[str, str]) -> Servers:
    """Those that somebody else runs, as `turngate setup` is told of them."""
    if missing := [name for name in NEEDED if not environ.get(name)]:
        raise Trouble(f"The set-up's environment is not whole: {', '.join(missing)} missing. Nothing was changed.")
    superuser = environ[SUPERUSER_DSN]
    return Servers(
        Broker(BrokerSettings(nats_nkey=None)),
        in_database(superuser, DATABASE),
        in_database(superuser, DATABASE, OWNER, environ["TURNGATE_OWNER_PASSWORD"]),
    )


def of_the_system_on(data: Path) -> Servers:
    """An embedded system's, which has to run."""
    found = state.read(data)
    data = Path(found.data)
    owner = in_database(found.postgres_url, DATABASE, OWNER, Passwords(data / "passwords.json")[OWNER])
    return Servers(records.set_up_broker(data), in_database(found.postgres_url, DATABASE), owner, data)


def embedded_nats(data: Path) -> Nats:
    """The broker of a system that runs on the directory."""
    return Nats(data, Passwords(data / "passwords.json"), Ports(data / "ports.json", running=True)["nats"])
