"""What tools-shop must be told."""

from contracts.settings import DatabaseSettings


class Settings(DatabaseSettings):
    pool_size: int = 8
