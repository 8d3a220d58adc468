"""What every service must be told, from the environment. Built only in `__main__`."""

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from contracts.identity import Issuer
from contracts.parts import Person

ACK_WAIT = 5.0


class BrokerSettings(BaseSettings):
    """Where the broker is, and as whom it is entered: by the seed of an NKey (services), or by name and password.

    nats_tls_ca: the certificates that the broker's is signed by; with it, nothing is said to a broker that has no such
    certificate for its name. The broker has to take the handshake first (`handshake_first: true`, or `"auto"`).
    nats_tls_cert, nats_tls_cert_key: our own, for a broker that asks for one.
    """

    model_config = SettingsConfigDict(
        env_prefix="TURNGATE_", env_ignore_empty=True, extra="ignore", hide_input_in_errors=True
    )

    nats_url: str = "nats://127.0.0.1:4222"
    nats_nkey: SecretStr | None = None
    nats_user: str | None = None
    nats_password: SecretStr | None = None
    nats_tls_ca: Path | None = None
    nats_tls_cert: Path | None = None
    nats_tls_cert_key: Path | None = None


class ServiceSettings(BrokerSettings):
    """ack_wait: seconds without a sign of life after which the broker gives a message to another worker. Set-up tells
    the broker the same; less than the default is for tests that kill workers."""

    health_port: int | None = None
    health_host: str = "127.0.0.1"
    tenants_dir: Path = Path("deploy/tenants")
    stops_dir: str | None = None
    ack_wait: float = ACK_WAIT
    otlp_endpoint: str | None = None
    log_level: str = "info"


class DatabaseSettings(ServiceSettings):
    postgres_dsn: SecretStr


class PeopleSettings(ServiceSettings):
    """known_people: by tenant, everybody there who may decide; a tenant that is not named is one of which that is not
    known. Nothing is allowed or refused by it: it says which needs nobody could meet."""

    known_people: dict[str, list[Person]] = {}


class IdentitySettings(ServiceSettings):
    issuers: list[Issuer]
    audience: str = "turngate"
