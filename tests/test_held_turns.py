"""What people are told that they release, and what they are told stands in the way, from end to end."""

import csv
import io
from typing import Any

import pytest
from contracts.facts import CallDecided, TurnRefused
from turngate.running import RunningSystem

from .world import DONE, Case, Run, open_case, refund, turn, turngate

pytestmark = pytest.mark.timeout(300)


def two(system: RunningSystem, *pence: int) -> tuple[Case, Run]:
    """A turn of several refunds that is held."""
    case = open_case(system, *pence)
    case.says(turn(*(refund(order, minor) for order, minor in zip(case.orders, pence, strict=True))), DONE)
    run = case.start()
    run.holds()
    return case, run


def approval(system: RunningSystem, run: Run) -> dict[str, Any]:
    found = system.api("sam").get("/v1/approvals")["approvals"]
    return next(one for one in found if one["run"] == run.run)


def test_two_refunds_of_a_turn_are_named_as_the_sum_that_is_paid(system: RunningSystem) -> None:
    case, run = two(system, 4000, 4000)

    waits = approval(system, run)
    listed = turngate(system, "approvals", "--as", "sam").stdout
    done = turngate(system, "approve", run.run, "--as", "sam").stdout
    again = turngate(system, "approve", run.run, "--as", "sam").stdout
    rows = turngate(system, "audit", "--as", "ari", "--run", run.run, "--csv").stdout
    decided = next(row for row in csv.DictReader(io.StringIO(rows)) if row["kind"] == "approvals.call-decided")

    assert waits["total"] == [{"currency": "GBP", "amount_minor": 8000}]
    assert len(waits["held_turn"]["parts"]) == 2
    assert waits["holds"][0]["releases"]["now"]
    for said in (listed, done, again):
        assert "£80.00 all together" in said
        assert all(order in said for order in case.orders)
    assert sum(paid["amount_minor"] for paid in case.refunds()) == 8000
    assert (decided["released_minor"], decided["releases"][:6]) == ("8000", "£80.00")
    assert len(run.facts(CallDecided)) == 1


def test_of_two_held_refunds_the_first_approval_is_told_to_release_nothing_yet(system: RunningSystem) -> None:
    case, run = two(system, 6000, 7000)
    first, last = (hold["call_id"] for hold in run.holds())

    one = turngate(system, "approve", run.run, first, "--as", "sam", "--no-wait").stdout
    paid_yet = case.refunds()
    rest = turngate(system, "approve", run.run, last, "--as", "sue").stdout

    assert f"Nothing is released yet: {last} still waits. The whole turn is £130.00." in one
    assert paid_yet == []
    assert "£130.00 all together" in rest
    assert sum(paid["amount_minor"] for paid in case.refunds()) == 13_000


def test_an_approval_is_not_spent_on_what_is_stopped(system: RunningSystem) -> None:
    case, run = two(system, 18000)
    (hold,) = run.holds()
    ada = system.api("ada")
    stop = ada.post("/v1/stops", {"above_minor": 17_000, "reason": "a wave of false claims"})["data"]["stop_id"]
    try:
        body = {name: hold[name] for name in ("turn", "call_id", "digest")}
        refused = run.post("sam", "decisions", body | {"decision": "approve"})
        waits = approval(system, run)
        listed = turngate(system, "approvals", "--as", "sam").stdout
        said = turngate(system, "approve", run.run, "--as", "sam")
    finally:
        ada.post(f"/v1/stops/{stop}/lift", {"reason": "over"})

    assert (refused.status_code, refused.json()["title"]) == (409, "Stopped")
    assert "a wave of false claims" in refused.json()["detail"]
    assert [one["kind"] for one in waits["holds"][0]["obstacles"]] == ["stopped"]
    assert not waits["holds"][0]["you"]["may"]
    assert "Stopped: " in listed
    assert (said.returncode, "Stopped" in said.stderr) == (1, True)
    assert (run.facts(CallDecided), run.facts(TurnRefused)) == ([], [])
    assert run.decide("sam", hold).status_code == 200
    assert run.ended()["status"] == "resolved"
    assert [paid["amount_minor"] for paid in case.refunds()] == [18_000]


def test_a_pack_that_asks_for_people_whom_there_are_not_is_promoted_with_a_warning(
    system: RunningSystem, tmp_path: Any
) -> None:
    before = system.api("gail", "globex").get("/v1/policy")["text"]
    pack = tmp_path / "pack.yaml"
    text = before.replace("role: approver\n      one_of_role: lead", "role: lead").replace("version: 3", "version: 93")
    pack.write_text(text)
    try:
        said = turngate(system, "policy", "promote", str(pack), "--as", "gail", "--tenant", "globex")
        kept = turngate(system, "audit", "--as", "glen", "--tenant", "globex", "--csv").stdout
    finally:
        pack.write_text(before)
        back = turngate(system, "policy", "promote", str(pack), "--as", "gail", "--tenant", "globex")

    assert "globex version 93 is in force" in said.stdout
    assert "Warning: Nobody can release refunds of up to $2,000.00" in said.stderr
    assert "needs 2 leads" in said.stderr
    [row] = [row for row in csv.DictReader(io.StringIO(kept)) if "globex v93" in row["policy"]]
    assert "needs 2 leads" in row["why"]
    assert back.stderr == "", "one lead and one approver are there"
