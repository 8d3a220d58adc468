"""Follows one run's facts until it ends or waits for somebody."""

from collections.abc import Callable, Iterator
from urllib.parse import quote

from contracts.events import Event

from turngate.api import Api

# Behind these a run may come to rest; the gateway knows whether it does.
MAY_REST = frozenset(
    {
        "policy.turn-held",
        "approvals.call-decided",
        "approvals.decision-refused",
        "approvals.reminder-sent",
        "approvals.hold-escalated",
        "agent.reply-given",
    }
)


def follow(
    api: Api,
    run: str,
    after: int = 0,
    *,
    past_waits: bool = False,
    patience: float = float("inf"),
    quiet: Callable[[], None] | None = None,
) -> Iterator[Event]:
    """Each fact behind `after`, until the run has ended or waits; with `past_waits`, until it has ended. `quiet` is
    called now and then while none comes. Raises Trouble where it says nothing for `patience` seconds."""
    if after and not past_waits and rests(api, run, after):
        return
    for event in api.events(f"{path(run)}/events", after, patience, quiet):
        yield event
        if event.terminal or (not past_waits and event.kind in MAY_REST and rests(api, run, event.sequence)):
            return


def rests(api: Api, run: str, sequence: int) -> bool:
    """Whether the run waits for somebody, with nothing said behind the sequence."""
    view = api.get(path(run))
    return str(view["status"]).startswith("awaiting") and view["sequence"] <= sequence


def path(run: str) -> str:
    return f"/v1/runs/{quote(run, safe='')}"
