from datetime import UTC, datetime

from contracts.events import Draft
from contracts.facts import CustomerSaid, RunFailed
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.recent import Recent
from contracts.subjects import RunKey


def said(log: MemoryLog, run: str, letters: int) -> History:
    key = RunKey("acme", run)
    fact = CustomerSaid(text="x" * letters, message_id=str(len(log.accepted)))
    log.say(log.history(key), Draft(fact, None, key=fact.message_id))
    return log.history(key)


def test_what_was_used_longest_ago_goes_when_there_is_no_room_and_nothing_else():
    # given room for about two runs of 10 kB
    log, recent = MemoryLog(lambda: datetime(2026, 1, 1, tzinfo=UTC)), Recent(most_bytes=25_000)
    # when three are put, the first of them once more before the third
    recent.put(said(log, "A-1", 10_000))
    recent.put(said(log, "B-1", 10_000))
    recent.put(said(log, "A-1", 10))
    recent.put(said(log, "C-1", 10_000))
    # then the one that was not used is gone
    assert recent.get(RunKey("acme", "B-1")) is None
    assert len(recent.get(RunKey("acme", "A-1")).events) == 2
    assert recent.get(RunKey("acme", "C-1")) is not None
    assert recent.bytes == sum(len(e.payload) for e in log.accepted if e.key.run != "B-1")


def test_a_run_larger_than_the_room_is_kept_alone():
    log, recent = MemoryLog(), Recent(most_bytes=1_000)
    recent.put(said(log, "A-1", 50))
    whole = recent.put(said(log, "B-1", 10_000))
    assert recent.get(RunKey("acme", "B-1")) is whole
    assert recent.get(RunKey("acme", "A-1")) is None


def test_a_run_that_has_ended_is_not_kept():
    log, recent = MemoryLog(), Recent()
    recent.put(said(log, "A-1", 50))
    key = RunKey("acme", "A-1")
    log.say(log.history(key), Draft(RunFailed(reason="It could not go on."), None))
    recent.put(log.history(key))
    assert recent.get(key) is None
    assert recent.bytes == 0
