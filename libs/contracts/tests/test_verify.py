"""Every broken rule is found and named; nothing else is."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from contracts import events, parts
from contracts import facts as f
from contracts.events import Draft, Event, Link
from contracts.history import History
from contracts.memory import MemoryLog
from contracts.run_rules import Violation
from contracts.subjects import RunKey
from contracts.verify import verify, verify_run
from hypothesis import given
from hypothesis import strategies as st

from .stories import (
    ALEX,
    BEGIN,
    FAIR,
    HELD,
    HOUR,
    KEY,
    LEE,
    PROPOSED,
    READ,
    READ_ONLY,
    REFUND,
    RELEASED,
    SAM,
    SUE,
    THE_END,
    TWO_NEEDED,
    Step,
    Story,
    decided,
    ended,
    executed,
    forwarded,
    held,
    person,
    proposed,
    quoted,
    refused,
    replied,
    started,
    tell,
    unfinished,
)

stories = st.sampled_from(sorted(FAIR)).map(lambda name: tell(FAIR[name]))
long_stories = stories.filter(lambda run: len(run) > 1)


# What is fair


@pytest.mark.parametrize("name", sorted(FAIR))
def test_of_a_fair_run_there_is_nothing_to_say_however_far_it_has_come(name: str) -> None:
    run = tell(FAIR[name])
    for length in range(len(run) + 1):
        assert verify_run(run[:length]) == []


@pytest.mark.parametrize("name", sorted(FAIR))
def test_a_fair_run_is_fair_as_exported_lines(name: str) -> None:
    lines = [json.dumps(event.document(), indent=1) for event in tell(FAIR[name])]
    assert verify(events.from_document(json.loads(line)) for line in lines) == []


def test_runs_may_come_mixed() -> None:
    other = RunKey("globex", KEY.run)
    fair, unfair = tell(RELEASED), tell([*HELD, forwarded(), executed()], other)
    violations = verify([*fair[:3], *unfair[:4], *fair[3:], *unfair[4:]])
    assert [(violation.key, violation.rule) for violation in violations] == [(other, 5)]


def test_no_events_break_no_rule() -> None:
    assert verify([]) == []
    assert verify_run([]) == []


def test_a_violation_says_where_and_what() -> None:
    [violation] = verify_run(tell([*HELD, forwarded(), executed()]))
    assert str(violation) == (
        "acme/TCK-2004-1 event 5: rule 5: call call-refund was held and executed without the decisions that it needed."
    )


# Rule 1: the line


def without(run: list[Event], position: int) -> list[Event]:
    return [*run[:position], *run[position + 1 :]]


@given(long_stories, st.data())
def test_a_missing_event_is_found(run: list[Event], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(run) - 2))
    [violation] = verify_run(without(run, position))
    assert (violation.rule, violation.ordinal) == (1, position + 1)
    assert f"event {position} was expected" in violation.says


@given(long_stories, st.data())
def test_a_doubled_event_is_found(run: list[Event], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(run) - 1))
    again = data.draw(st.integers(position + 1, len(run)))
    [violation] = verify_run([*run[:again], run[position], *run[again:]])
    assert violation.rule == 1


@given(long_stories, st.data())
def test_swapped_events_are_found(run: list[Event], data: st.DataObject) -> None:
    one, other = data.draw(st.lists(st.integers(0, len(run) - 1), min_size=2, max_size=2, unique=True))
    run[one], run[other] = run[other], run[one]
    [violation] = verify_run(run)
    assert violation.rule == 1


@given(stories, st.data())
def test_a_changed_event_is_found(run: list[Event], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(run) - 1))
    document = run[position].document()
    holder: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not isinstance(holder[key], dict | list) or not holder[key]:
            break
        holder = holder[key]
    old = holder[key]
    holder[key] = old + 1 if isinstance(old, int) and not isinstance(old, bool) else f"{old}x"
    try:
        run[position] = events.from_document(document, run[position].sequence)
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # no longer an event of ours at all
    assert any(violation.rule == 1 or violation.key != KEY for violation in verify(run))


@given(long_stories, st.data())
def test_an_event_of_another_run_is_found(run: list[Event], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(run) - 1))
    document = run[position].document() | {"subject": "TCK-1-1"}
    run[position] = events.from_document(document, run[position].sequence)
    assert verify(run)


def test_a_seal_names_the_event_that_was_changed() -> None:
    run = tell(RELEASED)
    run[4] = replace(run[4], payload=run[4].payload.replace(b'"approve"', b'"decline"'))
    [violation] = verify_run(run)
    assert (violation.rule, violation.ordinal) == (1, 4)
    assert "seal" in violation.says


def test_a_run_that_was_rewritten_from_somewhere_on_does_not_fit_what_comes_behind() -> None:
    run = tell(RELEASED)
    [violation] = verify_run([*one_more(run[:4], decided(SUE), run[3]), *run[5:]])
    assert (violation.rule, violation.ordinal) == (1, 5)


def one_more(run: list[Event], fact: f.Fact, cause: Event | None, key: str = "") -> list[Event]:
    event = events.write(KEY, Draft(fact, cause, key), run[-1], BEGIN)
    return [*run, replace(event, sequence=run[-1].sequence + 1)]


def test_a_cause_that_is_no_earlier_event_is_found() -> None:
    elsewhere = tell(READ_ONLY, RunKey("acme", "TCK-1-1"))[0]
    [violation] = verify_run(one_more(tell(HELD), decided(), elsewhere))
    assert violation.rule == 1
    assert "cause" in violation.says


def test_what_one_cause_has_brought_twice_is_found() -> None:
    run = tell(HELD)
    run = one_more(run, f.CustomerSaid(text="Hello?", message_id="1"), run[3], "1")
    assert verify_run(one_more(run, f.CustomerSaid(text="Hello?", message_id="2"), run[3], "2")) == []
    [violation] = verify_run(one_more(run, f.CustomerSaid(text="Hello?", message_id="1"), run[3], "1"))
    assert (violation.rule, violation.says) == (1, "it repeats event 4.")


def test_sequences_rise() -> None:
    run = tell(HELD)
    moved = [*run[:3], replace(run[3], sequence=run[2].sequence)]
    [violation] = verify_run(moved)
    assert "sequence" in violation.says


@pytest.mark.parametrize(
    "trail",
    [
        (Link(1, "desk.run-started"), Link(2, "agent.turn-proposed"), Link(3, "policy.turn-forwarded")),
        (Link(1, "desk.run-started"), Link(2, "agent.turn-proposed"), Link(9, "tools.turn-quoted")),
        (Link(2, "desk.run-started"), Link(1, "agent.turn-proposed"), Link(3, "tools.turn-quoted")),
    ],
)
@pytest.mark.parametrize("sequences", [True, False])
def test_a_trail_that_misnames_is_found(trail: tuple[Link, ...], sequences: bool) -> None:
    run = tell(HELD[:3])
    before = replace(run[2], trail=trail[:2], kind=trail[2].kind, sequence=trail[2].sequence)
    lie = events.write(KEY, Draft(held(), run[2]), before, BEGIN)
    run = [*run, replace(lie, sequence=4)]
    if not sequences:  # as exported
        run = [replace(event, sequence=0) for event in run]
        if trail[2].kind == "tools.turn-quoted" and trail[0].sequence == 1:
            return  # with nothing to compare it to, nobody can know
    assert any("trail" in violation.says for violation in verify_run(run))


# Rules 2 to 6: what was never fair, though its seals all fit


def change(story: Story, fact: type[f.Fact], nth: int = 0, **changes: Any) -> Story:
    """The story with one fact told otherwise."""
    positions = [n for n, step in enumerate(story) if isinstance(step, fact)]
    at = positions[nth]
    step = story[at]
    assert isinstance(step, f.Fact)
    return [*story[:at], fact.model_validate(step.model_dump() | changes), *story[at + 1 :]]


def drop(story: Story, fact: type[f.Fact], nth: int = 0) -> Story:
    positions = [n for n, step in enumerate(story) if isinstance(step, fact)]
    return [*story[: positions[nth]], *story[positions[nth] + 1 :]]


def behind(story: Story, fact: type[f.Fact], *steps: Step) -> Story:
    at = next(n for n, step in enumerate(story) if isinstance(step, fact))
    return [*story[: at + 1], *steps, *story[at + 1 :]]


def released_by(someone: parts.Person) -> Story:
    return change(RELEASED, f.CallDecided, by=someone.model_dump())


LIMITED = SUE.model_copy(update={"limit_minor": 10_000})


def of_customer(subject: str) -> f.TurnQuoted:
    """A quote that found whom the calls are about, where the ticket names somebody else or only an address."""
    quote = quoted()
    return quote.model_copy(update={"quotes": [one.model_copy(update={"subject": subject}) for one in quote.quotes]})


BY_TWO: Story = [*TWO_NEEDED, decided(SAM), decided(LEE), forwarded(), executed(), *THE_END]

UNFAIR: list[tuple[str, int, str, Story]] = [
    # Rule 2
    ("it begins with something else", 2, "begins", [proposed(), quoted()]),
    ("it begins twice", 2, "second time", [started(), started()]),
    ("it ends twice", 2, "after the run had ended", [*RELEASED, f.RunCancelled(by=ALEX)]),
    ("the agent ends what the desk has ended", 2, "after the run", [started(), f.RunFailed(reason="x"), ended()]),
    ("a customer speaks after the end", 2, "after", [*RELEASED, f.CustomerSaid(text="?", message_id="1")]),
    ("a decision after the end", 2, "after", [*HELD, f.RunCancelled(by=ALEX), decided()]),
    ("a forward after the end", 2, "after", [*HELD, decided(), f.RunCancelled(by=ALEX), forwarded()]),
    ("a person speaks in a run that was not taken over", 2, "after", [*RELEASED, f.PersonSaid(by=ALEX, text="Hi")]),
    ("the agent replies in a run that was taken over", 2, "after", [*HELD, f.RunTakenOver(by=ALEX), replied()]),
    ("it starts again after the end", 2, "second time", [*RELEASED, started()]),
    # Rule 3
    ("a quote of nothing", 3, "never proposed", [started(), quoted()]),
    ("a forward of nothing", 3, "never proposed", [started(), forwarded()]),
    ("a hold of nothing", 3, "never proposed", [started(), held()]),
    ("a refusal of nothing", 3, "never proposed", [started(), refused()]),
    ("an execution of nothing", 3, "never proposed", [started(), executed()]),
    ("a forward without a quote", 3, "waits for its quote", drop(RELEASED[:-2], f.TurnQuoted)),
    ("an execution without a quote", 3, "waits for its quote", [started(), proposed(), executed()]),
    ("a forward twice", 3, "waits for its execution", behind(RELEASED, f.TurnForwarded, forwarded())),
    ("held and forwarded in one", 3, "waits for its execution", behind(READ_ONLY, f.TurnForwarded, held())),
    ("forwarded and refused", 3, "waits for its execution", behind(RELEASED, f.TurnForwarded, refused())),
    ("refused and forwarded", 3, "waits for its nothing", [*HELD[:3], refused(), forwarded()]),
    ("held twice", 3, "waits for its decisions", [*HELD, held()]),
    ("a quote twice", 3, "waits for its judgement", [*HELD[:3], quoted(2)]),
    ("a held turn quoted anew by nobody's edit", 3, "nobody has changed", [*HELD, quoted(2)]),
    ("a held turn quoted anew after a plain approval", 3, "nobody has changed", [*HELD, decided(), quoted(2)]),
    ("an attempt that is skipped", 3, "attempt 2 is due", [*HELD, decided(), forwarded(), quoted(3)]),
    ("an attempt that does not count on", 3, "attempt 2 is due", [*HELD, decided(), forwarded(), quoted(1)]),
    ("a first attempt that is no first", 3, "attempt 1 is due", [*HELD[:2], quoted(2)]),
    (
        "an old attempt forwarded", 3, "the last is 2",
        [*HELD, decided(), forwarded(), quoted(2, "new"), forwarded(1), executed(1)],
    ),
    (
        "an old attempt executed", 3, "the last is 2",
        [*HELD, decided(), forwarded(), quoted(2, "new"), forwarded(2, "new"), executed(1)],
    ),
    ("an old attempt held", 3, "the last is 2", [*HELD, decided(), forwarded(), quoted(2, "new"), held(1)]),
    ("an old attempt refused", 3, "the last is 2", [*HELD, decided(), forwarded(), quoted(2), refused(1)]),
    ("a turn that is skipped", 3, "turn 1 is due", [started(), proposed(2)]),
    ("a turn that is proposed again", 3, "turn 2 is due", [*RELEASED[:-2], proposed(1)]),
    ("a quote that leaves a call out", 3, "cover", [started(), proposed(), quoted(calls=[READ])]),
    ("a quote with a call too many", 3, "cover", [started(), proposed(calls=[READ]), quoted()]),
    ("a quote in another order", 3, "cover", [started(), proposed(), quoted(calls=[REFUND, READ])]),
    # Rule 4
    ("the model is asked while a turn is quoted", 4, "still waits", [*HELD[:3], replied()]),
    ("the model is asked while a turn is held", 4, "still waits for its decisions", [*HELD, replied()]),
    ("the model is asked before the results", 4, "still waits", [*HELD, decided(), forwarded(), proposed(2)]),
    ("an unfinished answer before the results", 4, "still waits", [*HELD, decided(), forwarded(), unfinished()]),
    ("a call without a result", 4, "one by one", [*HELD, decided(), forwarded(), executed(calls=[REFUND])]),
    ("a result too many", 4, "one by one", [*HELD, decided(), forwarded(), executed(calls=[READ, REFUND, "x"])]),
    ("two calls of one id", 4, "have one id", [started(), proposed(calls=[READ, READ])]),
    ("a result twice", 4, "one by one", [*HELD, decided(), forwarded(), executed(calls=[READ, REFUND, REFUND])]),
    ("results in another order", 4, "one by one", [*HELD, decided(), forwarded(), executed(calls=[REFUND, READ])]),
    ("a refusal that leaves a call out", 4, "one by one", [*HELD[:3], refused(calls=[REFUND])]),
    ("executed twice", 4, "before", behind(RELEASED, f.TurnExecuted, executed())),
    ("executed again after the end", 4, "before", [*RELEASED, executed()]),
    ("executed and refused", 4, "before", behind(RELEASED, f.TurnExecuted, refused())),
    # Rule 5
    ("executed and never forwarded", 5, "never forwarded", [*HELD[:3], executed()]),
    ("executed after the end and never forwarded", 5, "never forwarded", [*HELD, f.RunCancelled(by=ALEX), executed()]),
    ("another effect forwarded", 5, "is forwarded", [*HELD[:3], forwarded(world="another"), executed()]),
    ("a call left out of the forward", 5, "is forwarded", [*HELD[:3], forwarded(calls=[READ])]),
    ("a call too many in the forward", 5, "is forwarded", [*HELD[:3], forwarded(calls=[READ, REFUND, "x"])]),
    ("two verdicts for a call", 5, "is forwarded", [*HELD[:3], forwarded(calls=[READ, REFUND, REFUND])]),
    ("another effect held", 5, "is held", [*HELD[:3], held(world="another")]),
    ("a call held twice", 5, "is held", change(HELD, f.TurnHeld, holds=[h.model_dump() for h in held().holds] * 2)),
    ("a declined verdict executed", 5, "verdict", [*HELD[:3], forwarded(declined=[REFUND]), executed()]),
    ("held and executed without a decision", 5, "without the decisions", drop(RELEASED, f.CallDecided)),
    (
        "expired and executed", 5, "without the decisions",
        [*HELD, 24 * HOUR, f.HoldExpired(turn=1, call_ids=[REFUND]), forwarded(), executed()],
    ),
    ("declined and executed", 5, "declined and executed", change(RELEASED, f.CallDecided, decision="decline")),
    (
        "declined by one of two and executed", 5, "declined and executed",
        change([*TWO_NEEDED, decided(SAM), decided(SUE), decided(LEE), forwarded(), executed()], f.CallDecided, 1,
               decision="decline"),
    ),
    ("declined above one's own limit and executed", 5, "declined and executed", [
        *HELD[:3], held(amount=9_000), decided(SAM.model_copy(update={"limit_minor": 1}), "decline"), decided(LEE),
        forwarded(), executed(),
    ]),
    ("changed by whose own limit the day passes", 5, "without the decisions", [
        *HELD[:3], held(amount=89_000), decided(LIMITED, edited={"amount_pence": 5_000}),
        quoted(2, "less", amount=5_000, edited=""), forwarded(2, "less"), executed(2),
    ]),
    ("held anew and released by whose own limit the day passes", 5, "without the decisions", [
        *HELD, decided(SAM, edited={"amount_pence": 9_001}), quoted(2, "more", amount=9_001, edited=""),
        held(2, "more", amount=89_000), decided(LIMITED, world="more"), forwarded(2, "more"), executed(2),
    ]),
    ("released by whom the call is about", 5, "without the decisions", [
        *HELD[:2], of_customer("cust-9"), *HELD[3:], decided(person("cust-9", "lead")), forwarded(), executed()
    ]),
    ("released by who asked for it", 5, "without the decisions", [
        started(by=LEE), *HELD[1:], decided(LEE), forwarded(), executed()
    ]),
    ("released by who asked for it, in another role", 5, "without the decisions", [
        started(by=LEE), *HELD[1:], decided(person("lee", "approver")), forwarded(), executed()
    ]),
    ("released by the customer", 5, "without the decisions", released_by(person("cust-1", "lead"))),
    ("released by their e-mail", 5, "without the decisions", released_by(person("Tom@Example.com", "lead"))),
    ("released by an operator", 5, "without", released_by(person("omar", "operator"))),
    ("released by an unknown role", 5, "without", released_by(person("omar", "king"))),
    ("one where two are needed", 5, "without the decisions", drop(BY_TWO, f.CallDecided, 0)),
    ("the same person twice", 5, "without the decisions", change(BY_TWO, f.CallDecided, 0, by=LEE.model_dump())),
    ("two, but no lead", 5, "without the decisions", change(BY_TWO, f.CallDecided, 1, by=SUE.model_dump())),
    ("a role that nobody has", 5, "without the decisions", [
        *HELD[:3], held(people=1, one_of_role="pope"), decided(LEE), forwarded(), executed()
    ]),
    ("released at the moment of its expiry", 5, "without the decisions", [
        *HELD[:3], held(expires_at=BEGIN + timedelta(minutes=4)), decided(), forwarded(), executed()
    ]),
    ("one of two too late", 5, "without the decisions", [
        *TWO_NEEDED, decided(SAM), 24 * HOUR, decided(LEE), forwarded(), executed()
    ]),
    ("a decision about a call that is not held", 5, "not what was held", [*HELD, decided(call=READ)]),
    ("a decision about another effect", 5, "not what was held", change(RELEASED, f.CallDecided, digest=PROPOSED)),
    ("a decision while nothing is held", 5, "nothing was held", [*HELD[:3], decided()]),
    ("a decision about no turn", 5, "nothing was held", [started(), decided()]),
    (
        "an approval of what has changed since", 5, "without the decisions",
        [*HELD, decided(), forwarded(), quoted(2, "new"), held(2, "new"), forwarded(2, "new"), executed(2)],
    ),
    ("an edit that counts as a release of what it changed", 5, "without the decisions", [
        *HELD, decided(SAM, edited={"amount_pence": 1}), forwarded(), executed()
    ]),
    ("an edit released by its editor", 5, "without the decisions", [
        *HELD, decided(SAM, edited={"amount_pence": 9_001}), quoted(2, "more", amount=9_001, edited=""),
        held(2, "more"), decided(SAM, world="more"), forwarded(2, "more"), executed(2),
    ]),
    ("an edit that pays more, released by nobody else", 5, "without the decisions", [
        *HELD, decided(SAM, edited={"amount_pence": 9_001}), quoted(2, "more", amount=9_001, edited=""),
        forwarded(2, "more"), executed(2),
    ]),
    ("an edit whose quote came to something else later", 5, "without the decisions", [
        *HELD, decided(SAM, edited={"amount_pence": 2}), quoted(2, "less", amount=2, edited=""), forwarded(2, "less"),
        quoted(3, "other", amount=1, edited=""), forwarded(3, "other"), executed(3),
    ]),
    ("an edit by who may not release", 5, "without the decisions", [
        *HELD, decided(ALEX, edited={"amount_pence": 1}), quoted(2, "less", amount=1, edited=""),
        forwarded(2, "less"), executed(2),
    ]),
    ("an edit by who has a lower limit of their own", 5, "without the decisions", [
        *HELD[:3], held(amount=9_000),
        decided(SAM.model_copy(update={"limit_minor": 8_999})), forwarded(), executed(),
    ]),
    ("an edit that is quoted as another", 5, "not quoted as a person changed it", [
        *HELD, decided(SAM, edited={"amount_pence": 1}), quoted(2, "less", amount=2, edited=""), forwarded(2, "less"),
        executed(2),
    ]),
    ("an edit that its quote passes over in silence", 5, "does not say so", [
        *HELD, decided(SAM, edited={"amount_pence": 1}), quoted(2, "less", amount=1), forwarded(2, "less"), executed(2),
    ]),
    # Rule 6
    ("a step over the limit", 6, "step 2 of at most 1", [started(max_steps=1), unfinished(), replied()]),
    ("a turn over the limit", 6, "step 2 of at most 1", [started(max_steps=1), unfinished(), proposed()]),
    ("a cost over the limit", 6, "4001 micro-USD of at most 4000", [started(), unfinished(4_000), replied(1)]),
    ("steps that the end leaves out", 6, "counts 1 steps", change(RELEASED, f.RunEnded, steps=1)),
    ("cost that the end leaves out", 6, "counts 1999 micro-USD", change(RELEASED, f.RunEnded, cost_micro_usd=1_999)),
    ("what may be owed beyond the limit", 6, "4001 micro-USD, with what may be owed, of at most 4000",
     change(RELEASED, f.RunEnded, uncertain_micro_usd=2_001)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "says", "story"), [pytest.param(*row[1:], id=row[0]) for row in UNFAIR])
def test_what_was_never_fair_is_found_and_named(rule: int, says: str, story: Story) -> None:
    violations = verify_run(tell(story))
    assert [v for v in violations if v.rule == rule and says in v.says], violations


@pytest.mark.parametrize(("rule", "story"), [pytest.param(row[1], row[3], id=row[0]) for row in UNFAIR])
def test_a_broken_rule_is_found_before_the_run_has_come_to_its_end(rule: int, story: Story) -> None:
    run = tell(story)
    first = min(violation.ordinal for violation in verify_run(run) if violation.rule == rule)
    assert [v for v in verify_run(run[: first + 1]) if v.rule == rule]
    assert verify_run(run[:first]) == [] or min(v.ordinal for v in verify_run(run[:first])) < first


everything: dict[str, Callable[[], f.Fact]] = {
    "proposed": proposed, "quoted": quoted, "held": held, "decided": decided, "forwarded": forwarded,
    "executed": executed, "refused": refused, "replied": replied, "ended": ended, "started": started,
    "cancelled": lambda: f.RunCancelled(by=ALEX), "unfinished": unfinished,
}  # fmt: skip


@given(st.lists(st.sampled_from(sorted(everything)), max_size=12))
def test_no_money_moves_unseen_whatever_is_told(names: list[str]) -> None:
    """Whoever tells whatever, with right seals: a held write is executed fairly, or verify objects."""
    story: Story = [started(max_steps=100, max_cost_micro_usd=10**6), *(everything[name]() for name in names)]
    violations = verify_run(tell(story))
    if violations or "executed" not in names:
        return
    before = names[: names.index("executed")]
    assert before.count("forwarded") == 1
    assert "held" not in before or "decided" in before
    assert names.count("executed") == 1


def test_verify_takes_what_it_does_not_know() -> None:
    log = MemoryLog()
    log.say(History(KEY), Draft(started(), None))
    newer = replace(log.accepted[0], fact=None)
    assert isinstance(verify_run([newer])[0], Violation)  # a run's first fact has to be readable
    unknown = events.write(KEY, Draft(f.CustomerSaid(text="x", message_id="1"), None), log.accepted[0], BEGIN)
    assert verify_run([log.accepted[0], replace(unknown, fact=None)]) == []
