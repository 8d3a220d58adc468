"""How each tenant's agents are set up: the limits, model, prompt, pack and tools that a run starts with."""

from functools import lru_cache
from pathlib import Path

from contracts.parts import Limits
from contracts.strict import parse_yaml
from contracts.subjects import token
from pydantic import BaseModel, ConfigDict


class Profile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    max_steps: int = 12
    max_cost_micro_usd: int = 1_000_000
    model: str | None = None
    prompt_version: str = "support-v2"
    toolset: str = "shop"

    @property
    def limits(self) -> Limits:
        return Limits(max_steps=self.max_steps, max_cost_micro_usd=self.max_cost_micro_usd)


class Tenant(BaseModel):
    """What the desk knows of a tenant: its name for people, its time zone, the currency of its amounts, its policy pack
    and its profiles."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    timezone: str = "UTC"
    currency: str = ""
    policy_pack: str
    profiles: dict[str, Profile] = {"support": Profile()}

    @property
    def default_profile(self) -> str:
        return next(iter(self.profiles))


class Tenants:
    """The tenants of a folder, `<tenant>/tenant.yaml` each; one without a file has the defaults."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, tenant: str) -> Tenant:
        return _read(self._folder / token(tenant) / "tenant.yaml", tenant)


@lru_cache(maxsize=256)
def _read(path: Path, tenant: str) -> Tenant:
    document = parse_yaml(path.read_text()) if path.is_file() else {}
    return Tenant.model_validate({"name": tenant.capitalize(), "policy_pack": tenant, **document})
