"""What can go wrong between services, told apart by what the hearer should do about it."""


class Outage(Exception):
    """Something that we depend on is away (broker, database, model). Wait and try again; do not count it."""


class Forbidden(Exception):
    """The broker refused what was said, asked, read or listened to: this service may not."""


class Conflict(Exception):
    """Somebody else added to the run first. Read what is new and decide again."""


class CorruptLog(Exception):
    """What was read does not agree with its subject, its ordinal or the chain. Nothing was done with it."""
