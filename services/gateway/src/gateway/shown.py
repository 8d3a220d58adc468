"""A fact as a person sees it: the one place where personal data goes out of the house."""

from contracts.canonical import canonical
from contracts.events import Event
from contracts.facts import Json
from contracts.identity import Principal


def shown(event: Event, asker: Principal) -> Json:
    """The CloudEvent with what was sealed in it, or with `[erased]` where that is lost.

    Its sealed form stays in it, so that who gets it can check the chain without a key.
    """
    return event.opened_document()


def text(event: Event, asker: Principal) -> str:
    """The same on one line."""
    return event.payload.decode() if event.personal == "clear" else canonical(shown(event, asker)).decode()
