"""A customer who is erased is found nowhere any more; what was done for them stays, and the log still holds."""

import asyncio
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from contracts.datakeys import JetStreamKeys
from contracts.facts import CallDecided, CustomerSaid, ReplyGiven, RunCancelled, RunErased, RunStarted, TurnExecuted
from contracts.subjects import RunKey
from nats.js.errors import NotFoundError
from turngate import records
from turngate.running import RunningSystem

from .collector import Collector
from .own_system import OwnSystem
from .world import DONE, Case, Run, client, look_up, open_case, post, refund, rows, turn, turngate, until


@dataclass(frozen=True)
class Known:
    """What is known of one customer, each word of it found nowhere else."""

    mark: str

    def __getattr__(self, name: str) -> str:
        return f"{name}{self.mark}"

    @property
    def email(self) -> str:
        return f"kim.{self.mark}@mail.example"


@pytest.fixture(scope="module")
def known() -> Known:
    return Known("q" + "".join(secrets.choice("ghjkmnpqrstvwxyz") for _ in range(14)))


def ticket_of(system: RunningSystem, case: Case, known: Known, channel: str = "ticket") -> Case:
    """Another ticket of the case's customer, full of what is known of them."""
    ticket = {
        "customer_email": known.email.title(),
        "customer_name": known.Name,
        "subject": f"My order {known.Subject}",
        "body": f"I live at {known.Street}. Please see to {case.orders[0]}.",
        "channel": channel,
    }
    opened = system.api("alex").post("/v1/tickets", ticket)["ticket"]
    return Case(system, case.tenant, opened, case.customer, case.orders)


@dataclass(frozen=True)
class Story:
    """A customer with a run that has ended, a chat and a hold that go on, a dead letter; and somebody else's run."""

    customer: str
    runs: tuple[Run, ...]
    held: Run
    other: Run
    secrets: dict[str, bytes]


@pytest.fixture(scope="module")
def story(own_system: OwnSystem, known: Known) -> Story:
    system = own_system
    case = open_case(system, 18000, 17000)
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute(
            "update shop.customers set email = %s, name = %s where id = %s", [known.email, known.Name, case.customer]
        )
    why = {"reason": f"Sent back: {known.Reason}"}
    first, second, chat = (ticket_of(system, case, known, channel) for channel in ("ticket", "ticket", "chat"))
    first.says(
        turn(look_up(case.orders[0])),
        turn(refund(case.orders[0], 18000, **why)),
        turn({"name": "escalate_to_human", "input": {"summary": known.Summary, "reason": "asked"}}),
        {"text": f"Dear {known.Greeting}, it is done."},
    )
    ended = first.start()
    [hold] = ended.holds()
    assert ended.decide("sam", hold, note=f"Seen by {known.Note}").status_code == 200
    ended.ended()
    second.says(turn(refund(case.orders[1], 17000, **why)), DONE)
    held = second.start()
    held.holds()
    chat.says({"text": f"Hello {known.Hello}"}, {"text": "One moment"}, repeat=True)
    talk = chat.start()
    talk.until(ReplyGiven)
    assert post(system, "alex", f"{talk.path}/messages", {"text": f"It is {known.Message}"}).status_code == 202
    talk.until(CustomerSaid)
    until(lambda: talk.view()["status"] == "awaiting_customer")
    other = open_case(system, 900, body="Nothing to hide")
    other.says(turn(look_up(other.orders[0])), DONE)
    others = other.start()
    others.ended()
    runs = (ended, held, talk)
    return Story(case.customer, runs, held, others, asyncio.run(_prepare(system, runs, known)))


async def _prepare(system: RunningSystem, runs: tuple[Run, ...], known: Known) -> dict[str, bytes]:
    """Writes a dead letter that says too much, and looks up the runs' keys."""
    async with records.set_up_broker(system.data).connection() as client:
        letter = {
            "service": "agent-runner",
            "subject": f"run.acme.{runs[0].run}.agent.reply-given",
            "sequence": 1,
            "error": "ValueError: it cannot be read",
            "event": f"of a run that began in clear text: {known.Letter}",
        }
        await client.jetstream().publish("dead.agent-runner", json.dumps(letter).encode())
        found = {run.run: await JetStreamKeys(client).get(RunKey("acme", run.run)) for run in runs}
        return {run: secret for run, secret in found.items() if secret is not None}


def erase(system: RunningSystem, *words: str) -> "subprocess.CompletedProcess[str]":
    """Several processes one after the other, which takes a while on a busy machine."""
    command = [sys.executable, "-m", "turngate", "erase", *words, "--data", str(system.data)]
    return subprocess.run(command, capture_output=True, text=True, timeout=400)


# Where something could be left


async def streams(system: RunningSystem) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    async with records.set_up_broker(system.data).connection() as client:
        for stream in await client.jetstream().streams_info():
            for number in range(max(stream.state.first_seq, 1), stream.state.last_seq + 1):
                try:
                    message = await client.jetstream().get_msg(str(stream.config.name), number)
                except NotFoundError:
                    continue  # erased, or taken
                found[f"{stream.config.name} {number} {message.subject}"] = (message.data or b"") + str(
                    message.headers
                ).encode()
    return found


def tables(system: RunningSystem) -> Iterator[tuple[str, str]]:
    for table in rows(
        system,
        "select table_schema as s, table_name as t from information_schema.tables"
        " where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')",
    ):
        for row in rows(system, f"select whole::text as text from {table['s']}.{table['t']} as whole"):
            yield f"table {table['s']}.{table['t']}", row["text"]


def files(place: Path) -> Iterator[tuple[str, bytes]]:
    for file in place.rglob("*"):
        if file.is_file():
            yield str(file.relative_to(place.parent)), file.read_bytes()


def left(system: RunningSystem, collector: Collector, word: str) -> set[str]:
    """Where the word is found: streams, tables, the services' logs, traces, the broker's and the database's files."""
    sought = word.lower().encode()
    places: list[tuple[str, bytes]] = [
        *asyncio.run(streams(system)).items(),
        *((name, text.encode()) for name, text in tables(system)),
        *files(system.data / "logs"),
        *files(system.data / "nats" / "store"),
        *files(Path(rows(system, "show data_directory")[0]["data_directory"])),
        *((f"trace {number}", body) for number, body in enumerate(collector.bodies)),
    ]
    return {name for name, content in places if sought in content.lower()}


# The test


def test_only_who_may_erase_does(own_system: OwnSystem, story: Story) -> None:
    for who in ("alex", "lee", "ari"):
        refused = erase(own_system, "--customer", story.customer, "--as", who)
        assert refused.returncode == 1, refused.stdout
        assert "scope erase" in refused.stderr
    assert story.held.view()["status"] == "awaiting_approval"
    nobody = erase(own_system, "--customer", "C-0")
    assert (nobody.returncode, "knows no customer C-0" in nobody.stderr) == (1, True)


def test_nothing_of_an_erased_customer_is_left_anywhere(
    own_system: OwnSystem, collector: Collector, story: Story, known: Known
) -> None:
    system = own_system
    with psycopg.connect(system.state.postgres_url) as connection:
        connection.execute("checkpoint")  # what it has in memory stands in its files, too
    before = left(system, collector, known.mark)
    # Only in what the services keep for themselves and in the database's files; not in the log, the logs, the traces.
    assert {name for name in before if name.startswith("table ")} == {
        "table desk.tickets", "table desk.runs", "table shop.customers", "table shop.refunds", "table shop.escalations",
        "table ledger.calls",
    }  # fmt: skip
    elsewhere = {name for name in before if not name.startswith(("table ", "cluster/"))}
    assert elsewhere
    assert all("DEAD" in name for name in elsewhere)
    for files_of in ("cluster/base/", "cluster/pg_wal/"):
        assert [name for name in before if name.startswith(files_of)]
    # What is looked at is there: traces and log lines of these runs.
    assert collector.bodies
    assert all(run.run in system.log_of("tools-shop") for run in story.runs[:2])

    done = erase(system, "--customer", story.customer, "--json")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert set(said["runs"]) >= {run.run for run in story.runs}
    assert (said["keys"], said["dead_letters"], said["customers"]) == (3, 1, 1)

    assert left(system, collector, known.mark) == set()
    stores = [content for _, content in files(system.data / "nats" / "store")]
    assert [run for run, secret in story.secrets.items() if any(secret in content for content in stores)] == []


def test_what_was_done_stays_and_the_log_holds(own_system: OwnSystem, story: Story, known: Known) -> None:
    ended, held, talk = story.runs
    assert turngate(own_system, "log", "verify").returncode == 0
    assert ended.view()["moved"] == [{"currency": "GBP", "amount_minor": 18000}]
    assert ended.facts(RunStarted)[0].ticket.body == "[erased]"
    assert ended.facts(CallDecided)[0].by.subject == "sam"
    assert all(result.content == "[erased]" for fact in ended.facts(TurnExecuted) for result in fact.results)
    for run in (held, talk):
        assert run.view()["status"] == "cancelled"
        assert run.facts(RunCancelled)
    assert all(run.facts(RunErased) for run in story.runs)
    program = client(own_system, "alex")
    for ticket in {run.run.rpartition("-")[0] for run in story.runs}:
        page = program.get(f"/tickets/{ticket}")
        assert page.status_code == 200, page.text
        assert known.mark not in page.text
        assert "[erased]" in page.text
    assert story.other.facts(RunStarted)[0].ticket.body == "Nothing to hide"


def test_erasing_again_changes_nothing_and_views_made_anew_hold_nothing(
    own_system: OwnSystem, collector: Collector, story: Story, known: Known
) -> None:
    again = erase(own_system, "--customer", story.customer, "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["keys"] == 0
    assert turngate(own_system, "rebuild-views").returncode == 0
    assert left(own_system, collector, known.mark) == set()
