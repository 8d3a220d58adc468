"""What is said to a person when the embedded system cannot go on."""


class Trouble(Exception):
    """What happened, what did not, and what to do next. Shown without a traceback."""
