"""How `turngate` behaves as a command: versions, errors, secrets, pipes and narrow terminals."""

import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from rich.cells import cell_len
from turngate.running import RunningSystem, temporary_system

TURNGATE = Path(sys.executable).with_name("turngate")
RUN = "TCK-2004-1"
OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def system() -> Iterator[RunningSystem]:
    with temporary_system() as system:
        assert turngate(system, "run", "TCK-2004").returncode == 0
        yield system


def environment(system: RunningSystem | None) -> dict[str, str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TURNGATE_")}
    return plain | ({"TURNGATE_DATA": str(system.data)} if system else {})


def turngate(system: RunningSystem | None, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TURNGATE, *arguments],
        env=environment(system),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def on_a_terminal(system: RunningSystem, columns: int, *arguments: str) -> list[str]:
    """The lines that a terminal of that many columns is sent, without their colours."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = environment(system) | {"TERM": "xterm"}
    for name in ("COLUMNS", "LINES", "CI", "GITHUB_ACTIONS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        environ.pop(name, None)
    done = subprocess.Popen([TURNGATE, *arguments], env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 65_536):
            output += piece
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(ours)
    assert done.wait(120) == 0, output
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode()).splitlines()


# Versions and help


def test_the_version_is_printed() -> None:
    said = turngate(None, "--version")

    assert (said.returncode, said.stdout) == (0, f"turngate {version('turngate')}\n")


@pytest.mark.parametrize("verb", [(), ("run",), ("log",), ("log", "show"), ("stop", "set"), ("evaluate",), ("bench",)])
def test_every_command_has_a_short_way_to_ask_for_help(verb: tuple[str, ...]) -> None:
    short, long = (turngate(None, *verb, option) for option in ("-h", "--help"))

    assert (short.returncode, short.stdout) == (0, long.stdout)
    assert "Usage: turngate" in short.stdout


# Errors


@pytest.mark.parametrize(
    ("arguments", "title", "status", "code"),
    [
        (("run", "TCK-9999"), "No such ticket", 404, 1),
        (("tickets", "--status", "odd"), "Not understood", 422, 1),
        (("token", "--as", "mallory"), "Not done", None, 1),
        (("approve", RUN), "Wrong use", None, 2),
        (("tickets", "--no-such-option"), "Wrong use", None, 2),
        (("no-such-verb",), "Wrong use", None, 2),
        (("bench", "--scale", "much"), "Wrong use", None, 2),
    ],
)
def test_an_error_is_json_where_json_is_asked_for(
    system: RunningSystem, arguments: tuple[str, ...], title: str, status: int | None, code: int
) -> None:
    said = turngate(system, *arguments, "--json")

    assert (said.returncode, said.stdout) == (code, "")
    error = json.loads(said.stderr)
    assert (error["title"], error.get("status")) == (title, status)
    assert error["detail"]


def test_an_error_is_json_where_no_system_runs(tmp_path: Path) -> None:
    said = turngate(None, "status", "--json", "--data", str(tmp_path))

    assert said.returncode == 1
    assert str(tmp_path) in json.loads(said.stderr)["detail"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "TCK-9{}"),
        ("watch", "TCK-9{}-1"),
        ("log", "show", "TCK-9{}-1"),
        ("log", "show", "--open", "TCK-9{}-1"),
        ("cancel", "TCK-9{}-1"),
        ("take-over", "TCK-9{}-1"),
        ("say", "TCK-9{}-1", "hello"),
        ("approve", "TCK-9{}-1", "--as", "sam"),
        ("approve", RUN, "call-{}", "--as", "sam"),
        ("decline", "TCK-9{}-1", "--as", "sam"),
        ("audit", "--as", "ari", "--run", "TCK-9{}-1"),
        ("tickets", "--tenant", "t{}"),
        ("tickets", "--status", "s{}"),
        ("runs", "--status", "s{}"),
        ("run", "TCK-2001", "--profile", "p{}"),
        ("run", "TCK-2001", "--as", "n{}"),
        ("token", "--as", "n{}"),
        ("stop", "lift", "stop-{}", "--as", "ada"),
        ("stop", "set", "--tool", "tool-{}", "--reason", "none", "--as", "ada"),
        ("log", "export", "--run", "TCK-9{}-1"),
        ("erase", "--customer", "C-{}", "--as", "ada"),
        ("subscriber", "add", "one", "--tenant", "t{}"),
        ("subscriber", "remove", "s{}"),
        ("dead", "show", "{}"),
        ("verb-{}",),
    ],
)
def test_a_name_that_there_is_not_is_repeated(system: RunningSystem, arguments: tuple[str, ...]) -> None:
    wrong = "4711"
    said = turngate(system, *(argument.format(wrong) for argument in arguments))

    assert said.returncode in (1, 2)
    named = next(argument for argument in arguments if "{}" in argument).format(wrong)
    assert named in said.stderr
    assert "Traceback" not in said.stderr


def test_lines_that_are_no_events_are_told_in_plain_words(tmp_path: Path) -> None:
    started = {"specversion": "1.0", "type": "turngate.desk.run-started.v1", "tenant": "acme", "subject": "A-1"}
    started |= {"trail": "", "ordinal": 0, "chain": "0" * 64, "id": "x", "time": "2026-11-29T00:00:00Z", "data": {}}
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(['{"a": 1}', "no json", "[]", '{"type": 5}', json.dumps(started)]))

    said = turngate(None, "log", "verify", str(file))

    assert said.returncode == 1
    assert said.stdout.splitlines()[-1] == "0 events of 0 runs: 5 found wrong."
    assert "line 1 cannot be read as an event: type is missing" in said.stdout
    assert "line 2 cannot be read as an event: it is not JSON" in said.stdout
    assert "line 5 cannot be read as an event: ticket: is missing; profile: is missing" in said.stdout
    assert not re.search("pydantic|validation error|object has no attribute", said.stdout)


# Secrets


def test_no_password_is_printed_and_the_database_is_reached_without_one(system: RunningSystem) -> None:
    secrets = json.loads((system.data / "passwords.json").read_text()).values()

    printed = turngate(system, "status", "--json").stdout + turngate(system, "status").stdout

    assert [secret for secret in secrets if secret in printed] == []
    found = json.loads(turngate(system, "status", "--json").stdout)
    assert urlsplit(found["nats_url"]).username is None
    with psycopg.connect(found["postgres_url"]) as connection:
        assert connection.execute("select current_database()").fetchone() == ("turngate",)
    assert (system.data / "pgpass").stat().st_mode & 0o777 == 0o600


def test_the_sign_in_link_is_shown_to_the_owner_and_is_the_only_way_to_the_people_of_the_demo(
    system: RunningSystem,
) -> None:
    secret_file = system.data / "issuer" / "secret"
    secret = secret_file.read_text().strip()
    shown, as_json = turngate(system, "status").stdout, turngate(system, "status", "--json").stdout
    [link] = re.findall(rf"http://\S*{secret}\S*", shown)

    assert secret_file.stat().st_mode & 0o777 == 0o600
    assert secret not in as_json
    assert [file.name for file in (system.data / "logs").iterdir() if secret in file.read_text(errors="replace")] == []

    with httpx.Client(follow_redirects=True, trust_env=False, timeout=30) as another_account:
        told = another_account.get(system.url)
        assert (told.status_code, told.url.path) == (403, "/authorize")
        assert "turngate status prints it again" in told.text
        token = another_account.post(f"{system.state.issuer_url}/token", json={"as": "sam", "tenant": "acme"})
        assert token.status_code == 401
    with httpx.Client(follow_redirects=True, trust_env=False, timeout=30) as owner:
        people = owner.get(link)
        assert (people.status_code, people.url.path) == (200, "/authorize")
        assert secret not in str(people.url)
        choice = dict(people.url.params) | {"as": "sam", "tenant": "acme"}
        inside = owner.post(f"{system.state.issuer_url}/authorize", data=choice, headers=OWN_PAGE)
        assert (inside.status_code, str(inside.url)) == (200, f"{system.url}/tickets")
        assert secret not in " ".join(f"{one.url} {one.headers} {one.text}" for one in (inside, *inside.history))


# Pipes


@pytest.mark.parametrize(
    "arguments",
    [
        ("tickets",),
        ("tickets", "--json"),
        ("log", "show", RUN),
        ("log", "export"),
        ("approvals",),
        ("status",),
        ("audit", "--as", "ari"),
        ("audit", "--as", "ari", "--csv"),
        ("-h",),
        ("evaluate", "--help"),
    ],
)
def test_a_reader_that_has_enough_is_no_error(system: RunningSystem, arguments: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [TURNGATE, *arguments],
        env=environment(system),
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    os.close(writing)

    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_finds_no_room_is_told_in_one_line(system: RunningSystem) -> None:
    for arguments in (("status", "--json"), ("tickets",), ("log", "export")):
        with open("/dev/full", "w") as full:  # where every write finds the disk full
            done = subprocess.run(
                [TURNGATE, *arguments], env=environment(system), stdout=full, stderr=subprocess.PIPE, text=True
            )

        assert (done.returncode, done.stderr) == (1, "What was printed is not all: No space left on device.\n")


# Terminals


@pytest.mark.parametrize("columns", [40, 60, 80, 132])
@pytest.mark.parametrize(
    "arguments", [("tickets",), ("runs",), ("log", "show", RUN), ("audit", "--as", "ari"), ("approvals",)]
)
def test_what_is_listed_fits_the_terminal(system: RunningSystem, arguments: tuple[str, ...], columns: int) -> None:
    lines = on_a_terminal(system, columns, *arguments)

    assert lines
    assert [line for line in lines if cell_len(line) > columns] == []


def test_a_pipe_gets_one_line_a_row_whole(system: RunningSystem) -> None:
    tickets = turngate(system, "tickets").stdout.splitlines()
    asked = json.loads(turngate(system, "tickets", "--json").stdout)["tickets"]

    assert [line.split()[0] for line in tickets] == [ticket["ticket"] for ticket in asked]
    assert all(line.endswith(ticket["subject"].strip()) for line, ticket in zip(tickets, asked, strict=True))


# What is sealed


def test_the_log_says_what_is_sealed_and_opens_it_for_those_who_may(system: RunningSystem) -> None:
    sealed = turngate(system, "log", "show", RUN).stdout
    opened = turngate(system, "log", "show", RUN, "--open", "--as", "alex").stdout
    refused = turngate(system, "log", "show", RUN, "--open", "--as", "ari").stdout

    assert "asks for TCK-2004 to be worked: [sealed]" in sealed
    assert f"turngate log show {RUN} --open --as NAME" in sealed
    assert "[sealed]" not in opened
    assert "ORD-10042" in opened
    assert "[sealed]" in refused
    assert "may not see customers" in refused
    as_json = turngate(system, "log", "show", RUN, "--json").stdout
    assert all(json.loads(line)["specversion"] == "1.0" for line in as_json.splitlines())
