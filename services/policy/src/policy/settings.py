"""What policy must be told: the broker, where the tenants' packs are, and who decides there, where that is known."""

from contracts.settings import PeopleSettings


class Settings(PeopleSettings):
    pass
