"""What approvals must be told: the broker, whose tokens to believe, and how people are reached."""

import os
from dataclasses import dataclass
from typing import Annotated, Literal

from contracts.settings import IdentitySettings
from pydantic import Field, SecretStr

# What a tenant's notifications may name as theirs; see notifications/targets.py.
SECRETS = "TURNGATE_NOTIFY_SECRET_"


@dataclass(frozen=True, slots=True)
class Smtp:
    host: str
    port: int
    sender: str
    security: Literal["starttls", "tls", "none"]
    user: str | None
    password: SecretStr | None


def _secrets() -> dict[str, SecretStr]:
    return {name: SecretStr(value) for name, value in os.environ.items() if name.startswith(SECRETS)}


class Settings(IdentitySettings):
    """console_url: where people sign in, for the links in notifications.
    notify_loopback: whether receivers on this machine are told, over http too; for tests and local use.
    notify_backoff: seconds between one try and the next; after the last the notification is a dead letter."""

    console_url: str = "http://127.0.0.1:8100"
    notify_loopback: bool = False
    notify_timeout: Annotated[float, Field(gt=0, le=60)] = 10.0
    notify_backoff: tuple[Annotated[float, Field(gt=0)], ...] = (5, 60, 300, 1800, 7200)
    notify_secrets: dict[str, SecretStr] = Field(default_factory=_secrets)
    smtp_host: str | None = None
    smtp_port: int = 587
    smtp_sender: str | None = None
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_user: str | None = None
    smtp_password: SecretStr | None = None

    @property
    def smtp(self) -> Smtp | None:
        if not self.smtp_host or not self.smtp_sender:
            return None
        return Smtp(
            self.smtp_host, self.smtp_port, self.smtp_sender, self.smtp_security, self.smtp_user, self.smtp_password
        )
