"""`turngate spend` and `turngate budget`: figures that a person can read, and a budget that takes effect."""

import json
from typing import Any

import pytest
import typer
from click.testing import Result
from turngate.api import Api, Refused
from turngate.cli import build
from turngate.commands.budget import micro_usd, stands, table, usd
from turngate.issuer import Issuer
from turngate.running import RunningSystem
from typer.testing import CliRunner


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("12.50", 12_500_000),
        ("$3", 3_000_000),
        (" 0 ", 0),
        ("0.000001", 1),
        ("1e2", 100_000_000),
        ("None", None),
    ],
)
def test_a_budget_is_given_in_dollars(text: str, micro: int | None) -> None:
    assert micro_usd(text) == micro


@pytest.mark.parametrize("text", ["", "much", "-1", "0.0000001", "nan", "Infinity", "1e30", "5 EUR"])
def test_what_is_no_amount_is_wrong_use(text: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"12\.50"):
        micro_usd(text)


@pytest.mark.parametrize(
    ("micro", "shown"),
    [(0, "$0.00"), (5_000_000, "$5.00"), (1_234_500_000, "$1,234.50"), (3_310, "$0.00331"), (1, "$0.000001")],
)
def test_dollars_have_as_many_places_as_they_need(micro: int, shown: str) -> None:
    assert usd(micro) == shown


def test_what_a_budget_has_left_is_said_in_figures() -> None:
    assert "$1.25 (25 %) of today's is taken, $3.75 is left" in stands(5_000_000, 1_250_000)
    assert "$6.00 (120 %) of today's is taken, $0.00 is left" in stands(5_000_000, 6_000_000)
    assert "$0.00 a day" in stands(0, 0)
    assert "no budget is set. Today they come to $0.50" in stands(None, 500_000)


def test_days_stand_in_columns_with_their_sum() -> None:
    days = [
        {
            "day": f"2026-11-{day}",
            "spent_micro_usd": spent,
            "reserved_micro_usd": 0,
            "uncertain_micro_usd": 20_000,
            "saved_micro_usd": 0,
        }
        for day, spent in ((29, 1_234_567_890), (30, 5_000))
    ]
    head, first, second, total = table(days)
    assert head.split() == ["day", "spent", "under", "way", "uncertain", "saved"]
    assert first.split() == ["2026-11-29", "$1,234.5679", "$0.0000", "$0.0200", "$0.0000"]
    assert second.split() == ["2026-11-30", "$0.0050", "$0.0000", "$0.0200", "$0.0000"]
    assert total.split() == ["together", "$1,234.5729", "$0.0000", "$0.0400", "$0.0000"]
    assert len({len(line) for line in (head, first, second, total)}) == 1


# On a system. Its tenant globex has no admin among the people of the demo, so the test makes a token for one.


def said_by(role: str, system: RunningSystem, *arguments: str) -> Result:
    token = Issuer(system.data / "issuer").issue(f"some-{role}", "globex", role)
    environ = {"TURNGATE_TOKEN": token, "TURNGATE_DATA": str(system.data)}
    return CliRunner().invoke(build(arguments[0]), arguments, env=environ)


def test_a_budget_is_set_and_the_run_that_would_exceed_it_goes_to_a_person(system: RunningSystem) -> None:
    assert "no budget is set" in said_by("operator", system, "budget").output
    refused = said_by("operator", system, "budget", "--day", "1")
    assert isinstance(refused.exception, Refused)
    assert "the role operator does not have it" in str(refused.exception)
    assert said_by("admin", system, "budget", "--day", "-1").exit_code == 2
    try:
        said = json.loads(said_by("admin", system, "budget", "--day", "0.001", "--json").output)
        assert said["data"]["day_micro_usd"] == 1_000
        assert json.loads(said_by("auditor", system, "budget", "--json").output) == {"day_micro_usd": 1_000}
        assert "may cost $0.001 a day (UTC)" in said_by("operator", system, "budget").output
        end = worked(system)
        assert (end["status"], end["steps"]) == ("budget_exhausted", 0)
        assert "turngate budget" in end["reason"]
    finally:
        assert "no budget is set" in said_by("admin", system, "budget", "--day", "none").output
    assert worked(system)["steps"] > 0
    [today] = json.loads(said_by("operator", system, "spend", "--days", "1", "--json").output)["days"]
    assert (today["tenant"], today["spent_micro_usd"] > 0) == ("globex", True)
    assert said_by("operator", system, "spend").output.splitlines()[-1].startswith("together")


def worked(system: RunningSystem) -> dict[str, Any]:
    """The end of a run of a new ticket of globex."""
    api = Api(system.url, Issuer(system.data / "issuer").issue("gwen", "globex", "operator"))
    asked = {"customer_email": "nobody@mail.example", "subject": "Hours", "body": "When are you open?"}
    run = api.post(f"/v1/tickets/{api.post('/v1/tickets', asked)['ticket']}/runs")["run"]
    return dict([event for event in api.events(f"/v1/runs/{run}/events")][-1].document()["data"])
