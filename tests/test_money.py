"""Money through all five services: held before it moves, paid once, and never on the word of the model or a forger."""

from typing import Any

import pytest
from contracts.events import Draft, Event
from contracts.facts import CallDecided, DecisionRefused, Fact, TurnExecuted, TurnForwarded, TurnHeld, TurnQuoted
from contracts.log import JetStreamLog
from contracts.parts import CallResult, Pack, Person, Verdict
from contracts.subjects import RunKey
from turngate import records
from turngate.running import RunningSystem

from .world import DONE, Case, Run, at_once, look_up, model_of, open_case, refund, stopped, turn

pytestmark = pytest.mark.timeout(180)


def results(run: Run, number: int = 1) -> list[CallResult]:
    """What the model was told of a turn's calls, in their order."""
    return next(list(fact.results) for fact in run.facts(TurnExecuted) if fact.turn == number)


def tool_results(case: Case) -> list[dict[str, Any]]:
    """The results in the last request that the model was sent for this ticket."""
    messages = model_of(case.system).was_sent(case.ticket)[-1]["messages"]
    blocks = [block for message in messages for block in message["content"] if isinstance(block, dict)]
    return [block for block in blocks if block["type"] == "tool_result"]


# A turn runs whole or not at all


def test_neither_call_of_a_held_turn_runs_and_both_results_come_in_order_once_it_is_approved(
    system: RunningSystem,
) -> None:
    case = open_case(system, 18000)
    case.says(turn(look_up(case.orders[0]), refund(case.orders[0], 18000)), DONE)
    run = case.start()

    (hold,) = run.holds()
    held = run.until(TurnHeld)
    assert (len(held.will_run), run.facts(TurnExecuted), case.refunds()) == (1, [], [])
    assert model_of(system).asked(case.ticket) == 1, "the model goes on though its turn waits"

    assert run.decide("sam", hold).status_code == 200
    run.ended()
    order, paid = results(run)
    assert order.call_id == held.will_run[0]
    assert "£180.00" in order.content
    assert (paid.call_id, paid.data["amount_minor"]) == (hold["call_id"], 18000)
    assert [block["tool_use_id"] for block in tool_results(case)] == [order.call_id, paid.call_id]
    assert [row["released_by"] for row in case.refunds()] == [["sam"]]


def test_two_refunds_of_40_in_one_turn_do_not_slip_under_a_limit_of_50(system: RunningSystem) -> None:
    case = open_case(system, 4000, 4000)
    case.says(turn(*(refund(order, 4000) for order in case.orders)), DONE)
    run = case.start()

    (hold,) = run.holds()
    first, second = run.until(TurnQuoted).quotes
    assert hold["call_id"] == second.call_id
    assert (first.facts.refunded_today_minor, second.facts.refunded_today_minor) == (4000, 8000)
    assert case.refunds() == []

    assert run.decide("sam", hold).status_code == 200
    run.ended()
    assert [(row["order_reference"], row["amount_minor"]) for row in case.refunds()] == [
        (order, 4000) for order in case.orders
    ]


def test_two_refunds_of_40_in_two_turns_do_not_slip_under_it_either(system: RunningSystem) -> None:
    case = open_case(system, 4000, 4000)
    case.says(*(turn(refund(order, 4000)) for order in case.orders), DONE)
    run = case.start()

    (hold,) = run.holds()
    assert hold["turn"] == 2
    assert [row["order_reference"] for row in case.refunds()] == [case.orders[0]]
    assert run.decide("sam", hold, "decline").status_code == 200
    run.ended()
    assert len(case.refunds()) == 1


def test_two_runs_for_one_customer_that_were_both_quoted_before_either_paid_do_not_slip_under_it_together(
    system: RunningSystem,
) -> None:
    case = open_case(system, 4000, 4000)
    body = {"customer_email": f"{case.customer.lower()}@mail.example", "subject": "Another thing", "body": "As I said."}
    second = Case(
        system, case.tenant, system.api("alex").post("/v1/tickets", body)["ticket"], case.customer, case.orders[1:]
    )
    for one, order in ((case, case.orders[0]), (second, case.orders[1])):
        one.says(turn(refund(order, 4000)), DONE)

    with stopped(system, "policy"):
        runs = [case.start(), second.start()]
        quotes = [run.until(TurnQuoted).quotes[0] for run in runs]
        assert [quote.facts.refunded_today_minor for quote in quotes] == [4000, 4000]
    waiting = [run for run in runs if run.event(TurnHeld, TurnExecuted).kind == TurnHeld.kind]
    assert len(waiting) == 1
    assert len(case.refunds()) == 1
    assert waiting[0].decide("sam", waiting[0].holds()[0], "decline").status_code == 200
    for run in runs:
        run.ended()
    assert len(case.refunds()) == 1


# Once


def test_the_same_refund_asked_for_twice_in_a_run_and_again_in_a_fresh_one_is_paid_once(system: RunningSystem) -> None:
    case = open_case(system, 6000)
    the_same = refund(case.orders[0], 2000)
    case.says(turn(the_same, the_same), turn(the_same), DONE)
    run = case.start()
    assert run.ended()["status"] == "resolved"

    (paid,) = case.refunds()
    first, second = results(run)
    assert (first.duplicate, second.duplicate) == (False, True)
    assert "No second payment was made" in second.content
    (third,) = results(run, 2)
    assert third.duplicate
    assert paid["id"] in third.content

    afresh = case.start()
    assert afresh.run != run.run
    assert afresh.ended()["status"] == "resolved"
    assert "No second payment was made" in results(afresh)[0].content
    assert case.refunds() == [paid]


def test_a_second_equal_refund_that_is_meant_is_held_and_paid_once_approved(system: RunningSystem) -> None:
    case = open_case(system, 6000)
    case.says(turn(refund(case.orders[0], 2000)), DONE)
    case.start().ended()
    (earlier,) = case.refunds()

    again = refund(case.orders[0], 2000, again_after=earlier["id"])
    case.says(turn(again), turn(again), DONE)
    run = case.start()
    (hold,) = run.holds()
    assert hold["rule"] == "pays-again"
    assert len(case.refunds()) == 1

    assert run.decide("sam", hold).status_code == 200
    paid_twice = run.event(TurnExecuted)
    run.ended()
    first, second = case.refunds()
    assert (second["again_after"], second["released_by"]) == (first["id"], ["sam"])
    assert second["id"] in paid_twice.fact.results[0].content
    # Asked for once more, after the same one, it is the payment that was just made.
    assert results(run, 2)[0].duplicate
    assert len(case.refunds()) == 2


# People


def two_held(system: RunningSystem) -> tuple[Case, Run, dict[str, Any], dict[str, Any]]:
    case = open_case(system, 18000, 12000)
    case.says(turn(refund(case.orders[0], 18000), look_up(case.orders[1]), refund(case.orders[1], 12000)), DONE)
    run = case.start()
    first, second = run.holds()
    return case, run, first, second


@pytest.mark.parametrize("people", [("sam", "sue"), ("sam", "sam")], ids=["by two people", "by one person"])
def test_two_decisions_on_two_holds_of_one_turn_made_in_the_same_moment_both_count(
    system: RunningSystem, people: tuple[str, str]
) -> None:
    case, run, *holds = two_held(system)

    answers = at_once(*(run.decision(who, hold) for who, hold in zip(people, holds, strict=True)))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert run.ended()["status"] == "resolved"
    assert {fact.call_id: fact.by.subject for fact in run.facts(CallDecided)} == {
        hold["call_id"]: who for hold, who in zip(holds, people, strict=True)
    }
    assert [(row["amount_minor"], row["released_by"]) for row in case.refunds()] == [
        (18000, [people[0]]),
        (12000, [people[1]]),
    ]
    assert len(run.facts(TurnForwarded)) == 1


def test_of_two_holds_the_approved_one_runs_and_the_model_is_told_of_the_declined_one_in_its_place(
    system: RunningSystem,
) -> None:
    case, run, first, second = two_held(system)
    decisions = at_once(run.decision("sam", first, "decline", note="Worn, see the photos"), run.decision("sue", second))
    assert [answer.status_code for answer in decisions] == [200, 200]
    assert run.ended()["status"] == "escalated"

    declined, order, paid = results(run)
    assert (declined.call_id, declined.is_error) == (first["call_id"], True)
    assert "Worn, see the photos" in declined.content
    assert "£120.00" in order.content
    assert (paid.call_id, paid.is_error) == (second["call_id"], False)
    assert [block["content"] for block in tool_results(case)] == [declined.content, order.content, paid.content]
    assert [(row["order_reference"], row["released_by"]) for row in case.refunds()] == [(case.orders[1], ["sue"])]


def test_a_declined_run_moves_no_money_and_the_model_is_told_the_note(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    assert run.decide("sam", hold, "decline", note="The parcel came back empty").status_code == 200
    assert run.ended()["status"] == "escalated"

    (told,) = tool_results(case)
    assert told["is_error"]
    assert "The parcel came back empty" in told["content"]
    assert "A person will get in touch with the customer" in told["content"]
    assert system.api("alex").get(f"/v1/tickets/{case.ticket}")["status"] == "escalated"
    assert "The parcel came back empty" in run.view()["handover"]
    assert case.refunds() == []
    assert run.view()["moved"] == []


def test_a_decision_sent_again_gets_the_same_answer_and_any_other_is_refused(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()

    answers = at_once(*(run.decision("sam", hold) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [200] * 4
    (decided,) = {answer.json()["id"] for answer in answers}
    assert run.ended()["status"] == "resolved"

    assert run.decide("sam", hold).json()["id"] == decided
    for who, decision in (("sue", "approve"), ("lee", "approve"), ("sam", "decline"), ("sue", "decline")):
        refused = run.decide(who, hold, decision)
        assert refused.status_code == 409, refused.text
        assert "changed nothing" in refused.json()["detail"]
    assert len(run.facts(CallDecided)) == 1
    assert len(case.refunds()) == 1


def test_of_four_people_who_decide_at_once_one_is_heard_and_the_others_are_told(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    answers = at_once(
        run.decision("sam", hold),
        run.decision("sue", hold, "decline"),
        run.decision("lee", hold),
        run.decision("lee", hold, "decline"),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    run.ended()
    (decided,) = run.facts(CallDecided)
    assert len(case.refunds()) == (decided.decision == "approve")


def test_an_approval_after_a_decline_changes_nothing(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    declined = run.decide("sam", hold, "decline")
    assert declined.status_code == 200

    assert [run.decide(who, hold).status_code for who in ("sam", "sue", "lee")] == [409] * 3
    assert run.decide("sam", hold, "decline").json()["id"] == declined.json()["id"]
    assert run.ended()["status"] == "escalated"
    assert run.decide("sue", hold).status_code == 409
    assert case.refunds() == []
    assert [fact.decision for fact in run.facts(CallDecided)] == ["decline"]


def test_who_may_not_decide_is_refused_and_nothing_happens(system: RunningSystem) -> None:
    case = open_case(system, 60000)
    case.says(turn(refund(case.orders[0], 60000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    before = run.view()["sequence"]

    for who in ("alex", "ari", "ada"):
        assert run.decide(who, hold).status_code == 403, who
    assert run.view()["sequence"] == before, "who may decide nothing at all leaves no trace in the log"
    # Two people, one of them a lead: a second approver does not do.
    assert run.decide("sam", hold).status_code == 200
    refused = run.decide("sue", hold)
    assert refused.status_code == 403
    assert "lead" in refused.json()["detail"]
    assert run.until(DecisionRefused).by.subject == "sue"
    assert case.refunds() == []

    another_effect = run.decide("lee", {**hold, "digest": "0" * 64})
    assert another_effect.status_code == 409
    assert run.decide("lee", hold).status_code == 200
    assert run.ended()["status"] == "resolved"
    assert [row["released_by"] for row in case.refunds()] == [["sam", "lee"]]


def test_an_approver_does_not_release_what_they_asked_for_themselves(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start("sam")
    (hold,) = run.holds()
    for decision in ("approve", "decline"):
        refused = run.decide("sam", hold, decision)
        assert refused.status_code == 403
        assert "You started this run" in refused.json()["detail"]
    assert case.refunds() == []
    assert run.decide("sue", hold).status_code == 200
    run.ended()
    assert [row["released_by"] for row in case.refunds()] == [["sue"]]


# Forgers


def forge(run: Run, fact: Fact, key: str = "") -> Event:
    """Says a fact in whatever name, as only the user of set-up can: a service whose credentials are stolen."""

    async def say() -> Event:
        async with records.set_up_broker(run.system.data).connection() as client:
            log = JetStreamLog(client)
            history = await log.read(RunKey(run.tenant, run.run))
            return await log.append(history, Draft(fact, history.head, key))

    return records.answer(say())


def forward(quoted: TurnQuoted) -> TurnForwarded:
    return TurnForwarded(
        turn=quoted.turn,
        attempt=quoted.attempt,
        pack=Pack(name="forged", version=1, digest="0" * 64),
        verdicts=[
            Verdict(call_id=quote.call_id, verdict="run", digest=quote.digest, rule="forged") for quote in quoted.quotes
        ],
    )


def test_a_forged_forward_of_a_large_refund_that_nobody_held_executes_nothing(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(look_up(case.orders[0]), refund(case.orders[0], 18000)), DONE)
    with stopped(system, "policy"):
        run = case.start()
        forge(run, forward(run.until(TurnQuoted)))
        run.until(TurnExecuted)
    assert run.ended()["status"] == "resolved"

    reading, refused = results(run)
    assert (reading.is_error, refused.is_error) == (True, True)
    assert "above that the shop pays only what a person has approved" in refused.content
    (executed,) = run.facts(TurnExecuted)
    assert executed.receipt_id is None
    assert run.facts(TurnHeld) == []
    assert case.refunds() == []
    assert "forwarded without authority" in system.log_of("tools-shop")


def test_a_forged_forward_of_a_refund_that_is_held_executes_nothing(system: RunningSystem) -> None:
    case = open_case(system, 8000)  # above what policy lets run alone, below the shop's own floor
    case.says(turn(refund(case.orders[0], 8000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    forge(run, forward(run.until(TurnQuoted)))
    assert run.ended()["status"] == "resolved"

    (refused,) = results(run)
    assert refused.is_error
    assert "it was held, and the decisions that it needs are not in the log" in refused.content
    assert case.refunds() == []
    assert run.decide("sam", hold).status_code == 409


NOBODY = Person(subject="mallory", issuer="https://elsewhere.example", role="supervisor")


def test_forged_approvals_of_people_who_may_not_approve_release_nothing(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    requester = run.view()["requested_by"]
    customer = NOBODY.model_copy(update={"subject": case.customer, "role": "lead"})
    forgers = (NOBODY, Person(**{**requester, "role": "lead"}), customer)
    for by in forgers:
        decided = CallDecided(
            turn=hold["turn"], call_id=hold["call_id"], digest=hold["digest"], decision="approve", by=by
        )
        forge(run, decided, key=by.subject)
    # What comes of them is nothing, even where policy itself is deceived.
    with stopped(system, "policy"):
        forge(run, forward(run.until(TurnQuoted)))
        run.until(TurnExecuted)
    assert run.ended()["status"] == "resolved"
    (refused,) = results(run)
    assert refused.is_error
    assert run.facts(TurnForwarded)[0].pack.name == "forged", "policy itself was deceived"
    assert case.refunds() == []


def test_a_held_refund_is_still_released_by_somebody_who_may_behind_a_forged_approval(system: RunningSystem) -> None:
    case = open_case(system, 18000)
    case.says(turn(refund(case.orders[0], 18000)), DONE)
    run = case.start()
    (hold,) = run.holds()
    decided = CallDecided(
        turn=hold["turn"], call_id=hold["call_id"], digest=hold["digest"], decision="approve", by=NOBODY
    )
    forge(run, decided)
    assert run.decide("sam", hold).status_code == 200
    assert run.ended()["status"] == "resolved"
    assert [row["released_by"] for row in case.refunds()] == [["sam"]]
