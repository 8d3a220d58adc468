"""The operator's command line on a system of its own, with the stand-in as its model."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from contracts.events import from_document
from turngate.running import RunningSystem, temporary_system

TURNGATE = Path(sys.executable).with_name("turngate")


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def kinds(self) -> list[str]:
        """Of the facts that were printed, a line each."""
        lines = (line.split(maxsplit=3) for line in self.out.splitlines())
        return [
            f"{author}.{fact}" for time, author, fact, _ in (line for line in lines if len(line) == 4) if ":" in time
        ]


@pytest.fixture(scope="module")
def own_system() -> Iterator[RunningSystem]:
    with temporary_system() as system:
        yield system


def turngate(system: RunningSystem, *arguments: str, stdin: str | None = None) -> Said:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
    environ["TURNGATE_DATA"] = str(system.data)
    done = subprocess.run(
        [TURNGATE, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        timeout=120,
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),
    )
    return Said(done.returncode, done.stdout, done.stderr)


def test_status_shows_every_process_and_where_the_system_is_reached(own_system: RunningSystem) -> None:
    said = turngate(own_system, "status", "--json")
    shown = json.loads(said.out)
    assert said.code == 0
    assert shown["healthy"]
    assert shown["url"].startswith("http://127.0.0.1:")
    assert shown["nats_url"].startswith("nats://")
    assert shown["postgres_url"].startswith("postgresql://")
    services = {"agent-runner", "policy", "tools-shop", "approvals", "gateway"}
    assert set(shown["processes"]) == {"postgres", "nats", "issuer", "standin", *services}
    for process in shown["processes"].values():
        os.kill(process["pid"], 0)
        assert process["healthy"]


def test_a_token_is_for_people_that_there_are(own_system: RunningSystem) -> None:
    assert turngate(own_system, "token", "--as", "alex").out.count(".") == 2
    refused = turngate(own_system, "token", "--as", "mallory")
    assert refused.code == 1
    assert "alex (acme)" in refused.err
    assert turngate(own_system, "token").code == 2


def test_the_twelve_tickets_are_listed_and_another_tenants_are_not(own_system: RunningSystem) -> None:
    tickets = json.loads(turngate(own_system, "tickets", "--json").out)["tickets"]
    assert {ticket["ticket"] for ticket in tickets} == {f"TCK-{number}" for number in range(2001, 2013)}
    theirs = json.loads(turngate(own_system, "tickets", "--tenant", "globex", "--json").out)["tickets"]
    assert {ticket["subject"] for ticket in theirs}.isdisjoint(ticket["subject"] for ticket in tickets)


def test_a_ticket_that_does_not_exist_is_refused_in_the_gateways_words(own_system: RunningSystem) -> None:
    said = turngate(own_system, "run", "TCK-9999")
    assert said.code == 1
    assert "No such ticket" in said.err


def test_the_story_is_told_a_line_a_fact(own_system: RunningSystem) -> None:
    held = turngate(own_system, "run", "TCK-2004", "--as", "alex")
    assert held.code == 0
    assert held.kinds[:2] == ["desk.run-started", "agent.turn-proposed"]
    assert "policy.turn-held" in held.kinds
    assert "issue_refund would" in held.out
    assert "turngate approve TCK-2004-1" in held.out

    queue = turngate(own_system, "approvals")
    assert "TCK-2004-1" in queue.out
    assert "£180.00" in queue.out

    assert turngate(own_system, "approve", "TCK-2004-1").code == 2
    by_alex = turngate(own_system, "approve", "TCK-2004-1", "--as", "alex")
    assert (by_alex.code, by_alex.kinds) == (1, [])

    approved = turngate(own_system, "approve", "TCK-2004-1", "--as", "sam", "--note", "seen the parcel")
    assert approved.code == 0
    assert approved.kinds[0] == "approvals.call-decided"
    assert "released by sam" in approved.out
    assert approved.kinds[-1] == "agent.run-ended"

    by_sue = turngate(own_system, "approve", "TCK-2004-1", "--as", "sue")
    assert (by_sue.code, by_sue.out) == (1, "")
    assert "Your click changed nothing" in by_sue.err
    [call] = {found for found in re.findall(r"sam \(approver\) approves (\S+?):", approved.out)}
    for named in ([], [call]):
        again = turngate(own_system, "approve", "TCK-2004-1", *named, "--as", "sam", "--no-wait")
        assert again.code == 0, again.err
        assert f"{call}: sam had decided this already; nothing new was said." in again.out
        assert again.out.endswith("0 decided.\n")
    assert turngate(own_system, "decline", "TCK-2004-1", call, "--as", "lee").code == 1

    watched = turngate(own_system, "watch", "TCK-2004-1")
    shown = turngate(own_system, "log", "show", "TCK-2004-1")
    assert watched.kinds == shown.kinds[: len(watched.kinds)]
    assert shown.kinds[len(watched.kinds) :] == 2 * ["approvals.decision-refused"]
    assert watched.kinds.count("tools.turn-executed") == 2
    assert "TCK-2004-1" in turngate(own_system, "runs", "--status", "resolved").out


def test_a_run_can_be_followed_as_json_and_its_lines_are_those_of_the_log(own_system: RunningSystem) -> None:
    followed = turngate(own_system, "run", "TCK-2001", "--json")
    exported = turngate(own_system, "log", "export", "--run", "TCK-2001-1", "--tenant", "acme")
    # A person is shown what is personal; the log holds it sealed.
    assert [from_document(json.loads(line)).document() for line in followed.out.splitlines()] == [
        json.loads(line) for line in exported.out.splitlines()
    ]
    assert "priya.raman@mail.example" in followed.out
    assert "priya.raman@mail.example" not in exported.out
    for lines in (exported.out, followed.out):
        assert turngate(own_system, "log", "verify", stdin=lines).code == 0


def test_a_chat_goes_on_with_the_customers_words_and_then_with_a_persons(own_system: RunningSystem) -> None:
    opened = own_system.api("alex").post(
        "/v1/tickets",
        {
            "channel": "chat",
            "customer_email": "priya.raman@mail.example",
            "customer_id": "C-1001",
            "subject": "My parcel",
            "body": "Where is my order ORD-10043?",
        },
    )
    run = f"{opened['ticket']}-1"
    assert f"turngate say {run}" in turngate(own_system, "run", opened["ticket"]).out
    answered = turngate(own_system, "say", run, "And what is in ORD-10043?")
    assert answered.kinds[0] == "desk.customer-said"
    assert answered.kinds[-1] == "agent.reply-given"
    assert turngate(own_system, "take-over", run, "--reason", "known customer").code == 0
    assert turngate(own_system, "say", run, "Hello Priya", "--as", "alex").out == "Sent.\n"
    as_json = turngate(own_system, "say", run, "Hello again", "--as", "alex", "--json").out
    assert json.loads(as_json)["run"] == run
    assert turngate(own_system, "log", "show", run).kinds[-3:] == ["desk.run-taken-over", *["desk.person-said"] * 2]


def test_a_cancelled_run_says_so(own_system: RunningSystem) -> None:
    turngate(own_system, "run", "TCK-2005", "--no-wait")
    said = turngate(own_system, "cancel", "TCK-2005-1")
    ended = turngate(own_system, "watch", "TCK-2005-1")
    if said.code == 0:
        assert ended.kinds[-1] in ("desk.run-cancelled", "tools.turn-executed")
    else:
        assert "ended" in said.err


def test_a_model_that_is_away_is_named_by_run_runs_and_status_until_it_answers(own_system: RunningSystem) -> None:
    shown = json.loads(turngate(own_system, "status", "--json").out)["processes"]
    stand_in = shown["standin"]["health"].removesuffix("/healthz")
    busy = {"fault": {"status": 529}}
    answers = [[*[busy] * 6, {"text": "Your parcel is on its way.", "gate": "back"}]]
    httpx.put(f"{stand_in}/script", json={"key": "TCK-2003", "answers": answers}).raise_for_status()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
    environ["TURNGATE_DATA"] = str(own_system.data)
    with subprocess.Popen([TURNGATE, "run", "TCK-2003"], env=environ, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            said = ""
            while "The model is away (529) since" not in said:
                said = run.stdout.readline()
                assert said, "it ended without a word of it"
            assert re.search(r"since \d\d:\d\d:\d\d UTC, attempt \d", said)
            assert "The model is away (529)" in turngate(own_system, "runs").out
            status = json.loads(turngate(own_system, "status", "--json").out)
            assert status["healthy"]
            [condition] = status["processes"]["agent-runner"]["conditions"]
            assert condition.startswith("The model is away (529)")
            assert condition.partition(", attempt")[0] in turngate(own_system, "status").out
        finally:
            httpx.put(f"{stand_in}/gates/back").raise_for_status()
        rest = run.stdout.read()
        assert run.wait(timeout=120) == 0
    assert "agent" in rest
    assert turngate(own_system, "log", "show", "TCK-2003-1").kinds[-1] == "agent.run-ended"
    assert json.loads(turngate(own_system, "status", "--json").out)["processes"]["agent-runner"]["conditions"] == []
    httpx.delete(f"{stand_in}/script", params={"key": "TCK-2003"}).raise_for_status()


def test_a_stop_is_set_listed_and_lifted_by_who_may(own_system: RunningSystem) -> None:
    assert turngate(own_system, "stop", "list").out == "Nothing is stopped.\n"
    assert turngate(own_system, "stop", "set", "--reason", "a strange pattern").code == 2
    refused = turngate(own_system, "stop", "set", "--reason", "a strange pattern", "--as", "sam")
    assert (refused.code, "stop" in refused.err) == (1, True)
    done = turngate(own_system, "stop", "set", "--tool", "issue_refund", "--reason", "a strange pattern", "--as", "ada")
    assert done.out.startswith("Stopped: issue_refund."), done
    stop_id = done.out.split()[-1]
    assert f"{stop_id}  issue_refund  a strange pattern  (by ada)" in turngate(own_system, "stop", "list").out
    assert turngate(own_system, "stop", "lift", stop_id, "--as", "ada").code == 0
    above = turngate(
        own_system, "stop", "set", "--above-minor", "10000", "--reason", "a strange pattern", "--as", "ada"
    )
    assert above.out.startswith("Stopped: every write above £100.00 to one customer in a day."), above
    stop_id = above.out.split()[-1]
    assert "every write above £100.00 to one customer" in turngate(own_system, "stop", "list").out
    assert turngate(own_system, "stop", "lift", stop_id, "--as", "ada").code == 0
    assert json.loads(turngate(own_system, "stop", "list", "--json").out) == {"stops": []}


def test_the_pack_in_force_is_shown_and_a_broken_one_does_not_replace_it(
    own_system: RunningSystem, tmp_path: Path
) -> None:
    shown = turngate(own_system, "policy", "show", "--as", "lee")
    assert "name: acme" in shown.out
    broken, next_one = tmp_path / "broken.yaml", tmp_path / "next.yaml"
    broken.write_text("name: acme\nversion: nonsense\n")
    next_one.write_text(re.sub(r"version: \d+", "version: 99", shown.out, count=1))
    assert turngate(own_system, "policy", "promote", str(tmp_path / "none.yaml"), "--as", "lee").code == 1
    assert turngate(own_system, "policy", "promote", str(broken), "--as", "lee").code == 1
    assert turngate(own_system, "policy", "promote", str(next_one), "--as", "sam").code == 1
    assert turngate(own_system, "policy", "show", "--as", "lee").out == shown.out
    promoted = turngate(own_system, "policy", "promote", str(next_one), "--as", "lee")
    assert promoted.out == "acme version 99 is in force.\n", promoted
    assert turngate(own_system, "policy", "show", "--as", "lee").out == next_one.read_text()


def test_the_audit_tells_who_did_what_and_names_no_customer(own_system: RunningSystem) -> None:
    turngate(own_system, "run", "TCK-2001")
    audit = turngate(own_system, "audit", "--as", "ari", "--run", "TCK-2001-1")
    assert "alex (operator) started a run" in audit.out, audit
    rows = [json.loads(line) for line in turngate(own_system, "audit", "--as", "ari", "--json").out.splitlines()]
    assert {row["run"] for row in rows} >= {"TCK-2001-1"}
    assert turngate(own_system, "audit", "--as", "ari", "--csv").out.count("\n") == len(rows) + 1
    assert "mail.example" not in json.dumps(rows)
    assert turngate(own_system, "audit", "--as", "alex").code == 1


def test_the_live_log_is_whole(own_system: RunningSystem) -> None:
    said = turngate(own_system, "log", "verify", "--json")
    assert said.code == 0, said.out
    assert json.loads(said.out)["runs"] >= 1


@pytest.mark.parametrize("unknown", [("--run", "TCK-9999-1"), ("--tenant", "nope")])
def test_what_the_log_does_not_hold_is_not_exported_as_if_it_did(
    own_system: RunningSystem, unknown: tuple[str, str]
) -> None:
    said = turngate(own_system, "log", "export", *unknown)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("The log holds no")


def test_the_read_models_can_be_made_anew(own_system: RunningSystem) -> None:
    before = json.loads(turngate(own_system, "runs", "--json").out)
    assert turngate(own_system, "rebuild-views").code == 0
    assert json.loads(turngate(own_system, "runs", "--json").out) == before


def test_there_are_no_dead_letters(own_system: RunningSystem) -> None:
    assert json.loads(turngate(own_system, "dead", "list", "--json").out) == {"letters": []}
    assert turngate(own_system, "dead", "show", "1").code == 1


def test_another_system_is_reached_by_url_and_token(own_system: RunningSystem) -> None:
    def elsewhere(*arguments: str, token: str | None = None) -> subprocess.CompletedProcess[str]:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
        environ |= {"TURNGATE_URL": own_system.url} | ({"TURNGATE_TOKEN": token} if token else {})
        return subprocess.run([TURNGATE, *arguments], env=environ, capture_output=True, text=True, cwd="/")

    assert "TURNGATE_TOKEN" in elsewhere("tickets").stderr
    assert "TCK-2001" in elsewhere("tickets", token=own_system.token("ari")).stdout
    assert "Sign in again" in elsewhere("tickets", token="none.of.ours").stderr
    assert "TCK-2001" in elsewhere("tickets", token=own_system.token("ari") + "\n").stdout
    assert elsewhere("log", "export", token=own_system.token("ari")).returncode == 0


@pytest.mark.parametrize("token", ["geheimnis-ä", "geheim\nnis"])
def test_what_can_be_no_token_is_refused_without_being_shown(token: str, tmp_path: Path) -> None:
    environ = os.environ | {"TURNGATE_URL": "http://127.0.0.1:1", "TURNGATE_TOKEN": token}
    done = subprocess.run([TURNGATE, "tickets"], env=environ, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "TURNGATE_TOKEN holds no token: it has characters that none can have. Nothing was asked.\n"


def test_no_secret_of_the_system_is_in_any_of_its_logs(own_system: RunningSystem) -> None:
    secrets = [*json.loads((own_system.data / "passwords.json").read_text()).values()]
    secrets += [*(own_system.data / "issuer" / "private.pem").read_text().splitlines()[1:-1], own_system.token("ada")]
    told = {file.name: file.read_text(errors="replace") for file in (own_system.data / "logs").iterdir()}
    assert len(told) >= 9
    assert len(secrets) > 10
    assert [name for name, text in told.items() if any(secret in text for secret in secrets)] == []


def test_a_service_that_is_killed_is_there_again(own_system: RunningSystem) -> None:
    before = own_system.pid("policy")
    own_system.kill("policy")
    while own_system.pid("policy") == before:
        pass
    said = turngate(own_system, "run", "TCK-2003")
    assert said.kinds[-1] == "agent.run-ended"


def test_a_detached_system_is_ready_when_the_command_returns_and_stops_when_told(data_dir: Path) -> None:
    environ = {**os.environ, "TURNGATE_DATA": str(data_dir), "ANTHROPIC_API_KEY": ""}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TURNGATE, *arguments], env=environ, capture_output=True, text=True)

    up = command("up", "--detach", "--port", "0")
    assert up.returncode == 0, up.stderr
    assert "The stand-in answers." in up.stdout
    running = json.loads(command("status", "--json").stdout)
    pid = running["pid"]
    try:
        secret = (data_dir / "issuer" / "secret").read_text().strip()
        assert f"{running['issuer_url']}/enter?key={secret}\n" in up.stdout
        assert secret not in (data_dir / "logs" / "system.log").read_text()
        assert json.loads(command("status", "--json").stdout)["healthy"]
        twice = command("up", "--detach", "--port", "0")
        assert twice.returncode == 1
        assert f"pid {pid}" in twice.stderr
        assert command("down").returncode == 0
        assert command("status").returncode == 1
        assert command("down").returncode == 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
