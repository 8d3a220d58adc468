"""What an attack tries, in the words of its table."""

from dataclasses import dataclass

SAY = "say another's fact"
BE_THE_LOG = "pose as the log, a timer, a dead letter, somebody's inbox"
ASK = "ask what it does not ask"
TAKE = "take or acknowledge another's messages"
MANAGE = "change or list streams and consumers"
LISTEN = "listen in"
REPLY = "have an answer of the broker's delivered as its word"
OTHERS = "another service's tables"
OWN = "its own tables: their shape, their rules, what must stay"
TENANT = "rows of another tenant"
ROLE = "be somebody else in the database, reach its files or programs"
BROKER, TABLES = (SAY, BE_THE_LOG, ASK, TAKE, MANAGE, LISTEN, REPLY), (OTHERS, OWN, TENANT, ROLE)


@dataclass(frozen=True)
class Attempt:
    """One operation with one credential. `refused` is how; None where it went through, or was not really tried."""

    who: str
    what: str
    operation: str
    refused: str | None
