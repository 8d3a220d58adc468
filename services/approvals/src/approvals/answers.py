"""What a request comes to when it changes nothing, and how an answer is put on the wire."""

from dataclasses import dataclass

from contracts.events import Event
from contracts.parts import Json
from pydantic import ValidationError


@dataclass(frozen=True, slots=True)
class No:
    """A request that changes nothing: an HTTP status, and why, for the person."""

    status: int
    title: str
    detail: str


@dataclass(frozen=True, slots=True)
class Known:
    """The same was said by the same person, and is in the log."""

    event: Event


def on_the_wire(outcome: Known | No) -> Json:
    """{"status": 200, "event": the fact}, or a status with title and detail."""
    match outcome:
        case Known(event):
            return {"status": 200, "event": event.opened_document()}
        case No(status, title, detail):
            return {"status": status, "title": title, "detail": detail}


def what_is_wrong(error: ValidationError) -> str:
    return "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
