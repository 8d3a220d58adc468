"""Whatever is killed, and whenever: a run ends as it would have, with the same facts, and pays once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from contracts.events import Event
from contracts.facts import RunEnded
from contracts.verify import verify
from turngate import records, testing
from turngate.embedded.ports import free_port
from turngate.embedded.services import answers
from turngate.running import RunningSystem, running_system

from .points import POINTS, SERVICES, Point
from .stories import ORDER, PAID, REPLY, Client, Line, Told, asked, last_sequence, new_case, tell, until
from .world import Case, Model, look_up, model_of, refund, rows, turn

ACK_WAIT = 1.0
SETTINGS = {
    "ANTHROPIC_API_KEY": "",
    "TURNGATE_MODEL_API_KEY": "",
    "TURNGATE_ACK_WAIT": str(ACK_WAIT),
    "TURNGATE_LONGEST_RESTART_WAIT": "0.1",
}
pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class House:
    """A system whose services end at the points that are armed."""

    system: RunningSystem
    stops: Path

    @property
    def model(self) -> Model:
        return model_of(self.system)

    def arm(self, point: Point, *strikes: str) -> None:
        (self.stops / str(point)).write_text("\n".join(strikes))

    def disarm(self, point: Point) -> None:
        (self.stops / str(point)).unlink()

    def left(self, point: Point) -> list[int]:
        """How often each strike is still to come."""
        return [int(line.split()[0]) for line in (self.stops / str(point)).read_text().splitlines()]

    def passed(self, point: Point, run: str) -> list[str]:
        """On whose account the point was passed while it was armed: by the run, or by what serves all runs (`-`)."""
        reached = self.stops / f"{point}.reached"
        lines = reached.read_text().splitlines() if reached.exists() else []
        return list(dict.fromkeys(line for line in lines if line.split()[0] in (run, "-")))


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with testing.directory() as data:
        stops = data / "stops"
        stops.mkdir()
        with running_system(data, SETTINGS | {"TURNGATE_STOPS_DIR": str(stops)}) as system:
            yield House(system, stops)


def dead_letters(house: House) -> list[dict[str, Any]]:
    return records.dead_letters(records.set_up_broker(house.system.data))


# Killed at each point


@dataclass(frozen=True)
class Undisturbed:
    """How the story goes when nothing happens, and who passes which point in it."""

    told: Told
    passes: dict[Point, list[str]]


@pytest.fixture(scope="module")
def undisturbed(house: House) -> Undisturbed:
    case = new_case(house.system, ORDER)
    for point in POINTS:
        house.arm(point)
    told = tell(case, house.model)
    for point in POINTS:
        house.disarm(point)
    passes = {point: house.passed(point, f"{case.ticket}-1") for point in POINTS}
    return Undisturbed(told, {point: [p.replace(case.ticket, "ticket") for p in passes[point]] for point in passes})


@dataclass(frozen=True)
class Struck:
    """What came of a run during which a point was armed.

    left: how often each strike was still to come.
    asked_again: how often the model was asked for an answer that it had been asked for before.
    lost: how often the ledger says that whoever asked died before the answer was recorded.
    """

    told: Told
    left: list[int]
    asked_again: int
    lost: int


Killings = dict[tuple[Point, str], "Future[Struck]"]


@pytest.fixture(scope="module")
def killings(house: House, undisturbed: Undisturbed, request: pytest.FixtureRequest) -> Iterator[Killings]:
    """Every story of the selected tests, one after the other for a service, and the services beside one another."""
    lanes = {service: ThreadPoolExecutor(1) for service in SERVICES}
    wanted: dict[tuple[Point, str], Case] = {}
    for item in request.session.items:
        if item.originalname == kill_test.__name__:  # type: ignore[attr-defined]
            params = item.callspec.params  # type: ignore[attr-defined]
            wanted[params["point"], params["how"]] = new_case(house.system, ORDER)

    def strike(point: Point, how: str, case: Case) -> Struck:
        passes = [passing.replace("ticket", case.ticket) for passing in undisturbed.passes[point]]
        strikes = {
            "once": [f"1 {passes[POINTS.index(point) % len(passes)]}"],  # another step of the run at each point
            "each time": [f"1 {passing}" for passing in passes],
            "twice running": [f"2 {passes[0].split()[0]}"],
        }
        told = tell(case, house.model, before=lambda: house.arm(point, *strikes[how]))
        if how != "twice running":
            until(lambda: set(house.left(point)) == {0})  # what is heard last is acknowledged behind the run's end
        left = house.left(point)
        house.disarm(point)
        [ledger] = rows(
            house.system,
            "select sum(uncertain_micro_usd / reserved_micro_usd)::int as lost from ledger.calls where run = %s",
            f"{case.ticket}-1",
        )
        return Struck(told, left, sum(told.asked.values()) - len(told.asked), ledger["lost"])

    try:
        yield {
            (point, how): lanes[point.service].submit(strike, point, how, case) for (point, how), case in wanted.items()
        }
    finally:
        for lane in lanes.values():
            lane.shutdown(cancel_futures=True)


def test_the_undisturbed_run_is_held_released_paid_once_and_answered(undisturbed: Undisturbed) -> None:
    assert [fact.split()[0] for fact in undisturbed.told.facts] == [
        "desk.run-started",
        *("agent.turn-proposed", "tools.turn-quoted", "policy.turn-forwarded", "tools.turn-executed"),
        *("agent.turn-proposed", "tools.turn-quoted", "policy.turn-held", "approvals.call-decided"),
        *("policy.turn-forwarded", "tools.turn-executed", "agent.reply-given", "agent.run-ended"),
    ]
    assert undisturbed.told.paid == [PAID]
    assert undisturbed.told.asked == {0: 1, 1: 1, 2: 1}
    assert undisturbed.told.statuses == ("resolved", "resolved")


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_every_point_is_passed_in_the_undisturbed_run(undisturbed: Undisturbed, point: Point) -> None:
    assert undisturbed.passes[point], f"{point} was never reached: no test shows what a kill there does"


def ways(point: Point) -> list[Any]:
    """The agent-runner is long in starting, so that it is killed at each step is for the long tests."""
    if point.service != "agent-runner":
        return [(point, "each time"), (point, "twice running")]
    long = pytest.param(point, "each time", marks=pytest.mark.slow)
    return [(point, "once"), (point, "twice running"), long]


@pytest.mark.parametrize(("point", "how"), [way for point in POINTS for way in ways(point)], ids=str)
def test_a_run_ends_the_same_though_a_service_is_killed(
    killings: Killings, undisturbed: Undisturbed, point: Point, how: str
) -> None:
    struck = killings[point, how].result()

    if how == "twice running":
        # What was done before a kill is not done again, and a point behind it is then not passed again.
        assert struck.left < [2], "it was not killed"
    else:
        assert set(struck.left) == {0}, "it was not killed at every step that it should have been"
    assert struck.told.paid == [PAID]
    assert struck.told.facts == undisturbed.told.facts
    assert struck.told.violations == []
    assert struck.told.statuses == undisturbed.told.statuses
    assert struck.asked_again <= struck.lost, "an answer that had been recorded was asked for again"


def test_after_all_that_the_log_keeps_its_rules_and_nothing_was_given_up(
    house: House, killings: Killings, undisturbed: Undisturbed
) -> None:
    wait(killings.values())
    events = records.everything(records.broker(house.system.data))
    assert verify(events) == []
    assert set(Counter(event.key for event in events).values()) == {len(undisturbed.told.facts)}
    assert dead_letters(house) == []


kill_test = test_a_run_ends_the_same_though_a_service_is_killed


# The broker or the database goes away in the middle


TWENTY = 20
SMALL = 2000
FOUR_STEPS = [
    "desk.run-started",
    *("agent.turn-proposed", "tools.turn-quoted", "policy.turn-forwarded", "tools.turn-executed") * 2,
    *("agent.reply-given", "agent.run-ended"),
]


def start_twenty(house: House, gate: str | None = None) -> list[Case]:
    """Runs of a read, then a small refund that nobody has to release, then a reply. Every second one waits at the gate
    for the model's answer with the refund."""
    cases = [new_case(house.system, ORDER) for _ in range(TWENTY)]
    for number, case in enumerate(cases):
        order = case.orders[0]
        held_up = {"gate": gate} if gate and number % 2 else {}
        house.model.says(
            case.ticket, turn(look_up(order)), turn(look_up(order), refund(order, SMALL), **held_up), REPLY
        )
    alex = Client(house.system, "alex")
    for case in cases:
        alex.post(f"/v1/tickets/{case.ticket}/runs")
    return cases


def listens(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


def all_end_and_each_is_paid_once(house: House, cases: list[Case], after: int) -> None:
    ends = [Line(house.system, f"{case.ticket}-1", after).ended() for case in cases]
    until(lambda: listens(house.system.state.postgres_url))
    for case, events in zip(cases, ends, strict=True):
        assert [event.kind for event in events] == FOUR_STEPS
        assert verify(events) == []
        assert isinstance(end := events[-1].fact, RunEnded)
        assert end.status == "resolved"
        assert [row["amount_minor"] for row in case.refunds()] == [SMALL]
        assert asked(house.model, case.ticket) == {0: 1, 1: 1, 2: 1}, "an answer was paid for twice"
    assert dead_letters(house) == []


@pytest.mark.parametrize(
    "ends",
    [
        {"nats": signal.SIGKILL},
        {"nats": signal.SIGTERM},
        {"postgres": signal.SIGKILL},
        {"postgres": signal.SIGINT},  # ends open sessions and closes the cluster properly
        {"nats": signal.SIGKILL, "postgres": signal.SIGKILL},
    ],
    ids=lambda ends: " and ".join(f"{server} by {how.name}" for server, how in ends.items()),
)
def test_servers_restarted_in_the_middle_of_twenty_runs_lose_nothing_and_nothing_is_paid_twice(
    house: House, ends: dict[str, signal.Signals]
) -> None:
    after = last_sequence(house.system)
    gate = f"while-away-{after}"
    cases = start_twenty(house, gate)
    some = Line(house.system, f"{cases[TWENTY // 2].ticket}-1", after)
    some.until("tools.turn-executed")

    before = {server: house.system.pid(server) for server in ends}
    for server, how in ends.items():
        os.kill(before[server], how)
    house.model.open(gate)  # ten answers come while the server is away

    all_end_and_each_is_paid_once(house, cases, after)
    assert all(house.system.pid(server) != pid for server, pid in before.items())
    assert last_sequence(house.system) >= after + TWENTY * len(FOUR_STEPS)


# A cancel between forward and execution


def is_halted(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def is_done_with(house: House, service: str, event: Event) -> bool:
    """Whether the service has acknowledged the event and everything before it."""

    async def ask() -> int:
        async with records.set_up_broker(house.system.data).connection() as client:
            return int((await client.jetstream().consumer_info("RUNS", service)).ack_floor.stream_seq)

    return asyncio.run(ask()) >= event.sequence


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="whether a process stands still is read from /proc")
@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL], ids=["goes on", "killed"])
@pytest.mark.parametrize("name", ["before-read", "before-look", "before-commit", "after-commit", "before-append"])
def test_a_run_cancelled_while_it_is_paid_is_paid_and_recorded_or_neither(
    house: House, name: str, then: signal.Signals
) -> None:
    case = new_case(house.system, ORDER)
    house.model.says(case.ticket, turn(refund(case.orders[0], SMALL)), REPLY)
    alex, run, point = Client(house.system, "alex"), f"{case.ticket}-1", Point("tools-shop", name)
    line = Line(house.system, run, last_sequence(house.system))
    house.arm(point, f"halt {run} policy.turn-forwarded")
    alex.post(f"/v1/tickets/{case.ticket}/runs")
    forwarded = line.until("policy.turn-forwarded")
    shop = house.system.pid("tools-shop")
    until(lambda: is_halted(shop))

    alex.post(f"/v1/runs/{run}/cancel")
    house.disarm(point)
    os.kill(shop, then)
    until(lambda: is_done_with(house, "tools-shop", forwarded))

    kinds = [event.kind for event in line.events()]
    paid = [row["amount_minor"] for row in case.refunds()]
    if name in ("after-commit", "before-append") or (name == "before-commit" and then == signal.SIGCONT):
        assert kinds[-2:] == ["desk.run-cancelled", "tools.turn-executed"]
        assert paid == [SMALL]
    else:
        assert kinds[-1] == "desk.run-cancelled"
        assert paid == []
    assert verify(line.events()) == []
    assert alex.get(f"/v1/runs/{run}")["status"] == "cancelled"


# Processes that come, go and come again


def test_everything_killed_while_a_run_waits_for_a_person_comes_back_and_the_run_goes_on(
    house: House, undisturbed: Undisturbed
) -> None:
    case = new_case(house.system, ORDER)
    before = {service: house.system.pid(service) for service in SERVICES}

    def kill_all() -> None:
        for service in SERVICES:
            house.system.kill(service)

    told = tell(case, house.model, while_held=kill_all)
    assert told == undisturbed.told
    until(lambda: all(house.system.pid(service) != pid for service, pid in before.items()))


@contextmanager
def another(house: House, service: str) -> Iterator[str]:
    """One more process of the service, with the same environment; the address of its health page."""
    port = str(free_port())
    process = subprocess.Popen(
        [sys.executable, "-m", service.replace("-", "_")],
        env=house.system.environment(service) | SETTINGS | {"TURNGATE_HEALTH_PORT": port},
        stderr=(house.system.data / "logs" / f"another-{service}.log").open("ab"),
    )
    try:
        url = f"http://127.0.0.1:{port}"
        until(answers(f"{url}/readyz", service))
        yield url
    finally:
        process.terminate()
        process.wait()


def handled(url: str) -> float:
    """How many messages the process has dealt with."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("turngate_messages_handled_total{"))


def test_two_runners_and_two_shops_share_the_work_and_double_nothing(house: House) -> None:
    def own(service: str) -> str:
        return str(house.system.state.processes[service]["health"]).removesuffix("/readyz")

    after = last_sequence(house.system)
    with another(house, "agent-runner") as runner, another(house, "tools-shop") as shop:
        everyone = (runner, shop, own("agent-runner"), own("tools-shop"))
        before = {url: handled(url) for url in everyone}
        all_end_and_each_is_paid_once(house, start_twenty(house), after)
        assert all(handled(url) > before[url] for url in everyone), "one of two did everything"


def test_a_run_that_waited_through_a_stop_of_the_whole_system_has_no_fresh_allowance(data_dir: Path) -> None:
    with running_system(data_dir, SETTINGS) as system:
        paid, looping = new_case(system, ORDER), new_case(system, ORDER)
        alex = Client(system, "alex")
        for case, limits in ((paid, {}), (looping, {"max_steps": 3})):
            order = case.orders[0]
            case.says(turn(look_up(order)), turn(refund(order, PAID)))
            alex.post(f"/v1/tickets/{case.ticket}/runs", limits)
            Line(system, f"{case.ticket}-1").until("policy.turn-held")

    with running_system(data_dir, SETTINGS) as system:
        model, sam = model_of(system), Client(system, "sam")
        for case, then in ((paid, REPLY), (looping, turn(look_up(looping.orders[0])))):
            run = f"{case.ticket}-1"
            model.says(case.ticket, turn(), turn(), then, repeat=True)
            [hold] = sam.get(f"/v1/runs/{run}")["holds"]
            decision = {name: hold[name] for name in ("turn", "call_id", "digest")} | {"decision": "approve"}
            sam.post(f"/v1/runs/{run}/decisions", decision)
        ends = [Line(system, f"{case.ticket}-1").ended() for case in (paid, looping)]
        assert [(end[-1].fact.status, end[-1].fact.steps) for end in ends if isinstance(end[-1].fact, RunEnded)] == [
            ("resolved", 3),
            ("budget_exhausted", 3),
        ]
        assert verify([*ends[0], *ends[1]]) == []
        for case in (paid, looping):
            assert asked(model, case.ticket) == {2: 1}
            query = "select amount_minor from shop.refunds where order_reference = %s"
            assert rows(system, query, case.orders[0]) == [{"amount_minor": PAID}]


# A customer who does not stop


def test_a_customer_who_writes_ten_times_a_second_is_answered_and_no_answer_is_paid_for_twice(house: House) -> None:
    case = new_case(house.system, ORDER, channel="chat")
    slow = {"delay_ms": 1000}
    house.model.says(case.ticket, turn(look_up(case.orders[0]), **slow), REPLY | slow, repeat=True)
    alex, run = Client(house.system, "alex"), f"{case.ticket}-1"
    alex.post(f"/v1/tickets/{case.ticket}/runs")
    line, written, enough = Line(house.system, run), list[str](), threading.Event()

    def write() -> None:
        while not enough.wait(0.1):
            text = f"Hello? This is message {len(written)}."
            alex.post(f"/v1/runs/{run}/messages", {"text": text})
            written.append(text)

    with ThreadPoolExecutor(1) as customer:
        writing = customer.submit(write)
        try:
            first = line.until("agent.reply-given")
            second = Line(house.system, run, first.sequence).until("agent.reply-given")
        finally:
            enough.set()
        writing.result()

    until(lambda: alex.get(f"/v1/runs/{run}")["status"] == "awaiting_customer")
    events = line.events()
    said = [event for event in events if event.kind == "desk.customer-said"]
    replies = [event for event in events if event.kind == "agent.reply-given"]
    assert len(said) == len(written) > 10
    assert any(event.sequence < second.sequence for event in said), "nobody wrote meanwhile"
    assert asked(house.model, case.ticket) == dict.fromkeys(range(1 + len(replies)), 1)
    last = json.dumps(house.model.was_sent(case.ticket)[-1])
    assert [text for text in written if text not in last] == [], "a message was never read"
    assert verify(events) == []


# The model is away; a handler fails


def test_a_model_that_is_overloaded_for_a_while_costs_no_run(house: House) -> None:
    case = new_case(house.system, ORDER)
    busy = {"fault": {"status": 529, "message": "Overloaded"}}
    order = case.orders[0]
    house.model.says(case.ticket, [busy] * 5 + [turn(refund(order, SMALL))], [busy, REPLY])
    after = last_sequence(house.system)
    Client(house.system, "alex").post(f"/v1/tickets/{case.ticket}/runs")
    events = Line(house.system, f"{case.ticket}-1", after).ended()

    assert isinstance(end := events[-1].fact, RunEnded)
    assert (end.status, end.steps) == ("resolved", 2)
    assert asked(house.model, case.ticket) == {0: 6, 1: 2}
    assert [row["amount_minor"] for row in case.refunds()] == [SMALL]
    assert dead_letters(house) == []


def test_a_model_that_cannot_be_reached_for_a_while_costs_no_run(house: House) -> None:
    case = new_case(house.system, ORDER)
    house.model.says(case.ticket, turn(look_up(case.orders[0]), gate="never opened"))
    outages = house.system.log_of("agent-runner").count("API cannot be reached")
    after = last_sequence(house.system)
    Client(house.system, "alex").post(f"/v1/tickets/{case.ticket}/runs")
    house.model.asked(case.ticket, at_least=1)

    def gone_for_long() -> bool:
        """Whether the runner has noticed; else the stand-in goes once more."""
        pid = house.system.pid("standin")
        house.system.kill("standin")
        until(lambda: house.system.pid("standin") != pid)
        return house.system.log_of("agent-runner").count("API cannot be reached") > outages

    until(gone_for_long)

    # The stand-in has forgotten what it was to say, and works the ticket as it sees fit.
    events = Line(house.system, f"{case.ticket}-1", after).ended()
    assert isinstance(end := events[-1].fact, RunEnded)
    assert end.status in ("resolved", "escalated")
    assert verify(events) == []
    assert dead_letters(house) == []


SECRET = "sk-live-Zq81vT0pLmXw"
PAGES = (
    *("/tickets", "/tickets/{ticket}", "/approvals"),
    *("/v1/tickets/{ticket}", "/v1/runs", "/v1/runs/{run}", "/v1/runs/{run}/events"),
)


@contextmanager
def broken(house: House, table: str, run: str) -> Iterator[None]:
    """While the database objects to that run's rows, in words that nobody outside is to read."""
    with psycopg.connect(house.system.state.postgres_url, autocommit=True) as connection:
        connection.execute(
            f"""
            create function public.objection() returns trigger language plpgsql as $$ begin
                if new.run = '{run}' then raise exception 'postgresql://shop:{SECRET}@db.internal/shop'; end if;
                return new;
            end $$;
            create trigger objection before insert on {table} for each row execute function public.objection()
            """.encode()
        )
        try:
            yield
        finally:
            connection.execute(f"drop trigger objection on {table}; drop function public.objection".encode())


def everything_shown(house: House, case: Case, run: str) -> dict[str, str]:
    """What the log says, and what every page and answer about the run says to each person."""
    line = Line(house.system, run)
    shown = {f"event {event.ordinal}": event.payload.decode() for event in line.events()}
    for who in ("alex", "sam", "ari"):
        token = house.system.token(who)
        for path in PAGES:
            page = path.format(ticket=case.ticket, run=run)
            answer = httpx.get(
                f"{house.system.url}{page}",
                headers={"Authorization": f"Bearer {token}"},
                cookies={"turngate_session": token},
                timeout=10,
            )
            assert answer.status_code == 200, (who, page, answer.text)
            shown[f"{page} for {who}"] = answer.text
    return shown


@pytest.mark.parametrize(
    ("what", "service", "table"),
    [
        ("the shop's database", "tools-shop", "shop.refunds"),
        ("the ledger's database", "agent-runner", "ledger.calls"),
        ("the model's API", "agent-runner", None),
    ],
)
def test_a_secret_in_an_exception_stays_in_the_log_file_and_the_run_ends_as_failed(
    house: House, what: str, service: str, table: str | None
) -> None:
    case = new_case(house.system, ORDER)
    run = f"{case.ticket}-1"
    refused = {"fault": {"status": 400, "message": f"Key {SECRET} may not do that"}}
    house.model.says(case.ticket, refused if table is None else turn(refund(case.orders[0], SMALL)), REPLY)
    with broken(house, table, run) if table else nullcontext():
        Client(house.system, "alex").post(f"/v1/tickets/{case.ticket}/runs")
        events = Line(house.system, run).ended()

    assert events[-1].kind in ("agent.run-ended", "desk.run-failed")
    assert getattr(events[-1].fact, "status", "failed") == "failed"
    assert SECRET in house.system.log_of(service), "the cause is nowhere to be found"
    until(lambda: Client(house.system, "alex").get(f"/v1/tickets/{case.ticket}")["status"] == "escalated")
    assert [where for where, text in everything_shown(house, case, run).items() if SECRET in text] == []
    assert case.refunds() == []
