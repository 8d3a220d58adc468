"""What is said to a person when something cannot go on."""


class Trouble(Exception):
    """What happened, what did not, and what to do next. Shown without a traceback."""

    def document(self) -> dict[str, object]:
        """The same for a program: `title` and `detail`."""
        return {"title": "Not done", "detail": str(self)}
