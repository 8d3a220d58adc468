"""What policy must be told: the broker and where the tenants' packs are."""

from contracts.settings import ServiceSettings


class Settings(ServiceSettings):
    pass
