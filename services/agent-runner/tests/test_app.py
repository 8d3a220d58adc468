"""The agent-runner at work: a real nats-server, a real PostgreSQL, the real SDK, a scripted model."""

import asyncio

from agent_runner.erasure import Runs, erase
from agent_runner.settings import Settings
from contracts.facts import ReplyGiven, RunCancelled, RunEnded
from contracts.parts import Limits
from nats.aio.msg import Msg
from standin.director import Director
from turngate.testing import Database, NatsAccess

from .house import LOOK, REPLY, House, end_of, kinds, lines, running, settings
from .told import ALEX, ticket

# Working a ticket


async def test_a_ticket_is_worked_from_its_start_to_its_end(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-10", [LOOK, REPLY])
    async with running(told):
        key = await home.starts("TCK-10-1")
        events = await home.ended(key)
    assert kinds(events) == [
        "desk.run-started",
        "agent.turn-proposed",
        "tools.turn-quoted",
        "policy.turn-forwarded",
        "tools.turn-executed",
        "agent.reply-given",
        "agent.run-ended",
    ]
    end = end_of(events)
    assert (end.status, end.steps) == ("resolved", 2)
    first, second = lines(fresh_database)
    assert end.cost_micro_usd == first["spent_micro_usd"] + second["spent_micro_usd"] > 0
    assert first["reserved_micro_usd"] >= first["spent_micro_usd"]
    assert [str(line["cause"]) for line in (first, second)] == [events[0].id, events[4].id]
    assert await director.asked("TCK-10") == {0: 1, 1: 1}


async def test_the_tools_are_asked_for_in_the_currency_and_the_locale_of_each_run(
    home: House, told: Settings, director: Director
) -> None:
    for reference in ("TCK-1001", "TCK-1002"):
        await director.script(reference, [REPLY])
    async with running(told):
        await home.ended(await home.starts("TCK-1001-1", currency="XOF", locale="fr_SN"))
        await home.ended(await home.starts("TCK-1002-1"))
    asked = [(one["currency"], one["locale"]) for one in home.asked_for]
    assert asked == [("XOF", "fr_SN"), (None, None)]


async def test_the_models_words_are_heard_while_it_speaks_and_are_no_facts(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-11", [REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-11-1"))
    assert {subject for subject, _ in home.live} == {"live.acme.TCK-11-1"}
    assert "".join(body.get("text", "") for _, body in home.live) == REPLY["text"]
    assert home.live[-1][1] == {"step": 1, "done": True}
    assert len(events) == 3


async def test_a_longer_run_costs_no_more_reads_of_the_log(home: House, told: Settings, director: Director) -> None:
    read: list[str] = []

    async def asked(message: Msg) -> None:
        if message.reply.startswith("_INBOX_agent-runner"):
            read.append(message.data.decode())

    await home.nc.subscribe("$JS.API.DIRECT.GET.RUNS", cb=asked)
    await director.script("TCK-18", [*([LOOK] * 8), REPLY])
    async with running(told):
        events = await home.ended(await home.starts("TCK-18-1"))
        await home.nothing_in_hand()
    assert len(events) == 1 + 8 * 4 + 2
    # One a turn at most, where the answer to an append and what follows from it come together.
    assert len(read) <= 8, read


async def test_a_looping_agent_is_asked_exactly_twelve_times(home: House, told: Settings, director: Director) -> None:
    await director.script("TCK-12", [LOOK], repeat=True)
    async with running(told):
        events = await home.ended(await home.starts("TCK-12-1"))
    end = end_of(events)
    assert (end.status, end.steps) == ("budget_exhausted", 12)
    assert sum((await director.asked("TCK-12")).values()) == 12


async def test_a_run_whose_money_is_gone_ends_before_the_call_that_it_cannot_pay(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-13", [LOOK], repeat=True)
    limits = Limits(max_steps=100, max_cost_micro_usd=60_000)
    async with running(told):
        events = await home.ended(await home.starts("TCK-13-1", limits=limits))
    end = end_of(events)
    assert end.status == "budget_exhausted"
    assert end.cost_micro_usd <= 60_000
    assert 0 < end.steps < 100


async def test_many_runs_go_on_at_once(home: House, told: Settings, director: Director) -> None:
    runs = [f"TCK-2{n:02}-1" for n in range(20)]
    for run in runs:
        await director.script(run.removesuffix("-1"), [{**LOOK, "delay_ms": 30}, REPLY])
    async with running(told), running(told):
        keys = [await home.starts(run) for run in runs]
        ends = [end_of(await home.ended(key)) for key in keys]
    assert {end.status for end in ends} == {"resolved"}
    for run in runs:
        assert await director.asked(run.removesuffix("-1")) == {0: 1, 1: 1}


# Chats, and facts that come while the model speaks


async def test_a_message_while_the_model_speaks_neither_asks_again_nor_gets_lost(
    home: House, told: Settings, director: Director
) -> None:
    await director.script("TCK-30", [{**REPLY, "gate": "speak"}, {"text": "And the refund is there."}])
    async with running(told):
        key = await home.starts("TCK-30-1", ticket=ticket(channel="chat"))
        await director.asked("TCK-30", at_least=1)
        await home.customer_says(key, "And my refund?", "m1")
        await director.open("speak")
        events = await home.until(key, ReplyGiven, 2)
    assert kinds(events)[:4] == ["desk.run-started", "desk.customer-said", "agent.reply-given", "agent.reply-given"]
    assert await director.asked("TCK-30") == {0: 1, 1: 1}
    _, second = await director.bodies("TCK-30")
    assert second["messages"][-1]["content"] == [{"type": "text", "text": "And my refund?"}]


async def test_a_customer_who_never_stops_typing_gets_answers_each_paid_once(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-31", [{**REPLY, "delay_ms": 150}], repeat=True)
    limits = Limits(max_steps=100, max_cost_micro_usd=1_000_000)
    async with running(told):
        key = await home.starts("TCK-31-1", ticket=ticket(channel="chat"), limits=limits)
        for n in range(15):
            await home.customer_says(key, f"#{n}", f"m{n}")
            await asyncio.sleep(0.05)  # the customer's own pace
        await home.says(key, RunCancelled(by=ALEX))
        events = await home.ended(key)
    replies = [event for event in events if isinstance(event.fact, ReplyGiven)]
    assert len(replies) >= 2
    assert {count for count in (await director.asked("TCK-31")).values()} == {1}
    assert len({event.cause for event in replies}) == len(replies)


async def test_a_run_that_is_cancelled_while_the_model_speaks_says_no_more_and_the_answer_is_kept(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-32", [{**LOOK, "gate": "cancelled"}])
    async with running(told):
        key = await home.starts("TCK-32-1")
        await director.asked("TCK-32", at_least=1)
        await home.says(key, RunCancelled(by=ALEX))
        await director.open("cancelled")
        after = await home.starts("TCK-33-1")
        await home.until(after, RunEnded)
    assert kinds((await home.history(key)).events) == ["desk.run-started", "desk.run-cancelled"]  # type: ignore[arg-type]
    assert lines(fresh_database)[0]["answer"]["stop_reason"] == "tool_use"


async def test_an_answer_that_is_given_while_its_customer_is_erased_is_paid_for_and_not_kept(
    home: House, told: Settings, director: Director, fresh_database: Database
) -> None:
    await director.script("TCK-35", [{"text": "Dear Tom Field", "gate": "erased"}])
    async with running(told):
        key = await home.starts("TCK-35-1")
        await director.asked("TCK-35", at_least=1)
        await home.says(key, RunCancelled(by=ALEX))
        await asyncio.to_thread(erase, fresh_database.runner, Runs(tenant="acme", runs=[key.run]))
        await director.open("erased")
        await home.nothing_in_hand()
    [line] = lines(fresh_database)
    assert (line["answer"], line["spent_micro_usd"] > 0) == (None, True)


async def test_a_chat_whose_customer_falls_silent_ends(
    home: House, fresh_nats: NatsAccess, fresh_database: Database, standin_url: str, director: Director
) -> None:
    await director.script("TCK-34", [REPLY])
    async with running(settings(fresh_nats, fresh_database, standin_url, chat_idle_s=1)):
        key = await home.starts("TCK-34-1", ticket=ticket(channel="chat"))
        events = await home.ended(key)
    assert end_of(events).status == "resolved"
