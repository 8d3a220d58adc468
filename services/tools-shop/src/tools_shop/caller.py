"""For whom a turn runs."""

from dataclasses import dataclass

from contracts.facts import RunStarted
from contracts.subjects import RunKey


@dataclass(frozen=True, slots=True)
class Caller:
    """Everything is looked up on the account behind `email`, the ticket's; other accounts are out of reach."""

    tenant: str
    run: str
    turn: int
    ticket: str
    email: str
    profile: str

    @classmethod
    def of(cls, key: RunKey, started: RunStarted, turn: int) -> "Caller":
        email = started.ticket.customer.email.strip()
        email = email.lower() if email.isascii() else ""
        return cls(key.tenant, key.run, turn, started.ticket.reference, email, started.profile)
