"""The agent-runner when the model, its set-up or another service fails: each run gets an end that says what to do."""

import asyncio
import json
from datetime import timedelta

import psycopg
import pytest
from agent_runner.ledger import AboveRowSecurity
from agent_runner.settings import Settings
from contracts.facts import RunEnded, TurnProposed
from contracts.parts import Json
from standin.director import Director
from turngate.testing import Database, NatsAccess

from .house import LOOK, REPLY, House, end_of, kinds, lines, running, settings, words


async def test_an_overloaded_model_is_waited_for_and_not_counted(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    busy = {"fault": {"status": 529, "retry_after": 0.01}}
    await director.script("TCK-40", [[busy] * 5 + [REPLY]])
    async with running(told):
        events = await home.ended(await home.starts("TCK-40-1"))
    assert (end_of(events).status, end_of(events).steps) == ("resolved", 1)
    [line] = lines(fresh_database)
    assert line["uncertain_micro_usd"] == 0


async def test_a_model_that_wants_to_be_left_alone_is(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-40", [[{"fault": {"status": 429, "retry_after": 1}}, REPLY]])
    async with running(told):
        events = await home.ended(await home.starts("TCK-40-1"))
    assert events[-1].time - events[0].time >= timedelta(seconds=1)


async def test_what_a_silent_model_may_have_cost_is_uncertain_and_it_is_asked_again(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-40", [[{**REPLY, "gate": "never"}, REPLY]])
    async with running(told.model_copy(update={"model_timeout_s": 1})):
        events = await home.ended(await home.starts("TCK-40-1"))
    assert (end_of(events).status, end_of(events).steps) == ("resolved", 1)
    asked = (await director.asked("TCK-40"))[0]
    [line] = lines(fresh_database)
    assert line["uncertain_micro_usd"] == (asked - 1) * line["reserved_micro_usd"] > 0


async def test_an_answer_that_waits_for_the_ledger_stays_its_holders(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-40", [REPLY])
    with psycopg.connect(fresh_database.superuser, autocommit=True) as superuser:
        superuser.execute("alter function ledger.record rename to record_as_ever")
        superuser.execute(
            "create function ledger.record(text, text, uuid, uuid, json, bigint) returns json language plpgsql as"
            " $$ begin raise 'not now' using errcode = 'cannot_connect_now'; end $$"
        )
        async with running(told.model_copy(update={"ack_wait": 1.0})):
            key = await home.starts("TCK-40-1")
            async with asyncio.timeout(20):
                while not home.live or "done" not in home.live[-1][1]:
                    await asyncio.sleep(0.01)
                [before] = lines(fresh_database)
                while lines(fresh_database)[0]["held_until"] < before["held_until"] + timedelta(seconds=1):
                    await asyncio.sleep(0.05)
            superuser.execute("drop function ledger.record")
            superuser.execute("alter function ledger.record_as_ever rename to record")
            assert end_of(await home.ended(key)).status == "resolved"
    assert await director.asked("TCK-40") == {0: 1}


async def test_a_runner_whose_database_role_would_see_every_tenants_rows_does_not_start(
    told: Settings, fresh_database: Database
) -> None:
    above = Settings(**{**told.model_dump(), "postgres_dsn": fresh_database.superuser})
    with pytest.raises(AboveRowSecurity):
        async with running(above):
            pass


async def test_an_answer_that_broke_off_is_asked_for_again_and_counted(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-41", [[{**LOOK, "fault": {"cut": "connection"}}, LOOK], REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-41-1"))
    assert kinds(events)[1:3] == ["agent.answer-unfinished", "agent.turn-proposed"]
    assert end_of(events).steps == 3


async def test_a_refusal_of_the_models_hands_over_to_a_person(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-42", [{"text": "I", "stop_reason": "refusal"}])
    async with running(told):
        events = await home.ended(await home.starts("TCK-42-1"))
    assert (end_of(events).status, end_of(events).steps) == ("escalated", 1)


async def test_without_a_key_a_run_fails_and_says_what_to_set(
    home: House, fresh_nats: NatsAccess, fresh_database: Database
) -> None:
    async with running(settings(fresh_nats, fresh_database, None)):
        end = end_of(await home.ended(await home.starts("TCK-43-1")))
    assert end.status == "failed"
    assert "Set ANTHROPIC_API_KEY" in end.reason


async def test_a_refused_key_fails_the_run_and_appears_in_no_fact(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, standin_url: str
) -> None:
    async with running(settings(fresh_nats, fresh_database, standin_url, model_api_key="invalid-quokka")):
        events = await home.ended(await home.starts("TCK-44-1"))
    assert "Set ANTHROPIC_API_KEY" in end_of(events).reason
    assert "quokka" not in words(events)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"profile": "sales"}, "There is no profile 'sales'; there is support."),
        ({"prompt_version": "support-v0"}, "There is no prompt 'support-v0'"),
        ({"model": "gpt-9"}, "prices.yaml"),
    ],
)
async def test_a_run_that_is_set_up_wrong_fails_and_says_how(
    home: House, told: Settings, changes: Json, says: str
) -> None:
    async with running(told):
        end = end_of(await home.ended(await home.starts("TCK-45-1", **changes)))
    assert (end.status, end.steps) == ("failed", 0)
    assert says in end.reason


async def test_an_exception_fails_the_run_and_its_text_stays_in_the_log_file(home: House, told: Settings) -> None:
    home.catalogue = {"tools": "secret-quokka", "version": "1", "digest": "x"}
    async with running(told):
        events = await home.ended(await home.starts("TCK-46-1"))
    assert end_of(events).status == "failed"
    assert f"Reference: {events[0].id[:8]}" in end_of(events).reason
    assert not any(word in words(events) for word in ("quokka", "indices"))


async def test_a_dead_letter_ends_its_run_without_its_error(home: House, told: Settings, director: Director) -> None:
    home.willing = False
    await director.script("TCK-47", [LOOK])
    async with running(told):
        key = await home.starts("TCK-47-1")
        proposed = (await home.until(key, TurnProposed))[-1]
        letter = {
            "service": "tools-shop",
            "subject": key.subject(proposed.kind),
            "sequence": proposed.sequence,
            "error": "KeyError: secret-quokka",
            "event": proposed.payload.decode(),
        }
        await home.nc.request("dead.tools-shop", json.dumps(letter).encode())
        events = await home.until(key, RunEnded)
    end = end_of(events)
    assert (end.status, end.steps) == ("failed", 1)
    assert f"tools-shop-{proposed.sequence}" in end.reason
    assert "quokka" not in words(events)


async def test_a_dead_letter_of_a_timer_or_an_ended_run_changes_nothing(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-48", [REPLY])
    async with running(told):
        key = await home.starts("TCK-48-1")
        events = await home.ended(key)
        for subject in ("timer.due.approvals.x", key.subject("desk.run-started")):
            letter = {"service": "approvals", "subject": subject, "sequence": 1, "error": "x", "event": "?"}
            await home.nc.request("dead.approvals", json.dumps(letter).encode())
        await home.ended(await home.starts("TCK-49-1"))
    assert (await home.history(key)).head == events[-1]
