"""For whom a turn runs."""

from dataclasses import dataclass

from contracts.addresses import comparable
from contracts.facts import RunStarted
from contracts.subjects import RunKey


@dataclass(frozen=True, slots=True)
class Caller:
    """Everything is looked up on the account behind `email`, the ticket's as addresses are compared; other accounts are
    out of reach. None is nobody's: nothing is found by it."""

    tenant: str
    run: str
    turn: int
    ticket: str
    email: str | None
    profile: str
    locale: str = ""

    @classmethod
    def of(cls, key: RunKey, started: RunStarted, turn: int) -> "Caller":
        email = comparable(started.ticket.customer.email)
        return cls(key.tenant, key.run, turn, started.ticket.reference, email, started.profile, started.locale or "")
