"""What one service answers another: what was asked for with a status of 200, or why not, for the person who asked."""

from dataclasses import dataclass
from typing import Self

from contracts.parts import Json


@dataclass(frozen=True, slots=True)
class No:
    """A request that changed nothing: an HTTP status, and why, for the person."""

    status: int
    title: str
    detail: str

    def on_the_wire(self) -> Json:
        return {"status": self.status, "title": self.title, "detail": self.detail}

    @classmethod
    def in_answer(cls, answer: Json) -> Self | None:
        """The no that an answer is; None where it is what was asked for."""
        if answer.get("status") == 200:
            return None
        detail = answer.get("detail") or "It was not said why. Nothing was changed."
        return cls(int(answer.get("status", 500)), str(answer.get("title") or "Not possible"), str(detail))


def no_such(what: str) -> No:
    """The same for what does not exist and for what is another tenant's, to the letter."""
    detail = f"There is no {what} of that name. Check the name, and who you are signed in as."
    return No(404, f"No such {what}", detail)
