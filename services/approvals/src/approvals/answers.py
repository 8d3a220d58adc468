"""What a request comes to where a fact says so, and how an answer is put on the wire."""

from dataclasses import dataclass

from contracts.answers import No
from contracts.events import Event
from contracts.parts import Json


@dataclass(frozen=True, slots=True)
class Recorded:
    """The fact that a request has come to.

    repeated: it was in the log before, so nothing new was recorded. detail: what it leaves open, for the person.
    """

    event: Event
    repeated: bool = False
    detail: str | None = None


def on_the_wire(outcome: Recorded | No) -> Json:
    """{"status": 200, "event": the fact}, with "repeated" and "detail" where there is such; or the no."""
    if isinstance(outcome, No):
        return outcome.on_the_wire()
    answer: Json = {"status": 200, "event": outcome.event.opened_document()}
    if outcome.repeated:
        answer["repeated"] = True
    if outcome.detail is not None:
        answer["detail"] = outcome.detail
    return answer
