"""The language that Turngate's services share: facts, the log, the bus, identity and money."""
