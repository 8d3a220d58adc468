"""Whom a tenant wants told: the `notifications:` of its tenant.yaml. Secrets are named there, never written there."""

import hashlib
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import yaml
from contracts.strict import parse_yaml
from contracts.subjects import token
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, TypeAdapter

from approvals.settings import SECRETS

# Only variables that are meant for this can be named: a tenant's file reaches no other secret.
SecretName = Annotated[str, StringConstraints(pattern=rf"^{SECRETS}[A-Z0-9_]{{1,64}}$")]
Address = Annotated[str, StringConstraints(pattern=r"^[^@\s,;<>\"]{1,64}@[^@\s,;<>\"]{1,190}$")]
MOST_TARGETS = 20


def web_address(value: str) -> str:
    """An http(s) URL with a host and nobody's password in it. Raises ValueError for any other text."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or "\\" in value:
        raise ValueError("give a URL as in https://host/path, without a user in it")
    if any(letter.isspace() or not letter.isprintable() for letter in value) or not value.isascii():
        raise ValueError("the URL holds characters that a URL has not; percent-encode them")
    _ = parts.port  # raises for what is no port
    return value


def _one_is_a_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


class Target(BaseModel):
    """`name` is what people call it, in logs and dead letters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(max_length=60)] = ""


class Webhook(Target):
    """A Standard Webhooks receiver. `secret_env` names the variable that holds the signing secret (`whsec_…`)."""

    kind: Literal["webhook"]
    url: Annotated[str, AfterValidator(web_address)]
    secret_env: SecretName


class Slack(Target):
    """A Slack incoming webhook. Its address is its secret: `secret_env` names the variable that holds it."""

    kind: Literal["slack"]
    secret_env: SecretName


class Email(Target):
    kind: Literal["email"]
    to: Annotated[list[Address], BeforeValidator(_one_is_a_list), Field(min_length=1, max_length=20)]


AnyTarget = Webhook | Slack | Email
_TARGETS: TypeAdapter[list[AnyTarget]] = TypeAdapter(
    Annotated[list[Annotated[AnyTarget, Field(discriminator="kind")]], Field(max_length=MOST_TARGETS)]
)
# When a file was written, and which: what tells one state of it from another.
Stamp = tuple[int, int, int]


def identity(target: AnyTarget) -> str:
    """What a delivery remembers its target by. It changes with the address, and with nothing else."""
    match target:
        case Webhook(url=where) | Slack(secret_env=where):
            pass
        case Email(to=to):
            where = " ".join(to)
    return hashlib.sha256(f"{target.kind} {where}".encode()).hexdigest()[:16]


class BadTargets(ValueError):
    """A tenant's notifications cannot be read; the message says which and why."""


class Targets:
    """The targets of a folder of tenants, as the files are now: a changed one counts from the next notice on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[Path, tuple[Stamp, list[AnyTarget]]] = {}

    def of(self, tenant: str) -> list[AnyTarget]:
        """Each target once. Raises BadTargets where the file cannot be read as targets."""
        path = self._folder / token(tenant) / "tenant.yaml"
        try:
            if not path.is_file():
                return []
            stamp, known = _stamp(path), self._known.get(path)
            if known is None or known[0] != stamp:
                known = self._known[path] = stamp, _read(path)
            return known[1]
        except (OSError, ValueError, AttributeError, yaml.YAMLError) as error:
            raise BadTargets(f"The notifications of {tenant} in tenant.yaml cannot be read: {error}"[:2000]) from error


def _stamp(path: Path) -> Stamp:
    """What is another as soon as the file is written anew."""
    about = path.stat()
    return about.st_mtime_ns, about.st_size, about.st_ino


def _read(path: Path) -> list[AnyTarget]:
    document = parse_yaml(path.read_text())
    found = _TARGETS.validate_python((document or {}).get("notifications") or [])
    return list({identity(target): target for target in found}.values())
