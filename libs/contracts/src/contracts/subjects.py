"""Subjects of the log: `run.<tenant>.<run>.<author>.<fact>`, `tenant.<tenant>.<author>.<fact>`, built and read here."""

import re
from dataclasses import dataclass

RUNS = "RUNS"
TIMERS = "TIMERS"
DEAD = "DEAD"
TENANTS = "TENANTS"
KEYS = "KEYS"
TOKEN = re.compile(r"\A[A-Za-z0-9_-]{1,64}\Z")


class BadToken(ValueError):
    """A tenant, ticket or run that cannot be part of a subject."""


def token(value: str) -> str:
    """The value, if it may stand in a subject: 1 to 64 letters, digits, `_` and `-`. Else BadToken."""
    if not TOKEN.match(value):
        raise BadToken(f"{value[:80]!r} is not a name: use 1 to 64 letters, digits, _ or -.")
    return value


@dataclass(frozen=True, slots=True)
class RunKey:
    """Which run: its tenant and its id."""

    tenant: str
    run: str

    def __post_init__(self) -> None:
        token(self.tenant)
        token(self.run)

    @property
    def every(self) -> str:
        """The filter that covers all of the run's facts; also what an append's expected sequence is counted over."""
        return f"run.{self.tenant}.{self.run}.>"

    def subject(self, kind: str) -> str:
        return f"run.{self.tenant}.{self.run}.{kind}"


class TenantKey(RunKey):
    """A tenant's own line of facts, which is no run's; where a run is named, the tenant is."""

    __slots__ = ()

    def __init__(self, tenant: str) -> None:
        super().__init__(tenant, tenant)

    @property
    def every(self) -> str:
        return f"tenant.{self.tenant}.>"

    def subject(self, kind: str) -> str:
        return f"tenant.{self.tenant}.{kind}"


def parse(subject: str) -> tuple[RunKey, str]:
    """The line and the kind (`author.fact`) that a fact's subject names. Raises BadToken for any other subject."""
    match subject.split("."):
        case "run", tenant, run, author, name:
            return RunKey(tenant, run), f"{author}.{name}"
        case "tenant", tenant, author, name:
            return TenantKey(tenant), f"{author}.{name}"
    raise BadToken(f"{subject[:200]!r} is not the subject of a fact.")


def live(key: RunKey) -> str:
    """Where the text of a running model call streams."""
    return f"live.{key.tenant}.{key.run}"


# Where runs say that they wait for their model: beside the text, so that whoever hears the one need not hear the other.
MODEL_WAITS = "live.*.*.model"


def model_wait(key: RunKey) -> str:
    return f"{live(key)}.model"


def waiting_run(subject: str) -> RunKey:
    """The run that such a subject names. Raises BadToken for any other."""
    match subject.split("."):
        case "live", tenant, run, "model":
            return RunKey(tenant, run)
    raise BadToken(f"{subject[:200]!r} is not the subject of a run that waits.")
