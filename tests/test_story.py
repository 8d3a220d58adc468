"""The system as its people meet it: a ticket from start to end, too many starts, restarts, waits, and the log of it."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from contracts.facts import CallDecided, HoldExpired, ReminderSent, RunEnded, TurnExecuted, TurnHeld, TurnProposed
from contracts.verify import verify
from turngate.commands.log import read
from turngate.running import RunningSystem

from .own_system import OwnSystem
from .world import (
    DONE,
    Case,
    Run,
    at_once,
    client,
    look_up,
    model_of,
    open_case,
    refund,
    rows,
    turn,
    turngate,
)

pytestmark = pytest.mark.timeout(300)


# TCK-2004, which no other test works on this system


def test_tck_2004_is_held_at_180_pounds_refused_to_alex_released_by_sam_and_paid_once(system: RunningSystem) -> None:
    def paid() -> list[dict[str, Any]]:
        return rows(
            system,
            "select amount_minor, currency, run, released_by from shop.refunds"
            " where tenant = 'acme' and order_reference = 'ORD-10042'",
        )

    shown = turngate(system, "run", "TCK-2004", "--as", "alex")
    assert shown.returncode == 0, shown.stderr
    run = Run(system, "TCK-2004-1")
    said = [line.split()[2] for line in shown.stdout.splitlines() if line[:1].isdigit()]
    assert said[-3:] == ["turn-proposed", "turn-quoted", "turn-held"]
    assert "Refund £180.00 for ORD-10042" in shown.stdout
    assert "Nothing of this turn has been done" in shown.stdout
    held = run.until(TurnHeld)
    assert held.turn not in [fact.turn for fact in run.facts(TurnExecuted)]
    assert paid() == []

    before = run.view()["sequence"]
    refused = turngate(system, "approve", "TCK-2004-1", "--as", "alex")
    assert refused.returncode == 1
    assert "Not for your role" in refused.stderr
    assert (run.view()["sequence"], run.view()["status"], paid()) == (before, "awaiting_approval", [])

    released = turngate(system, "approve", "TCK-2004-1", "--as", "sam")
    assert released.returncode == 0, released.stderr
    assert "released by sam: Refunded £180.00" in released.stdout
    assert released.stdout.splitlines()[-1].split()[2:4] == ["run-ended", "resolved"]
    assert paid() == [{"amount_minor": 18000, "currency": "GBP", "run": "TCK-2004-1", "released_by": ["sam"]}]
    assert run.facts(TurnExecuted)[-1].approved_by == {held.holds[0].call_id: ["sam"]}
    assert system.api("alex").get("/v1/tickets/TCK-2004")["status"] == "resolved"

    at_its_end = run.kinds()
    (decided,) = [event.id for event in run.events() if isinstance(event.fact, CallDecided)]
    again = turngate(system, "approve", "TCK-2004-1", "--as", "sam", "--no-wait", "--json")
    assert (again.returncode, f'"id": "{decided}"' in again.stdout) == (0, True)
    late = turngate(system, "approve", "TCK-2004-1", "--as", "sue")
    assert late.returncode == 1
    assert "Your click changed nothing" in late.stderr
    assert run.kinds() == [*at_its_end, "approvals.decision-refused"]
    assert len(paid()) == 1


# Too much of a thing


def test_an_agent_that_loops_ends_at_its_twelfth_step_and_a_person_gets_the_ticket(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(look_up(case.orders[0])), repeat=True)
    run = case.start()
    view = run.ended()
    assert (view["status"], view["steps"], view["max_steps"]) == ("budget_exhausted", 12, 12)
    assert len(run.facts(TurnProposed)) == 12
    assert len(run.facts(TurnExecuted)) == 12, "the last turn was not brought to its end"
    assert model_of(system).asked(case.ticket) == 12
    assert run.until(RunEnded).steps == 12
    assert case.status() == "escalated"


def test_a_run_that_waited_for_a_person_has_no_fresh_steps(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(look_up(case.orders[0])), turn(refund(case.orders[0], 18000)), DONE)
    run = case.start(max_steps=2)
    (hold,) = run.holds()
    assert run.decide("sam", hold).status_code == 200
    view = run.ended()
    assert (view["status"], view["steps"]) == ("budget_exhausted", 2)
    assert len(case.refunds()) == 1
    assert model_of(system).asked(case.ticket) == 2


def test_fifty_starts_of_one_ticket_in_the_same_moment_are_one_run(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    programs = [client(system, "alex") for _ in range(50)]
    answers = at_once(*(partial(program.post, f"/v1/tickets/{case.ticket}/runs") for program in programs))
    assert sorted(answer.status_code for answer in answers) == [200] * 49 + [202]
    assert {answer.json()["run"] for answer in answers} == {f"{case.ticket}-1"}
    run = Run(system, f"{case.ticket}-1")
    (hold,) = run.holds()
    assert [one["run"] for one in system.api("alex").get(f"/v1/tickets/{case.ticket}")["runs"]] == [run.run]
    assert model_of(system).asked(case.ticket) == 1
    assert run.decide("sam", hold).status_code == 200
    run.ended()
    assert len(case.refunds()) == 1


# A system that is stopped and started again, where globex's holds last for seconds


def held_case(system: RunningSystem, tenant: str = "acme") -> tuple[Case, Run, dict[str, Any]]:
    case = open_case(system, 18000, tenant=tenant)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    return case, run, hold


def lists(system: RunningSystem, who: str = "sam") -> dict[str, Any]:
    api = system.api(who)
    return {path: api.get(path) for path in ("/v1/tickets", "/v1/runs", "/v1/approvals")}


def test_a_hold_that_nobody_decides_expires_and_the_model_is_told_and_no_money_moves(
    own_system: OwnSystem,
) -> None:
    case, run, hold = held_case(own_system, "globex")
    assert run.until(ReminderSent).call_ids == [hold["call_id"]]
    assert run.until(HoldExpired).call_ids == [hold["call_id"]]
    assert run.ended()["status"] == "escalated"

    (told,) = run.facts(TurnExecuted)[0].results
    assert told.is_error
    assert "Nobody released this in time" in told.content
    last = model_of(own_system).was_sent(case.ticket)[-1]["messages"][-1]
    assert [block["content"] for block in last["content"]] == [told.content]
    assert case.refunds() == []
    late = run.decide("gus", hold)
    assert late.status_code in (409, 410), late.text
    assert case.refunds() == []


def test_what_waits_still_waits_after_a_restart_and_what_ran_out_meanwhile_has_ended(
    own_system: OwnSystem,
) -> None:
    system = own_system
    case, run, _ = held_case(system)
    abroad, short, _ = held_case(system, "globex")
    before = lists(system)
    system.down()
    system.up()

    assert lists(system) == before
    assert run.run in [waiting["run"] for waiting in before["/v1/approvals"]["approvals"]]
    short = Run(system, short.run, short.tenant)  # the gateway has another port now
    assert short.until(HoldExpired)
    assert abroad.refunds() == []

    case.says(turn(refund(case.orders[0], 18000)), DONE)  # the stand-in forgets
    released = turngate(system, "approve", run.run, "--as", "sam")
    assert released.returncode == 0, released.stderr
    assert Run(system, run.run).view()["status"] == "resolved"
    assert [row["released_by"] for row in case.refunds()] == [["sam"]]


def test_the_lists_are_made_anew_from_the_log_whatever_had_become_of_them(
    own_system: OwnSystem,
) -> None:
    system = own_system
    case, run, hold = held_case(system)
    ended = held_case(system)[1]
    assert ended.decide("sam", ended.holds()[0], "decline").status_code == 200
    ended.ended()
    before = lists(system)
    rows(system, "update desk.runs set status = 'failed' where run = %s returning run", run.run)
    rows(system, "delete from desk.runs where run = %s returning run", ended.run)
    assert lists(system) != before

    made = turngate(system, "rebuild-views")
    assert made.returncode == 0, made.stderr
    assert lists(system) == before
    assert run.decide("sam", hold, "decline").status_code == 200
    assert run.ended()["status"] == "escalated"
    assert case.refunds() == []


# The log of it


def verified(lines: list[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "turngate", "log", "verify"]
    return subprocess.run(command, input="".join(lines), capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def exported(system: RunningSystem) -> tuple[str, list[str]]:
    """A run with everything in it, and its exported lines."""
    case = open_case(system, 18000, 12000)
    case.says(
        turn(look_up(case.orders[0])),
        turn(refund(case.orders[0], 18000), refund(case.orders[1], 12000)),
        turn(refund(case.orders[0], 18000)),
        DONE,
    )
    run = case.start()
    first, second = run.holds()
    run.decide("sam", first)
    run.decide("sue", second, "decline", note="Not this one")
    run.ended()
    lines = turngate(system, "log", "export", "--run", run.run, "--tenant", "acme").stdout.splitlines(keepends=True)
    assert len(lines) == len(run.events())
    assert verified(lines).returncode == 0
    return run.run, lines


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (lambda lines: [*lines[:6], lines[6].replace("18000", "18001"), *lines[7:]], 6),
        (lambda lines: [*lines[:6], *lines[7:]], 7),
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines[:7], *lines[6:]], 6),
        (lambda lines: [*lines[:6], lines[7], lines[6], *lines[8:]], 7),
    ],
    ids=["changed", "missing", "without its first", "doubled", "reordered"],
)
def test_an_event_that_was_tampered_with_is_found_and_named(
    exported: tuple[str, list[str]], harm: Callable[[list[str]], list[str]], named: int
) -> None:
    run, lines = exported
    harmed = harm(lines)
    assert harmed != lines
    found = verified(harmed)
    assert found.returncode == 1
    assert f"acme/{run} event {named}: rule 1: " in found.stdout


def test_a_changed_byte_is_found_wherever_it_is(exported: tuple[str, list[str]]) -> None:
    _, lines = exported
    payloads = [line.strip().encode() for line in lines]
    for number, payload in enumerate(payloads):
        for place in range(number % 13, len(payload), 13):
            changed = payload[:place] + bytes([payload[place] ^ 1]) + payload[place + 1 :]
            events, unreadable = read([*payloads[:number], changed, *payloads[number + 1 :]])
            # The event itself, or the next one, which does not fit on it.
            named = {violation.ordinal for violation in verify(events)} & {number, number + 1}
            assert unreadable or named, f"byte {place} of event {number}"


def test_every_rule_holds_in_the_log_of_all_that_was_done_to_this_system(system: RunningSystem) -> None:
    command = [sys.executable, "-m", "turngate", "log"]
    with subprocess.Popen([*command, "export", "--data", str(system.data)], stdout=subprocess.PIPE) as export:
        found = subprocess.run([*command, "verify"], stdin=export.stdout, capture_output=True, text=True, timeout=200)
    assert export.returncode == 0
    assert found.returncode == 0, found.stdout
    assert "every rule holds" in found.stdout
