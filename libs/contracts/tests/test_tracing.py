"""All facts of a run bear one trace id, whether or not anybody collects traces."""

import re

from contracts.events import Draft
from contracts.examples import EXAMPLES
from contracts.memory import MemoryLog
from contracts.subjects import RunKey

from .stories import RELEASED, tell


def test_one_trace_runs_through_a_run() -> None:
    found = [event.traceparent for event in tell(RELEASED)]
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", str(each)) for each in found)
    assert len({str(each).split("-")[1] for each in found}) == 1


def test_what_nothing_caused_stays_in_its_runs_trace() -> None:
    log, key = MemoryLog(), RunKey("acme", "TCK-1-1")
    first = log.say(log.history(key), Draft(EXAMPLES["desk.run-started"], None))
    second = log.say(log.history(key), Draft(EXAMPLES["desk.customer-said"], None))
    assert first.traceparent is not None
    assert second.traceparent == first.traceparent


def test_two_runs_are_two_traces() -> None:
    log = MemoryLog()
    one, other = (
        log.say(log.history(key), Draft(EXAMPLES["desk.run-started"], None))
        for key in (RunKey("acme", "TCK-1-1"), RunKey("acme", "TCK-2-1"))
    )
    assert one.traceparent != other.traceparent
