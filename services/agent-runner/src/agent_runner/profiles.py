"""How an agent answers: its profile and its prompts. Limits, model and toolset come with each run."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import TypeVar

from contracts.strict import parse_yaml
from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Unknown(LookupError):
    """There is no profile or prompt of that name; the message names those there are."""


class Profile(BaseModel):
    """`max_tokens` bounds one answer, thinking included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int


@dataclass(frozen=True)
class Prompt:
    """One version of an agent's instructions, and of how it is shown a ticket. A published version never changes."""

    version: str
    system: str
    ticket: Template


class Profiles:
    def __init__(self, profiles: Mapping[str, Profile], prompts: Mapping[str, Prompt]) -> None:
        self._profiles = profiles
        self._prompts = prompts

    @classmethod
    def load(cls) -> "Profiles":
        here = files("agent_runner")
        profiles = {
            file.name.removesuffix(".yaml"): Profile.model_validate(parse_yaml(file.read_text("utf-8")))
            for file in here.joinpath("profiles").iterdir()
            if file.name.endswith(".yaml")
        }
        texts = {file.name: file.read_text("utf-8").strip() for file in here.joinpath("prompts").iterdir()}
        prompts = {
            version: Prompt(version, text, Template(texts[f"{version}.ticket.md"]))
            for version, text in ((name.removesuffix(".md"), text) for name, text in texts.items())
            if not version.endswith(".ticket")
        }
        return cls(profiles, prompts)

    def profile(self, name: str) -> Profile:
        """Raises Unknown."""
        return _get(self._profiles, name, "profile")

    def prompt(self, version: str) -> Prompt:
        """Raises Unknown."""
        return _get(self._prompts, version, "prompt")


def _get(known: Mapping[str, T], name: str, what: str) -> T:
    if name not in known:
        raise Unknown(f"There is no {what} {name!r}; there is {', '.join(sorted(known))}.")
    return known[name]
