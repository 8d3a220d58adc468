"""What a decision is answered, when the log takes its time."""

from datetime import timedelta

from approvals.handlers import deciding
from contracts.facts import CallDecided
from contracts.identity import Verifier
from contracts.parts import Json

from .tokens import Mint
from .told import KEY, START, Told, hold


async def nobody(subject: str, body: Json) -> Json:
    raise AssertionError(f"{subject} was asked")


async def decide(run: Told, mint: Mint, *, asked_after: timedelta, recorded_after: timedelta) -> Json:
    """An approval that is looked at at one time and in the log at another."""
    run.now = START + recorded_after
    body = {"token": mint.token("sam", "approver"), "run": KEY.run, "turn": 1, "call_id": "a"}
    answer = deciding(run.log, Verifier([mint.issuer], "turngate"), lambda: START + asked_after, nobody)
    return await answer(body | {"digest": hold().digest, "decision": "approve"})


async def test_a_decision_that_reaches_the_log_behind_the_holds_expiry_is_said_to_have_changed_nothing(
    run: Told, mint: Mint
) -> None:
    run.hold(hold(), hours=1)
    just_in_time, late = timedelta(minutes=59), timedelta(hours=1)

    answer = await decide(run, mint, asked_after=just_in_time, recorded_after=late)
    again = await decide(run, mint, asked_after=late, recorded_after=late)

    assert (answer["status"], answer["title"]) == (410, "Recorded too late")
    assert "changed nothing" in answer["detail"]
    assert (again["status"], again["title"]) == (410, "Expired")
    assert len(run.history.all(CallDecided)) == 1


async def test_a_decision_that_reaches_the_log_in_time_is_answered_with_its_fact(run: Told, mint: Mint) -> None:
    run.hold(hold(), hours=1)
    in_time = timedelta(minutes=59)

    answer = await decide(run, mint, asked_after=in_time, recorded_after=in_time)
    again = await decide(run, mint, asked_after=in_time, recorded_after=in_time)

    assert answer["status"] == 200
    assert again == answer | {"repeated": True}
