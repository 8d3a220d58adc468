"""For all people and orders of asking: every hold has one end, by people who may, and nobody counts twice."""

from contracts.events import Event
from contracts.facts import CallDecided, HoldExpired
from contracts.parts import Hold, Needs, Person
from contracts.testing import person
from hypothesis import given
from hypothesis import strategies as st

from .told import ALEX, LEE, LIA, SAM, SID, SUE, Told, hold, hold_of, quote

PEOPLE = [SAM, SUE, SID, LEE, LIA, person("alex", "lead"), person("C-1004", "lead"), person("lee", "approver")]
RANK = {"approver": 1, "lead": 2}

needs = st.builds(
    Needs,
    role=st.sampled_from(["approver", "lead"]),
    people=st.integers(1, 3),
    one_of_role=st.sampled_from([None, "lead"]),
)
asks = st.tuples(
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(PEOPLE),
    st.sampled_from(["approve", "approve", "approve", "decline"]),
    st.sampled_from(["delivered"] * 5 + ["cancelled"]),
    st.integers(0, 300),
)


def may(by: Person, held: Hold) -> bool:
    return by.subject not in ("alex", "C-1004") and RANK[by.role] >= RANK[held.needs.role]


@given(st.lists(needs, min_size=1, max_size=3), st.lists(asks, max_size=25))
def test_every_hold_ends_once_by_people_who_may(
    all_needs: list[Needs], asked: list[tuple[str, Person, str, str, int]]
) -> None:
    run = Told()
    holds = {call_id: hold(call_id, needs) for call_id, needs in zip("abc", all_needs, strict=False)}
    run.hold(*holds.values())
    for call_id, by, decision, state, minutes in asked:
        run.wait(minutes=minutes)
        run.look()
        run.ask(by, hold(call_id, state=state), decision)
    run.wait(days=2)
    run.look()
    run.look()

    expired = [call_id for fact in run.history.all(HoldExpired) for call_id in fact.call_ids]
    for held in holds.values():
        decided = [fact for fact in run.history.all(CallDecided) if fact.call_id == held.call_id]
        approvals = [fact.by for fact in decided if fact.decision == "approve"]
        declines = [fact.by for fact in decided if fact.decision == "decline"]
        people = {by.subject for by in approvals}
        assert all(may(by, held) and fact.digest == held.digest for fact in decided for by in [fact.by])
        assert len(people) == len(approvals) <= held.needs.people
        released = len(people) == held.needs.people
        if released and held.needs.one_of_role:
            assert "lead" in {by.role for by in approvals}
        assert [released, len(declines) == 1, expired.count(held.call_id) == 1].count(True) == 1
    assert set(expired) <= set(holds)


@given(st.lists(st.tuples(st.sampled_from([SAM, SUE, SID, LEE, ALEX]), st.booleans()), min_size=1, max_size=40))
def test_of_any_number_of_clicks_on_one_hold_exactly_one_counts(clicks: list[tuple[Person, bool]]) -> None:
    run = Told()
    run.hold(hold())

    outcomes = [run.ask(by, hold(), "approve" if yes else "decline") for by, yes in clicks]

    assert sum(isinstance(outcome, Event) for outcome in outcomes) == any(by != ALEX for by, _ in clicks)
    assert len({event.id for event in run.history.events}) == len(run.history.events)


steps = st.tuples(
    st.sampled_from([*PEOPLE, ALEX, SAM.model_copy(update={"limit_minor": 10000})]),
    st.sampled_from(["approve", "approve", "decline", "change"]),
    st.sampled_from([0, 5000, 9000, 12000, 18000, 20000]),
    st.integers(0, 200),
)


@given(needs, st.lists(steps, max_size=20))
def test_whatever_is_changed_it_is_only_ever_less_and_nobody_releases_what_they_made(
    needed: Needs, told: list[tuple[Person, str, int, int]]
) -> None:
    run = Told()
    now, attempt, pence = quote(), 1, 18000
    held = hold_of(now, needed.model_copy(update={"amount_minor": pence}))
    run.quote(now)
    run.hold(held)
    settled: dict[int, list[CallDecided]] = {1: []}
    for by, does, asked_pence, minutes in told:
        run.wait(minutes=minutes)
        run.look()
        if does != "change":
            outcome = run.ask(by, held, does)
            if isinstance(outcome, Event) and isinstance(outcome.fact, CallDecided):
                settled[attempt].append(outcome.fact)
            continue
        changed = quote(pence=asked_pence, edited=now.digest)
        outcome = run.ask(by, held, quoted=changed, edited=changed.arguments)
        if not isinstance(outcome, Event):
            continue
        assert attempt < 3
        assert 0 < asked_pence < pence
        now, attempt, pence = changed, attempt + 1, asked_pence
        held = hold_of(now, needed.model_copy(update={"amount_minor": pence}))
        settled[attempt] = []
        run.quote(now, attempt=attempt)
        run.hold(held, attempt=attempt)

    edits = [fact for fact in run.history.all(CallDecided) if fact.edited is not None]
    assert len(edits) == attempt - 1
    for number, facts in settled.items():
        before = [fact.by for fact in edits[: number - 1]]
        people = [fact.by for fact in facts]
        assert len({by.subject for by in people}) == len(people) <= needed.people
        assert [fact.decision for fact in facts[:-1]] == ["approve"] * (len(facts) - 1), "a decline is the last word"
        assert not {by.subject for by in people} & {by.subject for by in before}, "they have had their say"
        assert not {by.subject for by in people} & {"alex", "C-1004"}
    assert not {fact.by.subject for fact in edits} & {"alex", "C-1004"}
