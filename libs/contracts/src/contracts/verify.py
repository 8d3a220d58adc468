"""The rules that hold for every run, checked over any log: what is wrong, where, and by which rule."""

from collections.abc import Iterable, Iterator

from contracts.events import Event
from contracts.run_rules import RunRules, Violation
from contracts.subjects import RunKey, TenantKey

RULES = {
    1: "A run's line is unbroken, in order and sealed; causes are earlier events of it; nothing is said twice.",
    2: "It begins with its start and has one end. Behind that stands only what had happened before, and a person who "
    "took it over.",
    3: "A turn is proposed, quoted and judged in this order, attempt by attempt; it is quoted anew only where the "
    "world or a person changed it.",
    4: "Each call has one result, in the order of the calls, before the model is asked again.",
    5: "What was executed was forwarded as it had been quoted, and what was held was released by enough people who "
    "may, in time, for this very effect. A no stands.",
    6: "Steps and cost stay within the run's limits, and its end counts them.",
    7: "A run in which something was declined, or decided by nobody in time, and made good by no later approval, is "
    "not resolved: a person has it.",
}


def verify(events: Iterable[Event]) -> list[Violation]:
    """Every rule broken in these events, which may be of many runs and need only be in order within each."""
    runs: dict[RunKey, list[Event]] = {}
    for event in events:
        runs.setdefault(event.key, []).append(event)
    return [violation for run in runs.values() for violation in verify_run(run)]


def verify_run(events: list[Event]) -> list[Violation]:
    """Every rule broken in one run's events, in the order in which the log is said to hold them."""
    if not events:
        return []
    line = list(_line(events))
    # Behind a break in the line nothing can be concluded: what follows would be blamed for what is missing.
    if line or isinstance(events[0].key, TenantKey):
        return line
    return RunRules(events[0].key).judge(events)


def _line(events: list[Event]) -> Iterator[Violation]:
    """Rule 1: the line is unbroken, in order and sealed; causes are earlier; nothing is said twice."""
    before: Event | None = None
    seen: dict[str, int] = {}
    sequences: dict[int, int] = {}
    for event in events:

        def wrong(says: str, at: Event = event) -> Violation:
            return Violation(at.key, at.ordinal, 1, says)

        expected = before.ordinal + 1 if before else 0
        if event.ordinal != expected:
            yield wrong(f"event {expected} was expected here: one is missing, doubled or out of order.")
            return
        if not event.follows(before.chain if before else ""):
            yield wrong("its seal does not fit: this event or the one before it was changed.")
            return
        if event.cause is not None and event.cause not in seen:
            yield wrong("its cause is not an earlier event of this run.")
        if event.id in seen:
            yield wrong(f"it repeats event {seen[event.id]}.")
        if before and before.sequence and event.sequence and event.sequence <= before.sequence:
            yield wrong("its sequence does not rise.")
        for ordinal, link in enumerate(event.trail, event.ordinal - len(event.trail)):
            known = sequences.setdefault(ordinal, events[ordinal].sequence or link.sequence)
            if link.kind != events[ordinal].kind or link.sequence != known:
                yield wrong(f"its trail misnames event {ordinal}.")
        seen[event.id] = event.ordinal
        before = event
