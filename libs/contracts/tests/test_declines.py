"""Which declines stand at the end of a run, and that `verify` knows a run that leaves its customer alone."""

from datetime import timedelta

import pytest
from contracts import facts as f
from contracts import parts
from contracts.canonical import sha256
from contracts.declines import READS, standing
from contracts.events import Event
from contracts.facts import CATALOGUE
from contracts.verify import verify
from hypothesis import given
from hypothesis import strategies as st

from .stories import BEGIN, HOUR, PACK, SAM, Story, ended, proposed, replied, started, tell

EXPIRES = BEGIN + 24 * HOUR


def turn(number: int, *calls: tuple[str, str, str]) -> Story:
    """A turn of refunds that is held; each call is its id, its object, and what becomes of it: approved, failed,
    declined, expired or automatic."""
    quotes = [
        parts.CallQuote(
            call_id=call_id,
            tool="refund",
            kind="write",
            arguments={},
            subject="cust-1",
            effect=parts.Effect(summary="Refund", object=about, amount_minor=9_000, currency="GBP"),
            digest=sha256([call_id, about]),
        )
        for call_id, about, _ in calls
    ]
    fate = {call_id: became for call_id, _, became in calls}
    digests = {quote.call_id: quote.digest for quote in quotes}
    asked = [call_id for call_id, became in fate.items() if became != "automatic"]
    no = ("declined", "expired")
    story: Story = [
        proposed(turn=number, calls=fate).model_copy(
            update={"calls": [parts.ToolCall(call_id=one, tool="refund", arguments={}) for one in fate]}
        ),
        f.TurnQuoted(turn=number, attempt=1, quotes=quotes),
    ]
    if asked:
        holds = [parts.Hold(call_id=one, digest=digests[one], rule="large", reason="large") for one in asked]
        story.append(
            f.TurnHeld(turn=number, attempt=1, pack=PACK, holds=holds, expires_at=EXPIRES, remind_at=EXPIRES - 6 * HOUR)
        )
    story += [_decided(number, one, digests[one], fate[one]) for one in asked if fate[one] != "expired"]
    if late := [one for one in asked if fate[one] == "expired"]:
        story.append(f.HoldExpired(turn=number, call_ids=late, hands_over=True))
    return [
        *story,
        f.TurnForwarded(
            turn=number,
            attempt=1,
            pack=PACK,
            verdicts=[
                parts.Verdict(
                    call_id=one,
                    verdict="declined" if became in no else "run",
                    digest=digests[one],
                    rule=became if became in no else "released",
                )
                for one, became in fate.items()
            ],
        ),
        f.TurnExecuted(
            turn=number,
            attempt=1,
            receipt_id="r",
            results=[
                parts.CallResult(call_id=one, content=became, is_error=became in (*no, "failed"))
                for one, became in fate.items()
            ],
        ),
    ]


def _decided(number: int, call_id: str, digest: str, became: str) -> f.CallDecided:
    decline = became == "declined"
    return f.CallDecided(
        turn=number,
        call_id=call_id,
        digest=digest,
        decision="decline" if decline else "approve",
        by=SAM,
        note="It was worn." if decline else "",
        hands_over=True if decline else None,
    )


def run(*turns: Story, status: str = "resolved") -> list[Event]:
    steps = len(turns) + 1
    limits = {"max_steps": 99, "max_cost_micro_usd": 99_000}
    end = ended(status, steps, 1_000 * steps)
    return tell([started(**limits), *(fact for one in turns for fact in one), replied(), end])


def stands(*turns: Story) -> list[str]:
    return [one.call_id for one in standing(run(*turns))]


DECLINED = turn(1, ("a", "ORD-1", "declined"))


def test_a_decline_stands_until_something_makes_it_good() -> None:
    [one] = standing(run(DECLINED))
    assert (one.turn, one.call_id, one.by, one.note, one.hands_over) == (1, "a", SAM, "It was worn.", True)
    assert one.quote is not None


def test_what_nobody_decided_in_time_stands_as_a_decline() -> None:
    [one] = standing(run(turn(1, ("a", "ORD-1", "expired"))))
    assert (one.call_id, one.by) == ("a", None)


def test_a_later_approval_about_the_same_makes_it_good_once_it_is_carried_out() -> None:
    assert stands(DECLINED, turn(2, ("b", "ORD-1", "approved"))) == []
    assert stands(DECLINED, turn(2, ("b", "ORD-1", "failed"))) == ["a"]


@pytest.mark.parametrize("became", ["automatic", "expired", "declined"])
def test_nothing_but_an_approval_makes_it_good(became: str) -> None:
    assert len(stands(DECLINED, turn(2, ("b", "ORD-1", became)))) == 1


def test_an_approval_about_another_object_does_not_make_it_good() -> None:
    assert stands(DECLINED, turn(2, ("b", "ORD-2", "approved"))) == ["a"]
    assert stands(turn(1, ("a", "ORD-1", "declined"), ("b", "ORD-2", "approved"))) == ["a"]


def test_an_approval_in_the_same_turn_is_of_another_call() -> None:
    assert stands(turn(1, ("a", "ORD-1", "declined"), ("b", "ORD-1", "approved"))) == ["a"]


def test_one_approval_makes_one_decline_good() -> None:
    two = turn(1, ("a", "ORD-1", "declined"), ("b", "ORD-1", "declined"))
    assert stands(two, turn(2, ("c", "ORD-1", "approved"))) == ["b"]
    assert stands(two, turn(2, ("c", "ORD-1", "approved"), ("d", "ORD-1", "approved"))) == []


def test_a_call_that_is_declined_again_and_then_approved_is_made_good() -> None:
    again = turn(2, ("b", "ORD-1", "declined"))
    assert stands(DECLINED, again) == ["b"]
    assert stands(DECLINED, again, turn(3, ("c", "ORD-1", "approved"))) == []


def test_a_decline_in_a_turn_that_policy_refused_stands() -> None:
    results = [parts.CallResult(call_id="a", content="Declined.", is_error=True)]
    refused = f.TurnRefused(turn=1, attempt=1, pack=PACK, rule="limit", results=results)
    assert [one.call_id for one in standing(tell([started(), *DECLINED[:-2], refused]))] == ["a"]


def test_a_decision_behind_the_holds_end_does_not_count() -> None:
    story = [started(), *DECLINED[:3], timedelta(hours=25), DECLINED[3], *DECLINED[4:]]
    assert standing(tell(story)) == ()


fates = st.sampled_from(["approved", "failed", "declined", "expired", "automatic"])
turns = st.lists(st.lists(st.tuples(st.sampled_from(["ORD-1", "ORD-2"]), fates), min_size=1, max_size=3), max_size=4)


@given(turns)
def test_what_stands_is_told_by_the_kinds_that_are_said_to_tell_it(given_turns: list[list[tuple[str, str]]]) -> None:
    story = run(
        *(
            turn(n, *((f"c-{n}-{m}", about, became) for m, (about, became) in enumerate(calls)))
            for n, calls in enumerate(given_turns, 1)
        ),
        status="escalated",
    )
    found = standing(story)
    assert found == standing(event for event in story if event.kind in READS)
    assert frozenset(CATALOGUE) >= READS
    last = given_turns[-1] if given_turns else []
    assert len(found) >= sum(became in ("declined", "expired") for _, became in last)
    assert verify(story) == []


# As a rule of every log


@pytest.mark.parametrize("became", ["declined", "expired"])
def test_a_run_that_ends_resolved_over_a_decline_is_found(became: str) -> None:
    [found] = verify(run(turn(1, ("a", "ORD-1", became))))
    assert (found.rule, "call a of turn 1" in found.says) == (7, True)


def test_one_that_ends_with_a_person_or_was_made_good_is_fair() -> None:
    assert verify(run(DECLINED, status="escalated")) == []
    assert verify(run(DECLINED, turn(2, ("b", "ORD-1", "approved")))) == []


def test_an_older_log_whose_declines_do_not_say_that_they_hand_over_is_fair() -> None:
    older = [
        one.model_copy(update={"hands_over": None}) if isinstance(one, f.CallDecided | f.HoldExpired) else one
        for one in [*DECLINED]
    ]
    assert verify(run(older)) == []
