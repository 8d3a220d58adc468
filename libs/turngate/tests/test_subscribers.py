"""Another system hears its tenant's accepted facts, each once, and nothing else: tried on a real server."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nats.errors
import pytest
from contracts import asks
from contracts.connection import connect, settle
from contracts.events import Draft, Event
from contracts.examples import EXAMPLES
from contracts.history import History
from contracts.log import JetStreamLog
from contracts.requests import refusal
from contracts.settings import BrokerSettings
from contracts.subjects import RunKey
from nats.aio.client import Client
from pydantic import SecretStr
from turngate import records, testing
from turngate.embedded import state
from turngate.embedded.passwords import Passwords
from turngate.sign_in import sign_in

SMALL = Path(__file__).with_name("small_system.py")
SOON = 30.0


@dataclass
class House:
    """A broker with its set-up, and the command line beside it."""

    data: Path

    def turngate(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "turngate", "subscriber", *words, "--data", str(self.data), "--json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    def subscribe(self, name: str, tenant: str) -> dict[str, Any]:
        done = self.turngate("add", name, "--tenant", tenant)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    @asynccontextmanager
    async def service(self, name: str, **more: Any) -> AsyncIterator[Client]:
        seed = Passwords(self.data / "passwords.json").seed(f"nkey/{name}")
        url = records.broker(self.data).url
        nc = await connect(BrokerSettings(nats_url=url, nats_nkey=SecretStr(seed)), **more)
        try:
            yield nc
        finally:
            await nc.close()

    @asynccontextmanager
    async def root(self) -> AsyncIterator[Client]:
        async with records.set_up_broker(self.data).connection() as nc:
            yield nc


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with testing.directory() as place:
        data = place / "data"
        process = subprocess.Popen([sys.executable, SMALL, data, "0", "approvals"], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            assert any(line.strip() == "ready" for line in process.stdout)
            yield House(data)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


class Other:
    """The other system's connection."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.refused: list[str] = []
        self.live: list[str] = []

    async def __aenter__(self) -> "Other":
        async def failed(error: Exception) -> None:
            if found := refusal(error):
                self.refused.append(found.subject)

        settings = BrokerSettings(nats_url=self.told["url"], nats_nkey=SecretStr(self.told["seed"]))
        prefix = self.told["inbox_prefix"]
        self.nc = await connect(settings, inbox_prefix=prefix, error_cb=failed, allow_reconnect=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.nc.close()

    async def listen(self) -> None:
        async def heard(message: Any) -> None:
            self.live.append(message.subject)

        await self.nc.subscribe(self.told["live"], cb=heard)
        await settle(self.nc)

    async def pull(self, count: int) -> list[int]:
        """The sequences of the next facts, acknowledged; more than that many where there are more."""
        facts = await self.nc.jetstream().pull_subscribe_bind(self.told["consumer"], stream="RUNS")
        found: list[int] = []
        while True:
            try:
                batch = await facts.fetch(100, timeout=10 if len(found) < count else 0.3)
            except TimeoutError:
                return found
            for message in batch:
                assert message.subject.startswith(f"run.{self.told['tenant']}.")
                found.append(message.metadata.sequence.stream)
                await message.ack_sync()

    async def is_refused(self, *subjects: str, listening: bool = False) -> None:
        """Tries each; done once the broker has refused all of them."""
        for subject in subjects:
            if listening:
                await self.nc.subscribe(subject)
            else:
                await self.nc.publish(subject, b"{}", reply=self.nc.new_inbox())
        async with asyncio.timeout(SOON):
            while missing := {subject.lower() for subject in subjects} - set(self.refused):
                await settle(self.nc)
                await asyncio.sleep(0.01)
        assert not missing


async def enters(told: dict[str, Any]) -> bool:
    try:
        async with Other(told):
            return True
    except (OSError, nats.errors.Error):
        return False


async def say(nc: Client, run: str, tenant: str = "acme", times: int = 1) -> list[Event]:
    """The first fact of so many runs."""
    log = JetStreamLog(nc)
    runs = [RunKey(tenant, f"{run}-{number}") for number in range(1, times + 1)]
    return [await log.append(History(key), Draft(EXAMPLES["desk.run-started"], None)) for key in runs]


async def test_each_accepted_fact_comes_once_no_rejected_one_and_nothing_of_another_tenant(house: House) -> None:
    async with house.service("gateway", inbox_prefix="_INBOX_gateway") as gateway:
        said = await say(gateway, "BEFORE", times=3)
        await say(gateway, "THEIRS", "globex", times=3)
        async with Other(house.subscribe("crm", "acme")) as other:
            await other.listen()
            said += await say(gateway, "AFTER", times=2)
            await say(gateway, "THEIRS-TOO", "globex", times=2)
            lost = await gateway.request(
                said[-1].key.subject("desk.run-started"), b"{}", timeout=SOON,
                headers={"Nats-Expected-Last-Subject-Sequence": "0",
                         "Nats-Expected-Last-Subject-Sequence-Subject": said[-1].key.every},
            )  # fmt: skip
            assert json.loads(lost.data)["error"]["err_code"] == 10071
            assert await other.pull(len(said)) == [event.sequence for event in said]
            assert other.live == [f"log.{event.key.subject(event.kind)}" for event in said[3:]]
            assert other.refused == []


async def test_who_was_away_goes_on_from_where_it_was(house: House) -> None:
    told = house.subscribe("bi", "acme")
    async with house.service("gateway", inbox_prefix="_INBOX_gateway") as gateway:
        first = await say(gateway, "HERE", times=2)
        async with Other(told) as other:
            assert (await other.pull(2))[-2:] == [event.sequence for event in first]
        missed = await say(gateway, "AWAY", times=5)
        async with Other(told) as other:
            assert await other.pull(5) == [event.sequence for event in missed]
    listed = json.loads(house.turngate("list").stdout)["subscribers"]
    (bi,) = [one for one in listed if one["name"] == "bi"]
    assert (bi["tenant"], bi["acknowledged"], bi["waiting"]) == ("acme", missed[-1].sequence, 0)


async def test_whatever_else_it_tries_is_refused(house: House) -> None:
    mine, theirs = house.subscribe("mine", "acme"), house.subscribe("theirs", "globex")
    async with Other(mine) as other:
        await other.is_refused(
            "$JS.API.DIRECT.GET.RUNS",
            "$JS.API.DIRECT.GET.RUNS.run.acme.T-1.desk.run-started",
            "$JS.API.DIRECT.GET.KEYS",
            "$JS.API.STREAM.MSG.GET.RUNS",
            "$JS.API.STREAM.LIST",
            "$JS.API.STREAM.NAMES",
            "$JS.API.STREAM.INFO.RUNS",
            "$JS.API.STREAM.UPDATE.RUNS",
            "$JS.API.CONSUMER.LIST.RUNS",
            "$JS.API.CONSUMER.NAMES.RUNS",
            "$JS.API.CONSUMER.INFO.RUNS.policy",
            f"$JS.API.CONSUMER.CREATE.RUNS.{mine['consumer']}",
            f"$JS.API.CONSUMER.CREATE.RUNS.{mine['consumer']}.run.globex.>",
            f"$JS.API.CONSUMER.DURABLE.CREATE.RUNS.{mine['consumer']}",
            f"$JS.API.CONSUMER.MSG.NEXT.RUNS.{theirs['consumer']}",
            f"$JS.API.CONSUMER.DELETE.RUNS.{theirs['consumer']}",
            f"$JS.ACK.RUNS.{theirs['consumer']}.1.1.1.1.0",
            "$JS.ACK.RUNS.policy.1.1.1.1.0",
            "run.acme.T-1.desk.run-started",
            "log.run.acme.T-1.desk.run-started",
            "ask.approvals.decide",
            "live.acme.T-1",
            "subscribers.acme",
        )
        await other.is_refused(
            "log.run.globex.>", "log.run.>", "log.run.*.*.*.*", "log.>", "log.tenant.>", "run.acme.>", "run.>", ">",
            "deliver.>", "live.>", "$JS.>", "_INBOX.>", f"_INBOX_{theirs['user']}.>", listening=True,
        )  # fmt: skip


async def test_a_pull_answered_to_somebody_elses_subject_reaches_nobody(house: House) -> None:
    told = house.subscribe("sly", "acme")
    async with house.service("gateway", inbox_prefix="_INBOX_gateway") as gateway, house.root() as root:
        await say(gateway, "SLY", times=2)
        before = (await root.jetstream().stream_info("RUNS")).state.last_seq
        async with Other(told) as other:
            for reply in ("run.acme.SLY-1.policy.turn-forwarded", "$JS.API.STREAM.PURGE.TIMERS", "deliver.policy"):
                await other.nc.publish(
                    f"$JS.API.CONSUMER.MSG.NEXT.RUNS.{told['consumer']}", b'{"batch":1}', reply=reply
                )
            await settle(other.nc)
            assert await other.pull(0) is not None
        assert (await root.jetstream().stream_info("RUNS")).state.last_seq == before


async def test_nobody_else_is_disturbed_while_the_broker_learns_of_one(house: House) -> None:
    gone: list[str] = []

    async def disconnected() -> None:
        gone.append("disconnected")

    async with house.service("gateway", inbox_prefix="_INBOX_gateway", disconnected_cb=disconnected) as gateway:
        pid = state.read(house.data).processes["nats"]["pid"]
        await asyncio.to_thread(house.subscribe, "late", "acme")
        await say(gateway, "STILL")
        assert gone == []
        assert state.read(house.data).processes["nats"]["pid"] == pid


async def test_it_is_still_known_when_the_broker_was_killed_and_came_back(house: House) -> None:
    told = house.subscribe("steady", "acme")
    async with house.service("gateway", inbox_prefix="_INBOX_gateway") as gateway:
        said = await say(gateway, "STEADY", times=2)
    killed = state.read(house.data).processes["nats"]["pid"]
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(SOON):
        while (again := state.read(house.data).processes["nats"]["pid"]) in (killed, None):
            await asyncio.sleep(0.02)
    assert again != killed
    async with asyncio.timeout(SOON):
        while not await enters(told):
            await asyncio.sleep(0.02)
    async with Other(told) as other:
        assert (await other.pull(2))[-2:] == [event.sequence for event in said]


async def test_who_is_removed_is_out_at_once(house: House) -> None:
    told = house.subscribe("former", "acme")
    async with Other(told) as other:
        removed = await asyncio.to_thread(house.turngate, "remove", "former")
        assert removed.returncode == 0, removed.stderr
        async with asyncio.timeout(SOON):
            while not other.nc.is_closed:
                await asyncio.sleep(0.01)
    assert not await asyncio.wait_for(enters(told), SOON)


async def test_a_removal_that_broke_off_behind_its_record_is_brought_to_its_end_by_the_next(house: House) -> None:
    told = house.subscribe("half-gone", "acme")
    asked = asks.AskRemoveSubscriber(token=SecretStr(sign_in(house.data, "ada", "acme")), subscriber="half-gone")
    async with house.root() as nc:
        body = json.dumps(asked.model_dump(mode="json")).encode()
        assert json.loads((await nc.request(asks.OF_TENANT, body, timeout=SOON)).data)["status"] == 200
    assert await enters(told)

    removed = await asyncio.to_thread(house.turngate, "remove", "half-gone")

    assert removed.returncode == 0, removed.stderr
    async with asyncio.timeout(SOON):
        while await enters(told):
            await asyncio.sleep(0.01)
    assert "half-gone" not in house.turngate("list").stdout


@pytest.mark.parametrize("who", ["alex", "lee", "ari"])
def test_only_an_admin_lets_others_in_or_shuts_them_out(house: House, who: str) -> None:
    there = f"there-{who}"
    house.subscribe(there, "acme")
    before = json.loads(house.turngate("list").stdout)
    told = (house.data / "subscribers.json").read_text()
    for refused in (house.turngate("add", f"by-{who}", "--tenant", "acme", "--as", who),
                    house.turngate("remove", there, "--as", who)):  # fmt: skip
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "scope subscribers" in refused.stderr
    assert json.loads(house.turngate("list").stdout) == before
    assert (house.data / "subscribers.json").read_text() == told


async def test_who_let_them_in_and_who_shut_them_out_is_said_in_the_tenants_line(house: House) -> None:
    house.subscribe("on-record", "globex")
    assert house.turngate("remove", "on-record").returncode == 0
    async with house.root() as root:
        for kind in ("subscriber-added", "subscriber-removed"):
            message = await root.jetstream().get_last_msg("TENANTS", f"tenant.globex.approvals.{kind}")
            said = json.loads(message.data or b"")["data"]
            assert (said["subscriber"], said["by"]["subject"], said["by"]["role"]) == ("on-record", "gia", "admin")


def test_the_seed_is_kept_nowhere(house: House) -> None:
    seed = house.subscribe("careful", "acme")["seed"]
    files = [path for path in house.data.rglob("*") if path.is_file() and "store" not in path.parts]
    assert not [path for path in files if path.stat().st_size < 10_000_000 and seed.encode() in path.read_bytes()]
    assert "already" in house.turngate("add", "careful", "--tenant", "acme").stderr
    assert "no tenant" in house.turngate("add", "other", "--tenant", "nobody").stderr
    assert "not a name" in house.turngate("add", "a.b", "--tenant", "acme").stderr
