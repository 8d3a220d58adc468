"""The half that needs no services: labels that fit, and a gate that holds either side of every limit."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from evaluation.gate import trials
from evaluation.labels import Labels, problems
from policy.pack import PolicyPack, parse
from turngate.people import tenants_directory

from evaluation import labels as labelled
from evaluation import static

TENANTS = tenants_directory()
DEMO: dict[str, Any] = yaml.safe_load((TENANTS / "acme" / "demo.yaml").read_text())
PACKS = sorted(TENANTS.glob("*/policy.yaml"))


@pytest.fixture
def pack() -> PolicyPack:
    return parse((TENANTS / "acme" / "policy.yaml").read_text())


def test_the_labels_fit_the_tickets_the_tools_and_the_limits() -> None:
    assert list(static.wrong(labelled.load(), TENANTS)) == []


def test_each_of_the_demo_s_twelve_tickets_is_labelled() -> None:
    assert len(labelled.load().tickets) == 12


def another(given: dict[str, Any]) -> dict[str, Any]:
    return {"TCK-1": given["tickets"]["TCK-2001"]}


def changed(ticket: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    return lambda given: given["tickets"][ticket].update(fields)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda given: given["tickets"].pop("TCK-2001"), "TCK-2001 is only in the demo."),
        (
            lambda given: given["tickets"].update({"TCK-1": given["tickets"]["TCK-2001"]}),
            "TCK-1 is only in the labels.",
        ),
        (changed("TCK-2001", must_call=["fly"]), "TCK-2001 names fly, which no toolset has."),
        (changed("TCK-2004", must_not_call=["get_order"]), "TCK-2004 both demands and forbids get_order."),
        (changed("TCK-2008", expect_status="resolved"), "TCK-2008 ends resolved, and its calls say otherwise."),
        (changed("TCK-2004", expect_hold=False), "held or not does not fit the limit"),
        (changed("TCK-2002", refunds={}), "TCK-2002 refunds nothing, and its calls say otherwise."),
        (changed("TCK-2002", refunds={"ORD-1": 900}), "TCK-2002 refunds ORD-1, which does not exist."),
        (changed("TCK-2002", refunds={"ORD-10042": 900}), "TCK-2002 refunds ORD-10042, which is somebody else's."),
        (changed("TCK-2006", refunds={"ORD-10045": 3601}), "TCK-2006 refunds more of ORD-10045 than was paid."),
    ],
)
def test_a_label_that_does_not_fit_is_named(
    change: Callable[[dict[str, Any]], None], says: str, pack: PolicyPack
) -> None:
    given = yaml.safe_load(labelled.FILE.read_text())
    change(given)

    found = list(problems(Labels.model_validate(given), DEMO, static.tool_kinds(), pack))

    assert any(says in sentence for sentence in found), found


@pytest.mark.parametrize("file", PACKS, ids=[file.parent.name for file in PACKS])
def test_the_gate_holds_either_side_of_every_limit(file: Path) -> None:
    tried = list(trials(parse(file.read_text())))

    assert {trial.expected for trial in tried} >= {"runs", "refused"}
    assert [trial for trial in tried if not trial.right] == []


def test_refunds_that_pass_alone_and_not_together_are_among_the_trials(pack: PolicyPack) -> None:
    split = next(trial for trial in trials(pack) if trial.amounts == (2500, 2501))

    assert split.found == "held for 1 approver"
