"""Which stops stand after a tenant's facts."""

from contracts.events import Draft
from contracts.facts import Fact
from contracts.kill_switch import Stop, standing
from contracts.memory import MemoryLog
from contracts.subjects import TenantKey
from contracts.tenant_facts import StopLifted, StopSet
from contracts.testing import person

KEY = TenantKey("acme")
ADA = person("ada", "admin")


def after(*facts: Fact) -> tuple[Stop, ...]:
    log = MemoryLog()
    for number, fact in enumerate(facts):
        log.say(log.history(KEY), Draft(fact, None, key=str(number)))
    return standing(log.history(KEY).events)


def test_a_stop_stands_until_it_is_lifted_and_others_stay() -> None:
    first = StopSet(stop_id="s-1", tool="issue_refund", above_minor=100, reason="a wave", by=ADA)
    second = StopSet(stop_id="s-2", reason="all of it", by=ADA)

    assert after() == ()
    assert after(first, second) == (
        Stop("issue_refund", 100, "s-1", "a wave", "ada"),
        Stop(None, None, "s-2", "all of it", "ada"),
    )
    assert after(first, second, StopLifted(stop_id="s-1", by=ADA)) == (Stop(None, None, "s-2", "all of it", "ada"),)


def test_a_stop_says_who_set_it_why_and_what_can_be_done() -> None:
    said = Stop("issue_refund", 10_000, "s-1", "a wave", "ada").in_the_way("GBP")

    assert "issue_refund above £100.00 to one customer in a day is stopped" in said
    assert "ada set it: “a wave”" in said
    assert "once the stop is lifted" in said
    assert "can be declined" in said
