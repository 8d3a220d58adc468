"""What the gateway must be told, from the environment."""

from contracts.settings import DatabaseSettings, IdentitySettings


class Settings(DatabaseSettings, IdentitySettings):
    """`sign_in_url` is the embedded issuer's, where there is one: it lists the demo's people and signs their tokens."""

    http_host: str = "127.0.0.1"
    http_port: int = 8100
    sign_in_url: str | None = None
    model: str | None = None
    max_body_bytes: int = 131_072
    max_streams_per_person: int = 32
    heartbeat_seconds: float = 15
