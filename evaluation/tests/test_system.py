"""The harness over a whole system: the labelled tickets, the renumbered demo, other people's messages."""

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from evaluation.evaluate import evaluate
from evaluation.free_tickets import Message
from evaluation.labels import Label
from evaluation.place import people
from evaluation.score import Score, figures
from evaluation.working import work
from standin.director import Director
from turngate.running import RunningSystem, temporary_system
from typer.testing import CliRunner

from evaluation import cli, free_tickets, static

from . import renumbered

pytestmark = pytest.mark.timeout(600)
SHARED = Path(os.environ.get("TURNGATE_SHARED", Path(__file__).parents[3] / "shared"))
MESSAGES = SHARED / "cases" / "messages_dev.jsonl"
with_messages = pytest.mark.skipif(not MESSAGES.exists(), reason=f"{MESSAGES} is not here: set TURNGATE_SHARED")


@pytest.fixture(scope="module")
def fresh() -> Iterator[RunningSystem]:
    """A system whose tickets nobody has worked."""
    with temporary_system() as system:
        yield system


def test_the_twelve_tickets_end_as_labelled(fresh: RunningSystem) -> None:
    done = CliRunner().invoke(cli.app, ["evaluate", "--data", str(fresh.data)])

    lines = done.output.splitlines()
    assert done.exit_code == 0, done.output
    assert lines[-5:] == [
        "trajectories right: 12 of 12",
        "ended in the right state: 12 of 12",
        "called every required tool: 12 of 12",
        "runs that called a tool they were forbidden to call:",
        "0",
    ]


def test_an_evaluation_of_what_was_worked_before_is_not_good(fresh: RunningSystem) -> None:
    """The refunds were made by the runs before, so these make none."""
    done = CliRunner().invoke(cli.app, ["evaluate", "--data", str(fresh.data), "--json"])

    found = json.loads(done.output)
    assert done.exit_code == 1
    assert found["figures"]["trajectories_right"] < 12
    assert found["figures"]["called_a_forbidden_tool"] == 0


def test_with_everything_renumbered_the_labels_still_hold(tmp_path: Path) -> None:
    tenants, labels = renumbered.tenants(tmp_path), renumbered.labels()
    demo = (tenants / "acme" / "demo.yaml").read_text()
    assert not any(word in demo for word in ("ORD-10042", "TCK-2004", "Whitfield", "£180.00", "18000"))
    assert list(static.wrong(labels, tenants)) == []

    with temporary_system({"TURNGATE_TENANTS_DIR": str(tenants)}) as system:
        scores = evaluate(labels, lambda who: system.api(who, "acme"), "alex")

    assert {score.ticket: score.why_not() for score in scores if not score.right} == {}


async def test_a_run_that_calls_what_is_forbidden_is_counted(system: RunningSystem) -> None:
    key = uuid.uuid4().hex
    standin = system.state.processes["standin"]["health"].removesuffix("/healthz")
    call = {"name": "issue_refund", "input": {"order_reference": "ORD-1", "amount_pence": 1, "reason": "why not"}}
    async with Director(standin) as director:
        await director.script(key, [{"tool_calls": [call]}, {"text": "Done."}])
    label = Label(
        about="",
        must_call=frozenset(),
        must_not_call=frozenset({"issue_refund"}),
        expect_status="resolved",
    )

    with people("acme", system.data, None) as who:
        ticket = {"customer_email": "nobody@mail.example", "subject": "Hello", "body": key}
        run = work(who("alex"), who("alex").post("/v1/tickets", ticket)["ticket"])

    assert figures([Score("T", label, run)]).called_forbidden == 1
    assert run.refunds == {}


@with_messages
def test_other_people_s_messages_end_or_wait_and_change_nothing_unasked(system: RunningSystem) -> None:
    _work(system, free_tickets.sample(free_tickets.load(MESSAGES), 40))


@with_messages
@pytest.mark.slow
def test_all_of_other_people_s_messages_end_or_wait_and_change_nothing_unasked(system: RunningSystem) -> None:
    _work(system, free_tickets.load(MESSAGES))


def _work(system: RunningSystem, messages: list[Message]) -> None:
    worked = free_tickets.work_all(system.api("alex"), messages, "tom.whitfield@mail.example")

    assert [(one.message.id, one.run.status, one.beyond) for one in worked if not one.right] == []
    assert not any(one.run.refunds for one in worked), "money moved, and no message names an order"
