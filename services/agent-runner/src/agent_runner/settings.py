"""What the agent-runner must be told."""

from contracts.settings import DatabaseSettings, IdentitySettings
from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import SettingsConfigDict


class Settings(DatabaseSettings, IdentitySettings):
    """Without `model_api_key` and `model_base_url` no model can be asked, and every run says so.

    model: asked instead of the model that a run names.
    model_timeout_s: how long the model may stay silent in the middle of an answer.
    model_deadline_s: how long a run waits, in one step, for a model that is away or overloaded; then it fails.
    calls_per_tenant: model calls of one tenant at a time in this process.
    run_life_s: after so long a run that has not ended is handed to a person.
    chat_idle_s: after so long without a word from the customer a chat is over.
    """

    model_config = SettingsConfigDict(populate_by_name=True, env_ignore_empty=True)

    model_api_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("TURNGATE_MODEL_API_KEY", "ANTHROPIC_API_KEY")
    )
    model_base_url: str | None = Field(
        None, validation_alias=AliasChoices("TURNGATE_MODEL_BASE_URL", "ANTHROPIC_BASE_URL")
    )
    model: str | None = None
    model_timeout_s: float = 120
    model_deadline_s: float = 3600
    calls_per_tenant: int = 64
    run_life_s: int = 7 * 24 * 3600
    chat_idle_s: int = 24 * 3600
