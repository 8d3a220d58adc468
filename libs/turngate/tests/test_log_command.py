"""`turngate log verify` over exported logs."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from contracts import events
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.facts import CustomerSaid
from contracts.subjects import RunKey

TURNGATE = Path(sys.executable).with_name("turngate")


def chat(run: str) -> list[Event]:
    """A run of which each rule holds: started, and then the customer talks."""
    written: list[Event] = []
    for number in range(4):
        fact = (
            CustomerSaid(text=f"message {number}", message_id=str(number)) if number else EXAMPLES["desk.run-started"]
        )
        before = written[-1] if written else None
        event = events.write(RunKey("acme", run), Draft(fact, None, str(number)), before, datetime.now(UTC))
        written.append(events.from_document(event.document(), number + 1, event.payload))
    return written


@pytest.fixture(scope="module")
def exported() -> list[bytes]:
    return [event.payload + b"\n" for run in ("T-1-1", "T-2-1") for event in chat(run)]


def verify(lines: list[bytes], *arguments: str) -> tuple[int, str]:
    done = subprocess.run([TURNGATE, "log", "verify", *arguments], input=b"".join(lines), capture_output=True)
    return done.returncode, done.stdout.decode() + done.stderr.decode()


def test_what_is_whole_is_found_whole(exported: list[bytes]) -> None:
    assert verify(exported) == (0, "8 events of 2 runs: every rule holds.\n")


def test_a_line_that_says_a_thing_twice_is_no_event(exported: list[bytes]) -> None:
    other = exported[1].replace(b'"text":"message 1"', b'"text":"message 1","text":"another"')
    assert other != exported[1]
    status, said = verify([exported[0], other, *exported[2:]])
    assert (status, "line 2 cannot be read as an event" in said) == (1, True)


def test_a_dash_or_a_file_does_as_well(exported: list[bytes], tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_bytes(b"".join(exported))
    assert verify([], str(file))[0] == 0
    assert verify(exported, "-")[0] == 0


def test_a_changed_byte_is_found_and_named(exported: list[bytes]) -> None:
    changed = [line.replace(b"message 2", b"massage 2") if b"T-2-1" in line else line for line in exported]
    code, text = verify(changed)
    assert code == 1
    assert "acme/T-2-1 event 2: rule 1" in text
    assert "T-1-1" not in text


def test_a_missing_event_is_found_and_named(exported: list[bytes]) -> None:
    code, text = verify(exported[:1] + exported[2:])
    assert code == 1
    assert "acme/T-1-1 event 2: rule 1: event 1 was expected here" in text


def test_reordered_events_are_found_and_named(exported: list[bytes]) -> None:
    code, text = verify([exported[0], exported[2], exported[1], *exported[3:]])
    assert code == 1
    assert "acme/T-1-1 event 2" in text


def test_a_line_that_is_no_event_is_named_by_its_number(exported: list[bytes]) -> None:
    code, text = verify([exported[0], exported[1][:-20] + b"\n", *exported[2:]])
    assert code == 1
    assert "line 2 cannot be read" in text


def test_as_json_the_violations_are_data(exported: list[bytes]) -> None:
    code, text = verify(exported[:1] + exported[2:], "--json")
    found = json.loads(text)
    assert code == 1
    assert found["violations"][0].items() >= {"tenant": "acme", "run": "T-1-1", "ordinal": 2, "rule": 1}.items()


def test_a_file_that_is_not_there_is_named_and_a_wrong_option_is_wrong_use() -> None:
    assert verify([], "nowhere.jsonl") == (
        1,
        "nowhere.jsonl cannot be read: No such file or directory. Nothing was checked.\n",
    )
    assert verify([], "--no-such-option")[0] == 2


@pytest.mark.parametrize("arguments", [(), ("-",), ("empty.jsonl",)])
def test_what_holds_no_events_is_not_found_whole(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    for lines in ([], [b"\n"]):
        code, text = verify(lines, *arguments)
        assert code == 1
        assert text.startswith("No events were given.")


def test_without_a_file_and_without_a_pipe_the_live_log_is_meant(tmp_path: Path) -> None:
    for stdin in (subprocess.DEVNULL, None):
        done = subprocess.run(
            [TURNGATE, "log", "verify", "--data", tmp_path],
            stdin=stdin,
            capture_output=True,
            text=True,
            preexec_fn=(lambda: os.close(0)) if stdin is None else None,
        )
        assert done.returncode == 1
        assert "No system runs" in done.stderr
