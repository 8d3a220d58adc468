"""What tools-shop must be told."""

from contracts.settings import DatabaseSettings, IdentitySettings


class Settings(DatabaseSettings, IdentitySettings):
    pool_size: int = 8
