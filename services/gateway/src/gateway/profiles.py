"""How each tenant's agents are set up: the limits, model, prompt, pack and tools that a run starts with."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from contracts.currencies import known_currency, known_locale
from contracts.parts import Limits
from contracts.strict import parse_yaml
from contracts.subjects import token
from contracts.validation import explain
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError


class InvalidTenant(ValueError):
    """A tenant's files cannot be used; the message names the file, the field and what to do."""


def _if_given(check: Callable[[str], str]) -> AfterValidator:
    return AfterValidator(lambda value: check(value) if value else value)


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
    """What the desk knows of a tenant: its name for people, its time zone, the currency of its amounts and the locale
    that they are written in, its policy pack and its profiles."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    timezone: str = "UTC"
    currency: Annotated[str, _if_given(known_currency)] = ""
    locale: Annotated[str, _if_given(known_locale)] = ""
    policy_pack: str
    profiles: dict[str, Profile] = {"support": Profile()}

    @property
    def default_profile(self) -> str:
        return next(iter(self.profiles))


class Tenants:
    """The tenants of a folder, `<tenant>/tenant.yaml` each; one without a file has the defaults.

    Raises InvalidTenant where one of them cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for path in sorted(folder.glob("*/tenant.yaml")):
            _read(path, path.parent.name)

    def of(self, tenant: str) -> Tenant:
        return _read(self._folder / token(tenant) / "tenant.yaml", tenant)

    def check_currencies(self) -> None:
        """Raises InvalidTenant where a tenant's files are about amounts of different currencies: what is counted in
        one would be read in the other."""
        for path in sorted(self._folder.glob("*/tenant.yaml")):
            currency = _read(path, path.parent.name).currency
            for other in ("policy.yaml", "demo.yaml"):
                file = path.with_name(other)
                said = (parse_yaml(file.read_text()) or {}).get("currency") if file.is_file() else None
                if currency and said not in (None, currency):
                    raise InvalidTenant(
                        f"{path}, currency: {currency}, and {file} says {said}: amounts would be read in the wrong "
                        "unit. Give the same in both."
                    )


@lru_cache(maxsize=256)
def _read(path: Path, tenant: str) -> Tenant:
    document = (parse_yaml(path.read_text()) if path.is_file() else None) or {}
    try:
        return Tenant.model_validate({"name": tenant.capitalize(), "policy_pack": tenant, **document})
    except ValidationError as error:
        raise InvalidTenant(f"{path}, {explain(error)}") from None
