"""Questions to the other services, in the name of whoever asks here."""

from contracts.answers import No
from contracts.bus import Bus
from contracts.errors import Outage
from contracts.events import Event
from contracts.parts import Json
from pydantic import BaseModel

from gateway.problems import Problem

FIRST_TRY = 3.0  # seconds


async def ask(bus: Bus, subject: str, asked: BaseModel, about: Event | None = None) -> Json:
    """What was asked for. Raises the other's no as a Problem, and Outage where nobody answers.

    Asked once more where no answer came soon: whoever was to answer may have died with the question in hand, and
    another is there. So only for what may be asked twice.
    """
    body = asked.model_dump(mode="json")
    try:
        answer = await bus.ask(subject, body, timeout=FIRST_TRY, about=about)
    except Outage:
        answer = await bus.ask(subject, body, about=about)
    if (no := No.in_answer(answer)) is not None:
        raise Problem(no.status, no.title, no.detail)
    return answer
