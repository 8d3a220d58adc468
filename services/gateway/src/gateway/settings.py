"""What the gateway must be told, from the environment."""

from typing import Annotated, Self
from urllib.parse import urlsplit

from contracts.discovery import is_url, loopback, secure
from contracts.settings import DatabaseSettings, IdentitySettings, PeopleSettings
from contracts.unreal import ModelIs, Notice, ShopIs, notice
from pydantic import Field, IPvAnyNetwork, SecretStr, field_validator, model_validator

ANYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - told apart, not bound
ROOT = (("", "", ""), ("/", "", ""))  # path, query and fragment


class Settings(DatabaseSettings, IdentitySettings, PeopleSettings):
    """console_url: where people open the console, if that is not where it listens: behind a proxy that speaks https.
    max_calls_per_minute: of one person or machine, whatever their tokens; in each gateway process.
    max_unauthenticated_calls_per_minute: sign-ins, and calls without a valid token, from one address.
    trusted_proxies: the proxies (addresses or networks) whose word on a caller's address is taken.
    sign_in_client_id, sign_in_client_secret: what the console is to its issuer; without them nobody signs in here.
    sign_in_issuer: which issuer signs people in, where several are believed.
    sign_in_url: where that issuer's discovery document is, if not below its own address (the embedded one's is not).
    model_is, shop_is: what answers as the model, and whose money moves, by whoever composes the system: the console
    says on every page what is not known to be real."""

    http_host: str = "127.0.0.1"
    http_port: int = 8100
    console_url: str | None = None
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    sign_in_client_id: str | None = None
    sign_in_client_secret: SecretStr | None = None
    sign_in_issuer: str | None = None
    sign_in_url: str | None = None
    sign_in_scope: str = "openid"
    model: str | None = None
    model_is: ModelIs | None = None
    shop_is: ShopIs | None = None
    # The longest texts with each character escaped as JSON may (12 bytes): a message of 16,000, a ticket of 64,000.
    max_body_bytes: int = 196_608
    max_long_body_bytes: int = 1_048_576
    max_streams_per_person: int = 32
    max_calls_per_minute: Annotated[int, Field(ge=1)] = 3_000
    max_unauthenticated_calls_per_minute: Annotated[int, Field(ge=1)] = 3_000
    heartbeat_seconds: float = 5

    @property
    def unreal(self) -> Notice | None:
        """What is not known to be real here."""
        return notice(self.model_is, self.shop_is)

    @field_validator(
        "console_url", "sign_in_client_id", "sign_in_client_secret", "sign_in_issuer", "sign_in_url", "model_is",
        "shop_is", mode="before",
    )  # fmt: skip
    @classmethod
    def _empty_is_unset(cls, told: object) -> object:
        return told or None  # a composition hands on what is not set as nothing

    @model_validator(mode="after")
    def _people_can_sign_in(self) -> Self:
        for name, url in (("TURNGATE_SIGN_IN_URL", self.sign_in_url), ("TURNGATE_CONSOLE_URL", self.console_url)):
            if url is not None and not is_url(url):
                raise ValueError(f"{name} is no URL")
        if self.console_url is not None and urlsplit(self.console_url)[2:] not in ROOT:
            raise ValueError("TURNGATE_CONSOLE_URL has more than scheme, host and port; the console is nowhere below")
        if self.sign_in_url is not None and not secure(self.sign_in_url):
            raise ValueError("TURNGATE_SIGN_IN_URL is neither https nor on this machine: others could answer for it")
        if self.sign_in_client_id is None:
            return self
        if self.sign_in_client_secret is None:
            raise ValueError("TURNGATE_SIGN_IN_CLIENT_SECRET is missing: the issuer gave it with the client's id")
        if self.console_url is None and not loopback(self.http_host):
            raise ValueError(
                "TURNGATE_CONSOLE_URL is missing: the console is reached from other machines, and the address that "
                "people come back to from the issuer is never taken from what they ask for"
            )
        believed = [issuer.issuer for issuer in self.issuers]
        if self.sign_in_issuer is None and len(believed) == 1:
            self.sign_in_issuer = believed[0]
        if self.sign_in_issuer not in believed:
            raise ValueError(f"TURNGATE_SIGN_IN_ISSUER has to be one of TURNGATE_ISSUERS: {', '.join(believed)}")
        if self.sign_in_url is None and not is_url(self.sign_in_issuer):
            raise ValueError("TURNGATE_SIGN_IN_URL is missing: the issuer's name is no URL to be asked")
        return self

    @property
    def public_url(self) -> str:
        """Where people have this console open: scheme, name and port. The same whatever a request says of it."""
        if self.console_url:
            return self.console_url.rstrip("/")
        host = "127.0.0.1" if self.http_host in ANYWHERE else self.http_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.http_port}"
