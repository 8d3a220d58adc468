"""The pack changes while a turn waits for people: it keeps those it was held for, and nothing passes the new limits."""

import pytest
from contracts.declines import WHAT_FOLLOWS
from contracts.facts import TurnForwarded, TurnHeld, TurnRefused
from policy.pack import parse

from .quotes import PACK, read, refund
from .told import LEE, SAM, SUE, Told, verdicts

NEWER = PACK.replace("version: 3", "version: 4")


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (NEWER, TurnForwarded),
        (PACK + "# said otherwise\n", TurnForwarded),
        (NEWER.replace("automatic_up_to: 5000", "automatic_up_to: 40000"), TurnForwarded),
        (NEWER.replace("- up_to: 50000", "- up_to: 50000\n      people: 2"), TurnRefused),
        (NEWER.replace("50000", "6000").replace("200000", "7000"), TurnRefused),
        (PACK, TurnForwarded),
    ],
    ids=["another version", "another text", "looser", "more people", "a lower cap", "the same"],
)
def test_each_fact_names_the_pack_that_was_in_force_when_it_was_said(
    run: Told, text: str, becomes: type[TurnForwarded | TurnRefused]
) -> None:
    held = run.quote(refund())
    before, run.pack = run.pack, parse(text)

    answer = run.decide(SAM, refund())

    assert isinstance(held, TurnHeld)
    assert isinstance(answer, becomes)
    assert (held.pack, answer.pack) == (before.stamp, run.pack.stamp)


def test_a_lower_cap_binds_a_turn_that_waits(run: Told) -> None:
    run.quote(refund(amount=18_000))
    run.pack = parse(PACK.replace("50000", "6000").replace("200000", "7000"))

    refused = run.decide(SAM, refund(amount=18_000))

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "above-every-tier"


def test_a_call_that_only_now_needs_people_takes_the_turn_down_rather_than_wait_for_ever(run: Told) -> None:
    run.quote(refund("a", 4000), refund("b", 18_000, today=22_000))
    run.pack = parse(PACK.replace("automatic_up_to: 5000", "automatic_up_to: 1000"))

    refused = run.decide(SAM, refund("b", 18_000))

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "policy-changed"


def test_a_higher_limit_does_not_spare_the_people_who_were_asked(run: Told) -> None:
    run.quote(refund("a"), refund("b", today=36_000))
    run.pack = parse(PACK.replace("automatic_up_to: 5000", "automatic_up_to: 40000"))

    assert run.decide(SAM, refund("a")) is None
    assert verdicts(run.decide(SAM, refund("b"), "decline")) == {"a": "run", "b": "declined"}


def test_a_pack_that_asks_for_more_people_refuses_what_too_few_released(run: Told) -> None:
    run.quote(refund())
    run.pack = parse(PACK.replace("- up_to: 50000", "- up_to: 50000\n      people: 2"))

    refused = run.decide(SAM, refund())

    assert isinstance(refused, TurnRefused)
    assert refused.rule == "policy-changed"
    assert refused.results[0].content == (
        "Not done: the shop's policy changed while this waited, and now asks for other people than were asked. Nothing "
        "was done. If it is still needed, propose it once more: it is then judged by the new policy."
    )
    again = run.quote(refund(), turn=2)
    assert isinstance(again, TurnHeld)
    assert (again.pack, again.holds[0].needs.people) == (run.pack.stamp, 2)
    assert run.decide(SUE, refund(), turn=2) is None, "who approved it before is asked again, too"
    assert verdicts(run.decide(SAM, refund(), turn=2)) == {"a": "run"}


def test_what_is_refused_for_anothers_sake_is_told_what_to_do_and_a_decline_that_it_was_declined(run: Told) -> None:
    quotes = [read("r"), refund("a"), refund("b", today=36_000)]
    run.quote(*quotes)
    run.decide(SUE, refund("b", today=36_000), "decline")
    run.pack = parse(PACK.replace("- up_to: 50000", "- up_to: 50000\n      people: 2"))

    refused = run.decide(SAM, refund("a"))

    assert isinstance(refused, TurnRefused)
    rest, asked, declined = (result.content for result in refused.results)
    assert "judged by the new policy" in asked
    assert "another call of this turn was refused" in rest
    assert "propose it once more" in rest
    assert declined == f"A person declined this, so it was not done. {WHAT_FOLLOWS}"


def test_a_pack_that_asks_for_more_people_takes_those_of_the_hold_where_they_are_enough(run: Told) -> None:
    run.quote(refund(amount=60_000))
    run.pack = parse(PACK.replace("- up_to: 50000", "- up_to: 50000\n      people: 2"))
    run.decide(SAM, refund(amount=60_000))

    assert verdicts(run.decide(LEE, refund(amount=60_000))) == {"a": "run"}


def test_a_pack_that_asks_for_fewer_people_does_not_spare_those_of_the_hold(run: Told) -> None:
    run.quote(refund(amount=60_000))
    run.pack = parse(PACK.replace("50000", "60000"))

    assert run.decide(SAM, refund(amount=60_000)) is None
    assert verdicts(run.decide(LEE, refund(amount=60_000))) == {"a": "run"}
