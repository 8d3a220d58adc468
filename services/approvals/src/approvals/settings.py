"""What approvals must be told: the broker, and whose tokens to believe."""

from contracts.settings import IdentitySettings


class Settings(IdentitySettings):
    pass
