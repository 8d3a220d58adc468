"""The broker lets each service say its own facts, hear its own messages, and do nothing else."""

import asyncio
import json
from typing import Any

import nats.errors
import pytest
from contracts import setup
from contracts.connection import settle
from contracts.errors import Forbidden
from contracts.events import Draft
from contracts.examples import EXAMPLES
from contracts.facts import CATALOGUE
from contracts.history import History
from contracts.requests import Requests
from contracts.subjects import RunKey
from contracts.tenant_facts import TENANT_FACTS
from contracts.topology import ANSWERS, ASKS, AUTHORS, BESIDE, HEARS, HEARS_DEAD, HEARS_TIMERS, READER, permissions
from turngate.testing import Server

from .servers import SOON, House, own_server

every_service = pytest.mark.parametrize("service", sorted(AUTHORS))


# The table itself


@every_service
def test_a_service_says_the_facts_of_one_author(service: str) -> None:
    facts = {subject for subject in permissions(service)["publish"] if subject.startswith(("run.", "tenant."))}
    runs = {f"run.*.*.{kind}" for kind, fact in CATALOGUE.items() if fact.author == AUTHORS[service]}
    tenants = {f"tenant.*.{kind}" for kind, fact in TENANT_FACTS.items() if fact.author == AUTHORS[service]}
    assert facts == runs | tenants


@every_service
def test_nobody_is_given_what_manages_streams_or_hears_what_lost(service: str) -> None:
    may = permissions(service)
    for subject in may["publish"]:
        assert not subject.startswith(("$JS.API.STREAM", "$JS.API.CONSUMER", "log.", ">", "*", "deliver", "timer.due"))
    for subject in may["subscribe"]:
        assert not subject.startswith(("run.", ">", "*", "$JS", "_INBOX."))


def test_every_kind_that_is_heard_is_said_by_somebody() -> None:
    for kinds in HEARS.values():
        assert set(kinds) <= set(CATALOGUE)
    lines = {*AUTHORS, *(line for lines in BESIDE.values() for line in lines)}
    assert set(HEARS) <= lines
    assert {*HEARS_TIMERS, *HEARS_DEAD} <= lines
    assert set(BESIDE) <= set(AUTHORS)


def test_every_request_is_answered_by_one() -> None:
    answered = [subject for subjects in ANSWERS.values() for subject in subjects]
    assert len(answered) == len(set(answered))
    assert {subject for subjects in ASKS.values() for subject in subjects} <= set(answered)


def test_only_who_answers_may_reply_to_others() -> None:
    assert {service for service in AUTHORS if permissions(service)["allow_responses"]} == set(ANSWERS)


def test_a_reader_reads() -> None:
    assert all(subject.startswith("$JS.API.DIRECT.GET.") for subject in READER["publish"])


# The broker that was given it


@own_server
@every_service
async def test_each_author_is_believed_from_its_own_service_only(house: House, key: RunKey, service: str) -> None:
    log = await house.log(service)
    for kind, fact in EXAMPLES.items():
        run = RunKey(key.tenant, f"{key.run}-{kind.replace('.', '-')}")
        if fact.author == AUTHORS[service]:
            assert await log.append(History(run), Draft(fact, None))
        else:
            with pytest.raises(Forbidden):
                await log.append(History(run), Draft(fact, None))
            assert await log.head(run) is None


FORBIDDEN = [
    "$JS.API.STREAM.UPDATE.RUNS",
    "$JS.API.STREAM.DELETE.RUNS",
    "$JS.API.STREAM.PURGE.RUNS",
    "$JS.API.STREAM.MSG.DELETE.RUNS",
    "$JS.API.STREAM.CREATE.MINE",
    "$JS.API.STREAM.SNAPSHOT.RUNS",
    "$JS.API.CONSUMER.CREATE.RUNS.mine",
    "$JS.API.CONSUMER.DURABLE.CREATE.RUNS.mine",
    "$JS.API.CONSUMER.DELETE.RUNS.policy",
    "$JS.API.CONSUMER.PAUSE.RUNS.policy",
    "$JS.API.CONSUMER.MSG.NEXT.RUNS.policy",
    "$JS.API.STREAM.MSG.GET.RUNS",
    "$JS.ACK.RUNS.somebody.1.1.1.1.0",
    "log.run.acme.TCK-1-1.policy.turn-forwarded",
    "deliver.policy",
    "deliver.timer.approvals",
    "timer.due.approvals.acme.TCK-1-1",
    "timer.set.somebody.x",
    "dead.somebody",
    "tenant.acme.policy.policy-promoted",
    "tenant.acme.desk.stop-lifted",
    "_INBOX_somebody.x",
    "run.acme.TCK-1-1",
]


@own_server
@pytest.mark.parametrize("user", [*sorted(AUTHORS), "reader"])
async def test_what_nobody_is_let_do_nobody_can_do(house: House, user: str) -> None:
    bus = await house.bus(user)
    requests = Requests(bus.nc)
    bus.on_error.append(requests.on_error)
    outcomes = await asyncio.gather(
        *(requests.ask(subject, b"{}", timeout=SOON) for subject in FORBIDDEN), return_exceptions=True
    )
    assert [s for s, outcome in zip(FORBIDDEN, outcomes, strict=True) if not isinstance(outcome, Forbidden)] == []


@own_server
@pytest.mark.parametrize("user", [*sorted(AUTHORS), "reader"])
async def test_nobody_listens_in(house: House, user: str) -> None:
    bus = await house.bus(user)
    refused: list[str] = []
    bus.on_error.append(lambda error: refused.append(str(error)))
    others = [name for name in AUTHORS if name != user]
    subjects = [
        "run.>", ">", "$JS.ACK.>", "_INBOX.>", "ask.>", "timer.>", "dead.>",
        *(f"_INBOX_{name}.>" for name in others), *(f"deliver.{name}" for name in others),
    ]  # fmt: skip
    for subject in subjects:
        await bus.nc.subscribe(subject)
    await bus.nc.flush()
    async with asyncio.timeout(SOON):
        while len(refused) < len(subjects):
            await asyncio.sleep(0.01)
    for subject in subjects:
        assert any(f'subscription to "{subject.lower()}"' in message.lower() for message in refused), subject


@own_server
@every_service
async def test_what_it_said_itself_is_not_delivered_as_anothers_word_or_as_a_command(
    fresh_house: House, key: RunKey, service: str
) -> None:
    # given a fact of its own whose content is a command
    bus = await fresh_house.bus(service)
    config = (await api(fresh_house, "STREAM.INFO.RUNS"))["config"]
    mine = next(subject for subject in permissions(service)["publish"] if subject.startswith("run."))
    mine = mine.replace("*.*", f"{key.tenant}.{key.run}")
    await bus.nc.request(mine, json.dumps(config | {"max_msgs": 1, "discard": "old"}).encode(), timeout=SOON)
    other = next(kind for kind, fact in CATALOGUE.items() if fact.author != AUTHORS[service])
    # when it asks for it, and names another's place for the answer
    for reply in (key.subject(other), "$JS.API.STREAM.UPDATE.RUNS", "$JS.API.STREAM.PURGE.TIMERS"):
        await bus.nc.publish("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', reply=reply)
        await bus.nc.publish(mine, b"{}", reply=reply)
    await settle(bus.nc)
    await bus.nc.request("$JS.API.DIRECT.GET.RUNS", b'{"seq":1}', timeout=SOON)
    # then nothing came of it but what it may say
    after = await api(fresh_house, "STREAM.INFO.RUNS", {"subjects_filter": ">"})
    assert after["config"]["max_msgs"] == -1
    assert set(after["state"]["subjects"]) == {mine}


# Set-up


async def api(house: House, subject: str, body: Any = None) -> Any:
    client = await house.client("setup")
    reply = await client.request(f"$JS.API.{subject}", json.dumps(body).encode() if body else b"", timeout=SOON)
    return json.loads(reply.data)


async def test_setting_up_again_changes_nothing(fresh_house: House, key: RunKey) -> None:
    event = await (await fresh_house.log()).append(History(key), Draft(EXAMPLES["desk.run-started"], None))
    before = await api(fresh_house, "CONSUMER.INFO.RUNS.policy")
    await setup.create_streams(fresh_house.url, *fresh_house.access.user("setup"))
    assert (await (await fresh_house.log()).read(key)).head == event
    assert (await api(fresh_house, "CONSUMER.INFO.RUNS.policy"))["created"] == before["created"]


async def test_the_log_forgets_nothing_even_for_who_set_it_up(fresh_house: House, key: RunKey) -> None:
    event = await (await fresh_house.log()).append(History(key), Draft(EXAMPLES["desk.run-started"], None))
    assert "error" in await api(fresh_house, "STREAM.PURGE.RUNS")
    assert "error" in await api(fresh_house, "STREAM.MSG.DELETE.RUNS", {"seq": event.sequence})
    config = (await api(fresh_house, "STREAM.INFO.RUNS"))["config"]
    assert config["storage"] == "file"
    assert config["retention"] == "limits"
    assert config["discard"] == "new"
    assert config["deny_delete"]
    assert config["deny_purge"]
    assert config["republish"] == {"src": "run.>", "dest": "log.run.>"}
    for limit in ("max_msgs", "max_bytes", "max_msgs_per_subject"):
        assert config[limit] == -1
    assert config.get("max_age", 0) == 0


@own_server
async def test_facts_are_there_after_the_server_was_killed(server: Server, server_house: House, key: RunKey) -> None:
    event = await (await server_house.log()).append(History(key), Draft(EXAMPLES["desk.run-started"], None))
    server.restart()
    async with House(server.access) as house, asyncio.timeout(SOON):
        assert (await (await house.log()).read(key)).events == (event,)
        info = await api(house, "CONSUMER.INFO.RUNS.agent-runner")
        assert info["num_pending"] == 1


async def test_set_up_without_the_rights_says_so(house: House) -> None:
    with pytest.raises((nats.errors.Error, RuntimeError)):
        await asyncio.wait_for(setup.create_streams(house.url, "setup", "a wrong password"), SOON)
