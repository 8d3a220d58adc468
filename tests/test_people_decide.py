"""What people hold in their hands: changed arguments, own limits, a stop, a world that moved while they thought."""

from typing import Any

import psycopg
import pytest
from contracts.facts import CallDecided, TurnExecuted, TurnHeld, TurnQuoted
from turngate.api import Api
from turngate.issuer import Issuer
from turngate.running import RunningSystem

from .world import DONE, OPERATORS, Case, Run, at_once, client, model_of, open_case, post, refund, turn, turngate, until

pytestmark = pytest.mark.timeout(300)


def held(system: RunningSystem, pence: int) -> tuple[Case, Run, dict[str, Any]]:
    case = open_case(system, pence)
    case.says(turn(refund(case.orders[0], pence)), DONE)
    run = case.start()
    (hold,) = run.holds()
    return case, run, hold


def change(run: Run, who: str, hold: dict[str, Any], pence: int) -> Any:
    """What the gateway answers to "approve, but this much"."""
    body = {name: hold[name] for name in ("turn", "call_id", "digest")}
    (arguments,) = [q.arguments for q in run.facts(TurnQuoted)[-1].quotes if q.call_id == hold["call_id"]]
    edited = {**arguments, "amount_pence": pence}
    return run.post(who, "decisions", body | {"decision": "approve", "edited": edited})


def last_sequence(run: Run) -> int:
    return int(run.view()["sequence"])


# Approve, but less


def test_approve_but_120_pays_120_once_and_tells_the_model_what_was_changed(system: RunningSystem) -> None:
    case, run, hold = held(system, 18000)
    shown = run.post(
        "sam", "quotes", {"turn": hold["turn"], "call_id": hold["call_id"], "edited": {"amount_pence": 12000}}
    )
    assert shown.status_code == 200, shown.text
    assert case.refunds() == []

    assert change(run, "sam", hold, 12000).status_code == 200
    assert run.ended()["status"] == "resolved"

    (paid,) = case.refunds()
    assert (paid["amount_minor"], paid["released_by"]) == (12000, ["sam"])
    (decided,) = run.facts(CallDecided)
    assert decided.edited is not None
    assert decided.edited["amount_pence"] == 12000
    result = run.result(hold["call_id"])
    assert "18000" in result.content
    assert "12000" in result.content
    sent = str(model_of(system).was_sent(case.ticket)[-1]["messages"])
    assert "changed" in sent


@pytest.mark.parametrize("pence", [18001, 0, -1])
def test_nobody_approves_more_than_was_asked_for_or_nothing_at_all(system: RunningSystem, pence: int) -> None:
    case, run, hold = held(system, 18000)
    before = run.kinds()

    answer = change(run, "sam", hold, pence)

    assert answer.status_code == 422, answer.text
    assert [kind for kind in run.kinds() if kind != "approvals.decision-refused"] == before
    assert case.refunds() == []


def test_who_asked_for_it_does_not_approve_it_by_changing_it(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start("sam")
    (hold,) = run.holds()

    refused = change(run, "sam", hold, 100)

    assert (refused.status_code, "You started this run" in refused.text) == (403, True), refused.text
    assert (run.facts(CallDecided), case.refunds()) == ([], [])


def test_of_two_who_are_needed_one_changes_it_and_the_other_releases_what_it_came_to(system: RunningSystem) -> None:
    case, run, hold = held(system, 60000)
    before = last_sequence(run)
    changed = change(run, "sam", hold, 55000)
    assert changed.status_code == 200, (changed.text, run.kinds())
    again = run.event(TurnHeld, after=before)
    assert isinstance(again.fact, TurnHeld)
    (anew,) = again.fact.holds
    assert anew.digest != hold["digest"]
    assert case.refunds() == []

    assert run.decide("lee", {"turn": hold["turn"], "call_id": anew.call_id, "digest": anew.digest}).status_code == 200
    run.ended()
    assert [row["amount_minor"] for row in case.refunds()] == [55000]


def test_of_three_held_calls_one_is_changed_one_declined_and_one_approved(system: RunningSystem) -> None:
    case = open_case(system, 9000, 9000, 9000)
    case.says(turn(*(refund(order, 9000) for order in case.orders)), DONE)
    run = case.start()
    first, second, third = run.holds()

    assert run.decide("sam", second, "decline", "not this one").status_code == 200
    assert run.decide("sam", third).status_code == 200
    changed = change(run, "sam", first, 8000)
    assert changed.status_code == 200, changed.text
    assert run.ended()["status"] == "escalated"

    paid = {row["order_reference"]: row["amount_minor"] for row in case.refunds()}
    assert paid == {case.orders[0]: 8000, case.orders[2]: 9000}
    assert "not this one" in run.result(second["call_id"]).content


def test_what_another_has_decided_keeps_nobody_from_deciding_the_rest(system: RunningSystem) -> None:
    case = open_case(system, 9000, 8000)
    case.says(turn(*(refund(order, pence) for order, pence in zip(case.orders, (9000, 8000), strict=True))), DONE)
    run = case.start()
    first, _ = run.holds()
    assert run.decide("sue", first, "decline", "not this one").status_code == 200

    released = turngate(system, "approve", run.run, "--as", "sam")

    assert released.returncode == 0, released.stderr
    assert released.stderr == ""
    assert [row["amount_minor"] for row in case.refunds()] == [8000]


# A limit of one's own


def test_an_approver_with_a_limit_of_their_own_releases_nothing_above_it(system: RunningSystem) -> None:
    case, run, hold = held(system, 18000)
    token = Issuer(system.data / "issuer").issue("nia", "acme", "approver", limit_minor=10000)
    nia = Api(system.url, token)
    body = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": "approve"}

    with pytest.raises(Exception, match=r"100\.00"):
        nia.post(f"{run.path}/decisions", body)
    assert (run.facts(CallDecided), case.refunds()) == ([], [])

    edited = {**run.facts(TurnQuoted)[-1].quotes[-1].arguments, "amount_pence": 10000}
    nia.post(f"{run.path}/decisions", body | {"edited": edited})
    run.ended()
    assert [row["amount_minor"] for row in case.refunds()] == [10000]


# The stop switch


def test_while_a_stop_is_set_nothing_is_paid_whoever_approved_it_and_once_lifted_it_is(system: RunningSystem) -> None:
    case, run, hold = held(system, 17900)
    stop = post(system, "ada", "/v1/stops", {"tool": "issue_refund", "above_minor": 17800, "reason": "false claims"})
    assert stop.status_code in (200, 201), stop.text
    number = stop.json()["data"]["stop_id"]
    lift = f"/v1/stops/{number}/lift"
    try:
        until(lambda: bool(stops_of_the_shop(system)), within=30)
        stopped = run.decide("sam", hold)
        assert stopped.status_code == 409, stopped.text
        assert stopped.json()["title"] == "Stopped"
        assert run.view()["status"] == "awaiting_approval"
        assert run.facts(CallDecided) == []
        assert case.refunds() == []
        assert post(system, "sam", lift, {}).status_code == 403
    finally:
        assert post(system, "ada", lift, {}).status_code == 200
    until(lambda: not stops_of_the_shop(system), within=30)

    assert run.decide("sam", hold).status_code == 200
    run.ended()
    assert [row["amount_minor"] for row in case.refunds()] == [17900]


def stops_of_the_shop(system: RunningSystem) -> list[Any]:
    with psycopg.connect(system.state.postgres_url) as connection:
        return connection.execute(
            "select stop_id from shop.stops where tenant = 'acme' and set_in > lifted_in"
        ).fetchall()


# The stale world


def test_what_changed_while_it_was_held_is_shown_to_people_again_before_it_is_paid(system: RunningSystem) -> None:
    case, run, hold = held(system, 18000)
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute(
            "update shop.payments set amount_minor = 20000 where tenant = 'acme' and order_reference = %s",
            [case.orders[0]],
        )

    before = last_sequence(run)
    assert run.decide("sam", hold).status_code == 200
    again = run.event(TurnHeld, after=before)
    assert isinstance(again.fact, TurnHeld)
    (anew,) = again.fact.holds
    assert anew.digest != hold["digest"]
    assert case.refunds() == []

    stale = run.decide("sue", hold)
    assert stale.status_code == 409, stale.text
    assert run.decide("sue", {"turn": hold["turn"], "call_id": anew.call_id, "digest": anew.digest}).status_code == 200
    run.ended()
    assert [(row["amount_minor"], row["released_by"]) for row in case.refunds()] == [(18000, ["sue"])]


def test_what_was_refunded_elsewhere_meanwhile_is_not_refunded_again_on_the_old_approval(
    system: RunningSystem,
) -> None:
    case, run, hold = held(system, 18000)
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute(
            "insert into shop.refunds (tenant, id, intent, n, order_reference, customer_id, amount_minor, currency,"
            " reason, day) values ('acme', %s, repeat('0', 64), 0, %s, %s, 10000, 'GBP', 'at the till', current_date)",
            [f"RF-{case.customer}", case.orders[0], case.customer],
        )

    assert run.decide("sam", hold).status_code == 200
    run.ended()
    assert [row["amount_minor"] for row in case.refunds()] == [10000]
    assert run.result(hold["call_id"]).is_error


def test_what_the_bank_took_back_meanwhile_is_not_paid_on_the_old_approval(system: RunningSystem) -> None:
    case, run, hold = held(system, 18000)
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute(
            "update shop.payments set status = 'charged_back' where tenant = 'acme' and order_reference = %s",
            [case.orders[0]],
        )

    assert run.decide("sam", hold).status_code == 200
    run.ended()
    assert case.refunds() == []
    assert run.result(hold["call_id"]).is_error


# Everybody at once


def test_fifty_runs_at_once_do_not_exceed_what_one_customer_gets_a_day_without_a_person(system: RunningSystem) -> None:
    count, pence, limit = 50, 900, 5000
    case = open_case(system, *[pence] * count)
    email = f"c-{case.customer.removeprefix('C-')}@mail.example"
    tickets = [
        system.api(OPERATORS["acme"], "acme").post(
            "/v1/tickets",
            {
                "customer_email": email,
                "customer_name": "Kim Lund",
                "customer_id": case.customer,
                "subject": "My order",
                "body": "Please see to it.",
            },
        )["ticket"]
        for _ in range(count)
    ]
    for ticket, order in zip(tickets, case.orders, strict=True):
        model_of(system).says(ticket, turn(refund(order, pence)), DONE)
    programs = [client(system, "alex") for _ in range(count)]
    answers = at_once(
        *(
            lambda program=program, ticket=ticket: program.post(f"/v1/tickets/{ticket}/runs")
            for program, ticket in zip(programs, tickets, strict=True)
        )
    )
    runs = [Run(system, answer.json()["run"]) for answer in answers]

    ends = [run.event(TurnHeld, TurnExecuted) for run in runs]

    paid = sum(row["amount_minor"] for row in case.refunds())
    assert limit - pence < paid <= limit
    assert len(case.refunds()) == limit // pence == sum(isinstance(end.fact, TurnExecuted) for end in ends)
