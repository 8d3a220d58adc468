"""What stands in the way of an approval, whoever would give it: a stop that covers the turn, or a need that nobody can
meet. A hint for pages and lists: approvals looks at the stops itself before it records anything."""

from dataclasses import dataclass
from typing import Literal

from contracts.entitlement import Held, nobody_can
from contracts.kill_switch import Stop
from contracts.parts import Person

from gateway.held import HeldCall
from gateway.views import RunView


@dataclass(frozen=True, slots=True)
class Obstacle:
    """refuses: whether an approval is refused for it."""

    kind: Literal["stopped", "nobody"]
    title: str
    detail: str
    refuses: bool


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What holds for a tenant beside its runs. known: all who decide there; None where that is not known."""

    stops: tuple[Stop, ...] = ()
    known: tuple[Person, ...] | None = None


def obstacles(view: RunView, call: HeldCall, circumstances: Circumstances) -> list[Obstacle]:
    found = []
    if (stopped := view.held_turn.stopped(call.call_id, circumstances.stops)) is not None:
        found.append(Obstacle("stopped", "Stopped", stopped.detail, refuses=True))
    if circumstances.known is not None:
        held = Held(view.requested_by, view.customer, call.hold, call.quote, call.changed_by, call.approved_by)
        if (why := nobody_can(held, circumstances.known)) is not None:
            found.append(Obstacle("nobody", "Nobody can release this", why, refuses=False))
    return found


def refusing(view: RunView, call: HeldCall, circumstances: Circumstances, *, changed: bool = False) -> str | None:
    """Why nobody's approval of this call would be taken now; None if one would. changed: of an approval with changes
    that nobody has made yet."""
    stopped = view.held_turn.stopped(call.call_id, circumstances.stops, changed=changed)
    return stopped.detail if stopped else None
