"""Tickets worked over the gateway's HTTP, as an operator and an approver would."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from urllib.parse import quote

from contracts.events import Event
from turngate.api import Api
from turngate.following import follow, path

from evaluation.trajectory import Trajectory, trajectory

PATIENCE = 240.0  # seconds without a fact, longer than any model call may take
AT_ONCE = 4  # each follows a stream, of which the gateway gives a person only so many
T = TypeVar("T")
R = TypeVar("R")


def work(operator: Api, ticket: str, release: Api | None = None) -> Trajectory:
    """Starts a run on a ticket and follows it until it ends, or waits. `release` approves what is held."""
    run = operator.post(f"/v1/tickets/{quote(ticket, safe='')}/runs", {})["run"]
    events: list[Event] = list(follow(operator, run, patience=PATIENCE))
    while release is not None and (holds := operator.get(path(run))["holds"]):
        for hold in holds:
            decision = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": "approve"}
            release.post(f"{path(run)}/decisions", decision)
        events += follow(operator, run, events[-1].sequence, patience=PATIENCE)
    return trajectory(run, events)


def at_once(do: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """The results in the things' order, a few worked at a time."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        return list(pool.map(do, things))
    finally:
        pool.shutdown(cancel_futures=True)
